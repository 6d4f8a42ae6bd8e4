// What a launch of ours costs beside what the driver takes for the same one: the host's time of many launches of a
// kernel, and of as many bare calls of the driver with the same function, grid and parameters.
#pragma once

#include <cstddef>

#include "compiler/ir/stmt.h"
#include "compiler/runtime/cuda/cuda_kernel.h"

namespace tilepilot::testing {

// Microseconds a launch: medians over rounds in which both take turns.
struct LaunchOverhead {
  double ours = 0, bare = 0;
  double beyond = 0;  // the median of the differences
  size_t maps = 0;    // TMA descriptors among the parameters
};

// Kernels that do next to nothing with three tensors, as IR.
struct SmallKernel {
  const char* name;
  const char* text;
};
inline constexpr SmallKernel kThreeTensors{"three tensors", R"(
program add(A: float32[128], B: float32[128], C: float32[128]) {
  kernel bx in 1 threads 128 {
    parallel i in 128 {
      C[i] = A[i] + B[i]
    }
  }
}
)"};
inline constexpr SmallKernel kSymbolicExtents{"symbolic extents", R"(
program add<m: int32, n: int32>(A: float32[m, n], B: float32[m, n], C: float32[m, n]) {
  kernel bx in m threads 128 {
    parallel i in 64 {
      if i < n {
        C[bx, i] = A[bx, i] + B[bx, i]
      }
    }
  }
}
)"};
inline constexpr SmallKernel kTensorMaps{"three tensor maps", R"(
program product(A: float16[64, 256], B: float16[64, 256], C: float16[64, 64]) {
  kernel bx, by in 1, 1 threads 128 {
    shared A_shared: float16[64, 64]
    shared B_shared: float16[64, 64]
    fragment sum: float32[64, 64]
    fill sum = 0.0
    pipelined k in 4 stages 2 {
      copy A[by * 64 : +64, k * 64 : +64] -> A_shared
      copy B[bx * 64 : +64, k * 64 : +64] -> B_shared
      gemm sum += A_shared @ B_shared.T
    }
    copy sum -> C[by * 64 : +64, bx * 64 : +64]
  }
}
)"};

// For programs whose parameters are tensors. Extents that are no constants are 64.
Result<LaunchOverhead> measure_launches(const ir::Program& program, const runtime::cuda::CudaOptions& options);

}  // namespace tilepilot::testing
