#include "tests/cuda/gpu_fixture.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <map>
#include <regex>

#include "compiler/emulator/emulator.h"
#include "compiler/emulator/report/diagnose.h"
#include "compiler/interpret/small_float.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/process.h"
#include "tests/cuda/nvrtc_fixture.h"

namespace tilepilot::testing {
namespace {

using runtime::cuda::Device;
using LaunchShape = runtime::cuda::Function::Shape;

constexpr const char* kEmulatedArchitecture = "-D__CUDA_ARCH__=900";

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

Status launch_on_gpu(Device& device, const std::string& unit, const std::string& function, const LaunchShape& shape,
                     const KernelArguments& arguments) {
  static std::map<std::string, std::shared_ptr<runtime::cuda::Module>> modules;
  if (!modules.contains(unit)) {
    const std::string target = TRY(runtime::cuda::architecture_of(device.capability()));
    DiagnosticList warnings;
    const auto made = TRY(nvrtc().compile(kernel_unit(unit), target, warnings));
    modules[unit] = TRY(device.load(made.cubin));
  }
  const runtime::cuda::Function prepared = TRY(modules[unit]->function(function, shape.shared_bytes));
  std::vector<int64_t> words;
  for (const KernelMemory* array : arguments.arrays) words.push_back(reinterpret_cast<int64_t>(array->data()));
  words.insert(words.end(), arguments.scalars.begin(), arguments.scalars.end());
  std::vector<Device::TensorMap> maps;
  constexpr int kFloat32 = 7;  // CU_TENSOR_MAP_DATA_TYPE_FLOAT32
  for (const auto& [array, extents, box] : arguments.boxes)
    maps.push_back(TRY(device.tensor_map({.data = static_cast<uint64_t>(words[array]),
                                          .type = kFloat32,
                                          .extents = {extents.begin(), extents.end()},
                                          .strides = {static_cast<uint64_t>(extents[0]) * sizeof(float)},
                                          .box = {box.begin(), box.end()}})));
  std::vector<void*> places;
  for (int64_t& word : words) places.push_back(&word);
  for (Device::TensorMap& map : maps) places.push_back(&map);
  TRY(prepared.launch(shape, places.data(), nullptr));
  return device.wait(nullptr);
}

// The kernels of a unit, whose names are what macros make of them.
Result<std::vector<std::string>> functions_of(const std::string& unit) {
  const runtime::ProcessResult expanded =
      TRY(runtime::run_process({"c++", "-E", "-P", "-x", "c++", kEmulatedArchitecture, kernel_path(unit).string()}));
  static const std::regex heading(R"(__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\()");
  std::vector<std::string> names;
  for (std::sregex_iterator found(expanded.out.begin(), expanded.out.end(), heading), end; found != end; ++found)
    names.push_back((*found)[1]);
  return names;
}

// Each line names itself, so that defects do; but no line that a macro goes on in.
std::string with_lines(const std::filesystem::path& file) {
  std::ifstream lines(file);
  std::string numbered, line;
  bool goes_on = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!goes_on) numbered += fmt::format("#line {} \"{}\"\n", number, file.filename().string());
    numbered += line + "\n";
    goes_on = line.ends_with('\\');
  }
  return numbered;
}

Result<std::shared_ptr<emulator::EmulatedCode>> emulated_code(const std::string& unit) {
  static std::map<std::string, std::shared_ptr<emulator::EmulatedCode>> codes;
  static runtime::Toolchain toolchain(
      emulator::toolchain_options({"", TILEPILOT_KERNEL_CACHE, {kEmulatedArchitecture}}));
  if (!codes.contains(unit)) {
    DiagnosticList warnings;
    const std::vector<std::string> functions = TRY(functions_of(unit));
    codes[unit] = TRY(emulator::compile(with_lines(kernel_path(unit)), functions, toolchain, warnings));
  }
  return codes[unit];
}

Status launch_emulated(const std::string& unit, const std::string& function, const LaunchShape& shape,
                       const KernelArguments& arguments) {
  const auto code = TRY(emulated_code(unit));
  emulator::EmulatedLaunch launch{function};
  std::copy(shape.grid.begin(), shape.grid.end(), launch.grid.begin());
  std::copy(shape.threads.begin(), shape.threads.end(), launch.threads.begin());
  std::copy(shape.cluster.begin(), shape.cluster.end(), launch.cluster.begin());
  launch.shared_bytes = shape.shared_bytes;
  launch.cooperative = shape.cooperative;
  emulator::EmulatedArguments given{{}, arguments.scalars};
  for (const KernelMemory* array : arguments.arrays)
    given.buffers.push_back({array->data(), array->size(), fmt::format("array {}", given.buffers.size())});
  for (const auto& [array, extents, box] : arguments.boxes)
    given.maps.push_back({.buffer = static_cast<int64_t>(array),
                          .first_byte = 0,
                          .rank = 2,
                          .element_bytes = sizeof(float),
                          .extents = {extents[0], extents[1]},
                          .strides = {sizeof(float), extents[0] * static_cast<int64_t>(sizeof(float))},
                          .box = {static_cast<int32_t>(box[0]), static_cast<int32_t>(box[1])},
                          .swizzle = 0,
                          .type = static_cast<uint32_t>(emulated::operand::f32)});
  const emulator::Report report = TRY(emulator::run(*code, launch, given));
  if (report.defects.empty()) return {};
  const emulator::Defect& first = report.defects.front();
  if (first.kind != emulator::DefectKind::failed_check) return emulator::error_of(report, function, {});
  return make_error(DiagnosticKind::device_failed, {}, fmt::format("check {} failed", first.number));  // as a trap does
}

}  // namespace

KernelMemory::KernelMemory(int64_t host_bytes)
    : host_(new std::max_align_t[static_cast<size_t>(host_bytes) / sizeof(std::max_align_t) + 1]), size_(host_bytes) {}

void GpuTest::SetUp() {
  if (device() != nullptr) {
    SKIP_WITHOUT_NVRTC();
    return;
  }
  static bool told = false;
  if (!std::exchange(told, true)) fmt::print("kernels run in the emulator: {}\n", gpu_missing());
}

Device* GpuTest::device() { return gpu().device.get(); }
const std::string& GpuTest::gpu_missing() { return gpu().missing; }

Status GpuTest::try_run(const std::string& unit, const std::string& function, const Shape& shape,
                        const KernelArguments& arguments) {
  return device() != nullptr ? launch_on_gpu(*device(), unit, function, shape, arguments)
                             : launch_emulated(unit, function, shape, arguments);
}

void GpuTest::run(const std::string& unit, const std::string& function, const Shape& shape,
                  const KernelArguments& arguments) {
  const Status status = try_run(unit, function, shape, arguments);
  ASSERT_TRUE(status.ok()) << function << ": " << told(status.error());
}

void GpuTest::run_over(const std::string& unit, const std::string& function, int64_t count,
                       const std::vector<const Memory*>& arrays) {
  constexpr int64_t kThreads = 256;
  run(unit, function,
      {.grid = {static_cast<uint32_t>((count + kThreads - 1) / kThreads), 1, 1}, .threads = {kThreads, 1, 1}},
      {arrays, {count}});
}

GpuTest::Memory GpuTest::zeros(int64_t bytes) {
  return copy_in(std::vector<std::byte>(static_cast<size_t>(bytes)).data(), static_cast<size_t>(bytes));
}

GpuTest::Memory GpuTest::copy_in(const void* data, size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  if (device() == nullptr) {
    Memory memory(size);
    std::memcpy(memory.data(), data, bytes);
    return memory;
  }
  auto memory = device()->allocate(size);
  EXPECT_TRUE(memory.ok()) << memory.error().message;
  if (!memory.ok()) return {};
  const Status written = device()->write(memory->address(), data, size);
  EXPECT_TRUE(written.ok()) << written.error().message;
  return Memory(*std::move(memory));
}

void GpuTest::copy_out(void* data, const Memory& memory, size_t bytes) {
  if (device() == nullptr) {
    std::memcpy(data, memory.data(), bytes);
    return;
  }
  const auto from = reinterpret_cast<runtime::cuda::DeviceAddress>(memory.data());
  const Status status = device()->read(data, from, static_cast<int64_t>(bytes));
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
