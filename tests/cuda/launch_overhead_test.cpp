// What the host does for a launch beside the driver: on a GPU, and where there is none with a driver that does nothing,
// which leaves our own part.
#include "tests/cuda/launch_overhead.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/runtime/arguments.h"
#include "compiler/runtime/cuda/tensor_maps.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/fake_library.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using runtime::cuda::CudaOptions;
using runtime::cuda::Device;

constexpr double kMostMicroseconds = 4;

void expect_cheap(const SmallKernel& kernel, const CudaOptions& options, size_t maps) {
  const auto made = measure_launches(parse(kernel.text), options);
  ASSERT_TRUE(made.ok()) << render(made.error());
  fmt::print("{}: {:.2f} us a launch, the driver {:.2f}, beyond it {:.2f}\n", kernel.name, made->ours, made->bare,
             made->beyond);
  EXPECT_EQ(made->maps, maps) << kernel.name;
  EXPECT_LE(made->beyond, kMostMicroseconds) << kernel.name;
}

using LaunchOverheadOnAGpu = GpuTest;

TEST_F(LaunchOverheadOnAGpu, IsSmall) {
  SKIP_WITHOUT_GPU();
  const CudaOptions options{.nvrtc = nvrtc_options()};
  expect_cheap(kThreeTensors, options, 0);
  expect_cheap(kSymbolicExtents, options, 0);
  expect_cheap(kTensorMaps, options, has(90) ? 3 : 0);
}

// Counts the descriptions that it makes in the first word of each, and refuses what the driver refuses: tensors at
// address 0, and extents and strides of 0.
constexpr const char* kCountingEncoder = R"(
extern "C" int cuTensorMapEncodeTiled(unsigned long long* map, int, unsigned rank, void* address,
                                      const unsigned long long* extents, const unsigned long long* strides) {
  static unsigned long long count = 0;
  if (address == nullptr || strides[0] == 0 || strides[0] % 16 != 0) return 1;
  for (unsigned axis = 0; axis < rank; ++axis)
    if (extents[axis] == 0) return 1;
  map[0] = ++count;
  map[1] = extents[0] * extents[1];
  return 0;
}
)";

class LaunchesWithoutAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-launch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path driver() const {
    std::string source = fake_driver_source();
    const std::string plain = "SUCCEEDS(cuTensorMapEncodeTiled)";
    source.replace(source.find(plain), plain.size(), kCountingEncoder);
    return fake_library(folder_, "libcuda.so.1", source);
  }

  fs::path folder_;
};

TEST_F(LaunchesWithoutAGpu, IsSmallWithADriverThatDoesNothing) {
#ifdef TILEPILOT_SANITIZED
  GTEST_SKIP() << "times under the sanitizers say nothing";
#endif
  CudaOptions options;
  options.device.library = driver();
  options.nvrtc.library = fake_library(folder_, "libnvrtc.so.13", fake_nvrtc_source(13, 0, true));
  expect_cheap(kThreeTensors, options, 0);
  expect_cheap(kSymbolicExtents, options, 0);
  expect_cheap(kTensorMaps, options, 3);
}

TEST_F(LaunchesWithoutAGpu, DescriptionsAreKeptForTensorsThatTakeTurns) {
  const auto device = Device::open({.library = driver()});
  ASSERT_TRUE(device.ok()) << render(device.error());
  const ir::Var rows = ir::make_var("rows", ir::kInt32);
  const targets::cuda::TensorMap plan{0,        ir::kFloat16, {ir::int_imm(64), ir::var_ref(rows)}, {ir::int_imm(128)},
                                      {64, 64}, 128};
  runtime::cuda::TensorMaps maps;
  const auto number = [&](uintptr_t address, int64_t extent) {
    const auto map = maps.of(**device, plan, reinterpret_cast<void*>(address), {{rows.get(), {extent, extent}}});
    return map.ok() ? (*map)->words[0] : 0;
  };
  EXPECT_EQ(number(0x1000, 64), 1u);
  EXPECT_EQ(number(0x2000, 64), 2u);
  EXPECT_EQ(number(0x1000, 32), 3u);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(number(0x1000, 64), 1u);
    EXPECT_EQ(number(0x2000, 64), 2u);
    EXPECT_EQ(number(0x1000, 32), 3u);
  }
  // Of many, the oldest are made again, and never taken for another tensor's.
  for (uintptr_t tensor = 3; tensor < 20; ++tensor) EXPECT_EQ(number(tensor << 12, 64), tensor + 1);
  EXPECT_EQ(number(0x1000, 64), 21u);
  EXPECT_EQ(number(19 << 12, 64), 20u);
}

// What LibTorch has of a tensor without elements is the address 0.
TEST_F(LaunchesWithoutAGpu, TensorsWithoutElementsAreDescribedAsAZero) {
  const auto device = Device::open({.library = driver()});
  ASSERT_TRUE(device.ok()) << render(device.error());
  const ir::Var rows = ir::make_var("rows", ir::kInt32), columns = ir::make_var("columns", ir::kInt32);
  const ir::Expr bytes = ir::binary(ir::BinaryOp::mul, ir::var_ref(columns), ir::int_imm(2));
  const targets::cuda::TensorMap plan{0,       ir::kFloat16, {ir::var_ref(columns), ir::var_ref(rows)},
                                      {bytes}, {64, 64},     128};
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{0, 64}, {64, 0}, {0, 0}}) {
    runtime::cuda::TensorMaps maps;
    const auto map = maps.of(**device, plan, nullptr, {{rows.get(), {m, m}}, {columns.get(), {n, n}}});
    ASSERT_TRUE(map.ok()) << render(map.error());
    EXPECT_EQ((*map)->words[1], 1u);
    EXPECT_EQ(*maps.of(**device, plan, nullptr, {{rows.get(), {m, m}}, {columns.get(), {n, n}}}), *map);
  }
}

}  // namespace
}  // namespace tilepilot::testing
