// Tensors from a process that may send anything.
#include "eval/worker/tensor_transfer.h"

#include <ATen/Functions.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "eval/torch/span.h"
#include "tests/fake_library.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

json description_of(json shape, json offset = 0, json dtype = "float32") {
  json strides = json::array();
  for (size_t i = 0; i < (shape.is_array() ? shape.size() : 0); ++i) strides.push_back(1);
  return json::array({{{"dtype", dtype}, {"shape", shape}, {"strides", strides}, {"offset", offset}}});
}

const TensorTransfer kThere, kBack{Direction::from_candidate};

std::vector<Descriptor> files_of(const PackedTensors& packed) {
  std::vector<Descriptor> files;
  for (const int number : packed.descriptors()) files.emplace_back(dup(number));
  return files;
}

Result<std::vector<at::Tensor>> received_from(const json& description, const Descriptor& file,
                                              const TensorTransfer& transfer = kThere) {
  std::vector<Descriptor> files;
  files.emplace_back(dup(file.number()));
  return unpack_tensors(description, files, transfer);
}

// As they lie: a transposed matrix, every second column, a row repeated, nothing at all.
std::vector<at::Tensor> tensors_of_all_kinds() {
  const at::Tensor matrix = at::arange(12).to(at::kFloat).view({3, 4});
  return {matrix.t(),
          matrix.as_strided({3, 2}, {4, 2}, 1),
          matrix.narrow(0, 1, 1).expand({5, 4}),
          at::zeros({0, 3}),
          at::arange(3),
          at::scalar_tensor(7.0)};
}

TEST(TensorTransfer, BringsWhatWasSentAsItLay) {
  const auto sent = tensors_of_all_kinds();
  const auto packed = pack_tensors(sent, kThere);
  ASSERT_TRUE(packed.ok());
  const auto received = unpack_tensors(packed->description, files_of(*packed), kThere);
  ASSERT_TRUE(received.ok());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE((*received)[i].equal(sent[i])) << i;
    EXPECT_EQ((*received)[i].strides(), sent[i].strides()) << i;
  }
}

TEST(TensorTransfer, BringsTheElementsOfACandidatesTensors) {
  const auto sent = tensors_of_all_kinds();
  const auto packed = pack_tensors(sent, kBack);
  ASSERT_TRUE(packed.ok());
  const auto received = unpack_tensors(packed->description, files_of(*packed), kBack);
  ASSERT_TRUE(received.ok());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE((*received)[i].equal(sent[i])) << i;
    EXPECT_TRUE((*received)[i].is_contiguous()) << i;
    EXPECT_EQ(packed->description[i].at("strides").get<std::vector<int64_t>>(), sent[i].strides().vec());
  }
}

// With the processor in the GPU's place, and a driver whose shared memory is a memory file.
TEST(TensorTransfer, LeavesTensorsOnTheGpu) {
  const auto library = tilepilot::testing::fake_library(testing::scratch("transfer"), "libcuda.so.1",
                                                        tilepilot::testing::fake_driver_source());
  const auto gpu = runtime::cuda::Device::open({library, 0});
  ASSERT_TRUE(gpu.ok()) << gpu.error().message;
  for (const Direction direction : {Direction::to_candidate, Direction::from_candidate}) {
    const TensorTransfer transfer{direction, *gpu, c10::DeviceType::CPU};
    const auto sent = tensors_of_all_kinds();
    const auto packed = pack_tensors(sent, transfer);
    ASSERT_TRUE(packed.ok()) << packed.error().message;
    ASSERT_TRUE(packed->on_gpu);
    const auto received = unpack_tensors(packed->description, files_of(*packed), transfer);
    ASSERT_TRUE(received.ok()) << received.error().message;
    // What the sender writes afterwards a candidate may see, the judge never.
    reinterpret_cast<float*>(packed->on_gpu->address())[0] += 1;
    EXPECT_EQ((*received)[0][0][0].item<float>(), direction == Direction::to_candidate ? 1 : 0);
    for (size_t i = 1; i < sent.size(); ++i) EXPECT_TRUE((*received)[i].equal(sent[i])) << i;
    // Without the second file, or with another in its place.
    EXPECT_FALSE(received_from(packed->description, packed->file, transfer).ok());
    json far = packed->description;
    far[0]["offset"] = uint64_t{1} << 40;
    EXPECT_FALSE(unpack_tensors(far, files_of(*packed), transfer).ok());
  }
}

TEST(TensorTransfer, fail_TensorLargerThanAnyMemory) {
  const at::Tensor endless = at::zeros({1, 1}).expand({int64_t{1} << 31, int64_t{1} << 31});
  const auto packed = pack_tensors({endless}, kBack);
  ASSERT_FALSE(packed.ok());
  EXPECT_EQ(packed.error().kind, DiagnosticKind::out_of_memory);
  EXPECT_TRUE(pack_tensors({endless}, kThere).ok());  // a repetition travels once
}

// One element that is repeated a million million times: neither side may touch it.
TEST(TensorTransfer, fail_MoreElementsThanACandidateMaySend) {
  const TensorTransfer small{.direction = Direction::from_candidate, .most_bytes = 1 << 20};
  const at::Tensor one = at::ones({1, 1});
  for (const at::Tensor& endless :
       {one[0].expand({int64_t{1} << 40}), one.expand({int64_t{1} << 31, int64_t{1} << 31}), one.expand({513, 512})}) {
    const auto packed = pack_tensors({endless, one}, small);
    ASSERT_TRUE(packed.ok()) << packed.error().message;
    EXPECT_EQ(packed->description.at(0).at("shape").get<std::vector<int64_t>>(), endless.sizes().vec());
    EXPECT_EQ(lseek(packed->file.number(), 0, SEEK_END), 0);
    const auto received = unpack_tensors(packed->description, files_of(*packed), small);
    ASSERT_FALSE(received.ok());
    EXPECT_EQ(received.error().kind, DiagnosticKind::out_of_memory);
  }
  EXPECT_TRUE(pack_tensors({one.expand({512, 512})}, small).ok());
  EXPECT_TRUE(pack_tensors({one.expand({513, 512})}, {.most_bytes = 1}).ok());  // on its way to a candidate
  // A process that says so of a file that has no more than holes.
  const Descriptor holes(memfd_create("holes", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(holes.number(), int64_t{1} << 42), 0);
  ASSERT_EQ(fcntl(holes.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  const auto received = received_from(description_of({int64_t{1} << 40}), holes, small);
  ASSERT_FALSE(received.ok());
  EXPECT_THAT(received.error().message, ::testing::HasSubstr("4398.05 GB"));
  EXPECT_TRUE(received_from(description_of({10}), holes, small).ok());
}

TEST(TensorTransfer, fail_DescriptionsThatDoNotFitTheFile) {
  auto packed = pack_tensors({at::arange(10).to(at::kFloat)}, kThere);
  ASSERT_TRUE(packed.ok());
  EXPECT_TRUE(received_from(description_of({10}), packed->file).ok());
  const int64_t huge = int64_t{1} << 62;
  for (const json& wrong :
       {description_of({17}), description_of({-1}), description_of({huge}), description_of({huge, 4, 2}),
        description_of({0, huge, huge}), description_of({1}, 64), description_of({1}, 3), description_of({1}, -64),
        description_of({1}, huge), description_of({1}, 0, "float99"), description_of({1}, 0, nullptr),
        description_of("ten"), description_of({1.5}), description_of(json(std::vector<int>(1000, 1))), json(3),
        json::array({nullptr}), json::array({json::object()})}) {
    EXPECT_FALSE(received_from(wrong, packed->file).ok()) << wrong;
    EXPECT_FALSE(received_from(wrong, packed->file, kBack).ok()) << wrong;
  }
}

// What could still change, or be cut short under a mapping.
TEST(TensorTransfer, fail_FilesThatAreNotSealed) {
  const Descriptor open_file(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(open_file.number(), 4096), 0);
  EXPECT_FALSE(received_from(description_of({1}), open_file).ok());
  const Descriptor on_disk(open(::testing::TempDir().c_str(), O_TMPFILE | O_RDWR, 0600));
  ASSERT_EQ(ftruncate(on_disk.number(), 4096), 0);
  EXPECT_FALSE(received_from(description_of({1}), on_disk).ok());
  EXPECT_FALSE(received_from(description_of({1}), Descriptor()).ok());
}

TEST(TensorTransfer, SurvivesRandomDescriptions) {
  auto packed = pack_tensors({at::arange(64).to(at::kFloat)}, kThere);
  ASSERT_TRUE(packed.ok());
  std::mt19937_64 random(3);
  const auto number = [&]() -> json {
    const int64_t interesting[] = {0, 1, 64, -1, INT64_MAX, INT64_MIN, 4, 1 << 20};
    return random() % 8 == 0 ? json(static_cast<double>(random())) : json(interesting[random() % 8]);
  };
  for (int round = 0; round < 2000; ++round) {
    json shape = json::array();
    for (auto n = random() % 4; n > 0; --n) shape.push_back(number());
    for (const TensorTransfer& transfer : {kThere, kBack}) {
      const auto received = received_from(description_of(shape, number()), packed->file, transfer);
      EXPECT_TRUE(!received.ok() || span_length((*received)[0].sizes(), (*received)[0].strides()) <= 64);
    }
  }
}

}  // namespace
}  // namespace tilepilot::eval
