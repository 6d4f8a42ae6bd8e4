// Diagnostics of what CUDA needs from outside: NVRTC, the driver, a GPU.
#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "tests/fake_library.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot::testing {
namespace {

using runtime::cuda::Device;
using runtime::cuda::Nvrtc;

class Cuda : public DiagnosticTest {};

TEST_F(Cuda, NoNvrtc) {
  Nvrtc compiler({.library = folder_ / "libnvrtc.so.13"});
  DiagnosticList warnings;
  expect_diagnostic("nvrtc_missing", compiler.compile("", "sm_90a", warnings));
}

TEST_F(Cuda, NoDriver) { expect_diagnostic("driver_missing", Device::open({.library = folder_ / "libcuda.so.1"})); }

TEST_F(Cuda, KernelThatFails) {
  const auto library = fake_library(folder_, "libcuda.so.1", fake_driver_source(13000, 719));
  const auto device = Device::open({.library = library});
  ASSERT_TRUE(device.ok()) << render(sources_, device.error());
  expect_diagnostic("device_failed", (*device)->wait(nullptr));
}

}  // namespace
}  // namespace tilepilot::testing
