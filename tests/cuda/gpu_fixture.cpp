#include "tests/cuda/gpu_fixture.h"

#include <cstring>
#include <map>

#include "compiler/interpret/small_float.h"
#include "compiler/runtime/cuda/architecture.h"
#include "tests/cuda/nvrtc_fixture.h"

namespace tilepilot::testing {
namespace {

using runtime::cuda::Device;

struct Gpu {
  std::shared_ptr<Device> device;
  std::string missing;  // why there is none
};

const Gpu& gpu() {
  static const Gpu instance = [] {
    auto opened = Device::open();
    if (!opened.ok()) {
      std::string reason = "no GPU here: " + opened.error().message;
      for (const Note& note : opened.error().notes) reason += " (" + note.message + ")";
      return Gpu{nullptr, reason};
    }
    const auto target = runtime::cuda::architecture_of((*opened)->capability());
    return target.ok() ? Gpu{*opened, {}} : Gpu{nullptr, target.error().message};
  }();
  return instance;
}

std::string told(const Diagnostic& error) {
  std::string text = error.message;
  for (const Note& note : error.notes) text += "\n" + note.message;
  return text;
}

}  // namespace

void GpuTest::SetUp() {
  if (!gpu().missing.empty()) GTEST_SKIP() << gpu().missing;
  SKIP_WITHOUT_NVRTC();
}

Device& GpuTest::device() { return *gpu().device; }
bool GpuTest::has(int capability) { return device().capability() >= capability; }

Status GpuTest::try_run(const std::string& unit, const std::string& function, Shape shape,
                        const std::vector<const void*>& parameters) {
  static std::map<std::string, std::shared_ptr<runtime::cuda::Module>> modules;
  if (!modules.contains(unit)) {
    const std::string target = TRY(runtime::cuda::architecture_of(device().capability()));
    DiagnosticList warnings;
    const auto made = TRY(nvrtc().compile(kernel_unit(unit), target, warnings));
    modules[unit] = TRY(device().load(made.cubin));
  }
  const auto prepared = TRY(modules[unit]->function(function, shape.shared_bytes));
  std::vector<void*> places;
  for (const void* parameter : parameters) places.push_back(const_cast<void*>(parameter));
  TRY(prepared.launch(shape, places.data(), nullptr));
  return device().wait(nullptr);
}

void GpuTest::run(const std::string& unit, const std::string& function, Shape shape,
                  std::vector<const void*> parameters) {
  const Status status = try_run(unit, function, shape, parameters);
  ASSERT_TRUE(status.ok()) << function << ": " << told(status.error());
}

void GpuTest::run_over(const std::string& unit, const std::string& function, int64_t count,
                       const std::vector<const Memory*>& arrays) {
  std::vector<uint64_t> addresses;
  for (const Memory* array : arrays) addresses.push_back(array->address());
  std::vector<const void*> parameters;
  for (const uint64_t& address : addresses) parameters.push_back(&address);
  parameters.push_back(&count);
  constexpr int64_t kThreads = 256;
  run(unit, function,
      {.grid = {static_cast<uint32_t>((count + kThreads - 1) / kThreads), 1, 1}, .threads = {kThreads, 1, 1}},
      parameters);
}

GpuTest::Memory GpuTest::zeros(int64_t bytes) {
  return copy_in(std::vector<std::byte>(static_cast<size_t>(bytes)).data(), static_cast<size_t>(bytes));
}

GpuTest::Memory GpuTest::copy_in(const void* data, size_t bytes) {
  auto memory = device().allocate(static_cast<int64_t>(bytes));
  EXPECT_TRUE(memory.ok()) << memory.error().message;
  if (!memory.ok()) return {};
  const Status written = device().write(memory->address(), data, static_cast<int64_t>(bytes));
  EXPECT_TRUE(written.ok()) << written.error().message;
  return *std::move(memory);
}

void GpuTest::copy_out(void* data, const Memory& memory, size_t bytes) {
  const Status status = device().read(data, memory.address(), static_cast<int64_t>(bytes));
  EXPECT_TRUE(status.ok()) << status.error().message;
}

namespace {

template <class T>
T bits_at(const std::vector<std::byte>& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void put_bits(std::vector<std::byte>& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

void Elements::set(size_t index, double value) {
  if (type_ == ir::kFloat32) return put_bits(bytes_, index, static_cast<float>(value));
  if (type_ == ir::kFloat64) return put_bits(bytes_, index, value);
  const bool is_float = type_.is_small_float();
  const uint64_t code = is_float ? interpret::encode(value, type_) : static_cast<uint64_t>(static_cast<int64_t>(value));
  switch (type_.bytes()) {
    case 1:
      return put_bits(bytes_, index, static_cast<uint8_t>(code));
    case 2:
      return put_bits(bytes_, index, static_cast<uint16_t>(code));
    case 4:
      return put_bits(bytes_, index, static_cast<uint32_t>(code));
    default:
      return put_bits(bytes_, index, code);
  }
}

double Elements::get(size_t index) const {
  if (type_ == ir::kFloat32) return bits_at<float>(bytes_, index);
  if (type_ == ir::kFloat64) return bits_at<double>(bytes_, index);
  uint64_t code = 0;
  if (type_.bytes() == 1) code = bits_at<uint8_t>(bytes_, index);
  if (type_.bytes() == 2) code = bits_at<uint16_t>(bytes_, index);
  if (type_.bytes() == 4) code = bits_at<uint32_t>(bytes_, index);
  if (type_.bytes() == 8) code = bits_at<uint64_t>(bytes_, index);
  if (type_.is_small_float()) return interpret::decode(static_cast<uint32_t>(code), type_);
  const int unused = 64 - type_.bits;
  if (type_.code == ir::TypeCode::signed_int)
    return static_cast<double>(static_cast<int64_t>(code << unused) >> unused);
  return static_cast<double>(code);
}

}  // namespace tilepilot::testing
