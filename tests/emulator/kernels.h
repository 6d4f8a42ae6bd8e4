// Right kernels, as the code generator would write them; tests of defects break them.
#pragma once

#include "tests/emulator/harness.h"

namespace tilepilot::emulator::testing {

// C = A + B over n elements.
const KernelText& vector_add();
// Each block of 64 threads turns its 64 integers around, through shared memory.
const KernelText& reverse();
// The sum of 128 floats by shuffles and four words of shared memory.
const KernelText& block_sum();
// C = A * B in fp32, tiles of 16 x 16 and 256 threads; n by n, a multiple of 16.
const KernelText& plain_gemm();
// C (fp32) = A * B^T with A m x k and B n x k in fp16; tiles of 128 x 128 x 32, three stages, swizzled shared memory,
// ldmatrix and mma by 128 threads.
const KernelText& tensor_gemm();
constexpr int64_t kTensorGemmShared = 3 * 2 * 128 * 32 * 2;

}  // namespace tilepilot::emulator::testing
