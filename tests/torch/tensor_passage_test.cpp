// Tensors from a process that may send anything.
#include "eval/worker/tensor_passage.h"

#include <ATen/ops/arange.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

namespace tilepilot::eval {
namespace {

using nlohmann::json;

json description_of(json shape, json offset = 0, json dtype = "float32") {
  json strides = json::array();
  for (size_t i = 0; i < (shape.is_array() ? shape.size() : 0); ++i) strides.push_back(1);
  return json::array({{{"dtype", dtype}, {"shape", shape}, {"strides", strides}, {"offset", offset}}});
}

TEST(TensorPassage, BringsWhatWasSent) {
  auto sent = at::arange(10).to(at::kFloat);
  auto packed = pack_tensors({sent, at::arange(3)});
  ASSERT_TRUE(packed.ok());
  auto received = unpack_tensors(packed->description, packed->file);
  ASSERT_TRUE(received.ok());
  EXPECT_TRUE((*received)[0].equal(sent));
}

TEST(TensorPassage, fail_DescriptionsThatDoNotFitTheFile) {
  auto packed = pack_tensors({at::arange(10).to(at::kFloat)});
  ASSERT_TRUE(packed.ok());
  EXPECT_TRUE(unpack_tensors(description_of({10}), packed->file).ok());
  const int64_t huge = int64_t{1} << 62;
  for (const json& wrong :
       {description_of({17}), description_of({-1}), description_of({huge}), description_of({huge, 4, 2}),
        description_of({0, huge, huge}), description_of({1}, 64), description_of({1}, 3), description_of({1}, -64),
        description_of({1}, huge), description_of({1}, 0, "float99"), description_of({1}, 0, nullptr),
        description_of("ten"), description_of({1.5}), description_of(json(std::vector<int>(1000, 1))), json(3),
        json::array({nullptr}), json::array({json::object()})}) {
    EXPECT_FALSE(unpack_tensors(wrong, packed->file).ok()) << wrong;
  }
}

// What could still change, or be cut short under a mapping.
TEST(TensorPassage, fail_FilesThatAreNotSealed) {
  const Descriptor open_file(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(open_file.number(), 4096), 0);
  EXPECT_FALSE(unpack_tensors(description_of({1}), open_file).ok());
  const Descriptor on_disk(open(::testing::TempDir().c_str(), O_TMPFILE | O_RDWR, 0600));
  ASSERT_EQ(ftruncate(on_disk.number(), 4096), 0);
  EXPECT_FALSE(unpack_tensors(description_of({1}), on_disk).ok());
  EXPECT_FALSE(unpack_tensors(description_of({1}), Descriptor()).ok());
}

TEST(TensorPassage, SurvivesRandomDescriptions) {
  auto packed = pack_tensors({at::arange(64).to(at::kFloat)});
  ASSERT_TRUE(packed.ok());
  std::mt19937_64 random(3);
  const auto number = [&]() -> json {
    const int64_t interesting[] = {0, 1, 64, -1, INT64_MAX, INT64_MIN, 4, 1 << 20};
    return random() % 8 == 0 ? json(static_cast<double>(random())) : json(interesting[random() % 8]);
  };
  for (int round = 0; round < 2000; ++round) {
    json shape = json::array();
    for (auto n = random() % 4; n > 0; --n) shape.push_back(number());
    auto received = unpack_tensors(description_of(shape, number()), packed->file);
    EXPECT_TRUE(!received.ok() || (*received)[0].nbytes() <= 256u);
  }
}

}  // namespace
}  // namespace tilepilot::eval
