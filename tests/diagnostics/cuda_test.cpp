// Diagnostics of what CUDA needs from outside: NVRTC, the driver, a GPU.
#include "compiler/diagnostics/render.h"
#include "compiler/driver/emit.h"
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

// What a program that is compiled for a GPU is told, with its own lines.
class OnDevice : public DiagnosticTest {
 protected:
  void expect_of(const std::string& kind, const std::string& body, int blocks = 1) {
    driver::CompileRequest request;
    request.name = kind + ".py";
    request.target = "cuda:sm_90a";
    request.text =
        "import tilelang.language as T\n\n@T.prim_func\ndef main(A: T.Tensor((1024, 64), 'float16'), B: "
        "T.Tensor((1024, 64), 'float32')):\n    with T.Kernel(" +
        std::to_string(blocks) + ", threads=96) as bx:\n" + body;
    const auto emission = driver::emit(sources_, request, "source");
    ASSERT_EQ(emission.diagnostics.items().size(), 1u);
    expect_golden("diagnostics/golden/" + kind + ".txt", render(sources_, emission.diagnostics));
  }
};

TEST_F(OnDevice, TooLarge) {
  expect_of("too_large_for_device",
            "        a = T.alloc_shared((1024, 64), 'float32')\n        b = T.alloc_shared((16, 64), 'float16')\n"
            "        T.copy(B, a)\n        T.copy(A[0, 0], b)\n        T.copy(b, B[0, 0])\n        T.copy(a, B)\n");
}

TEST_F(OnDevice, Race) {
  expect_of("iteration_race", "        for i in T.Parallel(960):\n            A[i, 0] = A[i + 32, 0]\n");
}

TEST_F(OnDevice, BlocksRace) {
  expect_of("block_race", "        for i in T.Parallel(64):\n            B[0, i] = B[0, i] + 1.0\n", 4);
}

TEST_F(OnDevice, Slow) {
  expect_of("slow_on_device",
            "        a = T.alloc_shared((16, 64), 'float16')\n        c = T.alloc_fragment((16, 16), 'float32')\n"
            "        T.copy(A[0, 0], a)\n        T.gemm(a, a, c, transpose_B=True, clear_accum=True)\n"
            "        T.copy(c, B[0:16, 0:16])\n");
}

}  // namespace
}  // namespace tilepilot::testing
