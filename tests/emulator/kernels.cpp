#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {

const KernelText& vector_add() {
  static const KernelText kernel{R"(
extern "C" __global__ void __launch_bounds__(32) main_0(global_array<float> A, global_array<float> B, global_array<float> C, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * 32 + threadIdx.x;
  if (i < n) {
    C[i] = A[i] + B[i];  // add
  }
}
)"};
  return kernel;
}

const KernelText& reverse() {
  static const KernelText kernel{R"(
extern "C" __global__ void __launch_bounds__(64) main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 64);
  tile[threadIdx.x] = A[blockIdx.x * 64 + threadIdx.x];  // fill
  sync_threads();  // barrier
  B[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];  // turn
}
)"};
  return kernel;
}

const KernelText& block_sum() {
  static const KernelText kernel{R"(
extern "C" __global__ void __launch_bounds__(128) main_0(global_array<float> A, global_array<float> B) {
  shared_array<float> sums = shared_tile<float>(0, 4);
  registers<float, 1> sum;
  sum[0] = A[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) {
    sum[0] += shuffle_xor(sum[0], distance, 32);  // warp
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum[0];  // store
  }
  sync_threads();  // barrier
  sum[0] = sums[0] + sums[1] + sums[2] + sums[3];  // load
  if (threadIdx.x == 0) {
    B[0] = sum[0];
  }
}
)"};
  return kernel;
}

const KernelText& plain_gemm() {
  static const KernelText kernel{R"(
extern "C" __global__ void __launch_bounds__(256) main_0(global_array<float> A, global_array<float> B, global_array<float> C, int64_t n) {
  shared_array<float> A_shared = shared_tile<float>(0, 256);
  shared_array<float> B_shared = shared_tile<float>(1024, 256);
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  const int64_t m = blockIdx.y * 16 + row, l = blockIdx.x * 16 + column;
  registers<float, 1> sum;
  sum[0] = 0;
  for (int64_t k = 0; k < n; k += 16) {
    A_shared[row * 16 + column] = A[m * n + k + column];  // load A
    B_shared[row * 16 + column] = B[(k + row) * n + l];  // load B
    sync_threads();  // loaded
    for (int i = 0; i < 16; ++i) {
      sum[0] += A_shared[row * 16 + i] * B_shared[i * 16 + column];  // product
    }
    sync_threads();  // used
  }
  C[m * n + l] = sum[0];
}
)"};
  return kernel;
}

// Rows of 32 elements are 4 chunks of 16 bytes; chunk c of row r lies at c ^ (r / 2 % 4).
const KernelText& tensor_gemm() {
  static const KernelText kernel{R"(
extern "C" __global__ void __launch_bounds__(128) main_0(global_array<float16> A, global_array<float16> B, global_array<float> C, int64_t m, int64_t n, int64_t k) {
  shared_array<float16> A_shared = shared_tile<float16>(0, 12288);
  shared_array<float16> B_shared = shared_tile<float16>(24576, 12288);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t m_first = blockIdx.y * 128, n_first = blockIdx.x * 128;
  registers<float, 128> C_local;
  for (int i = 0; i < 128; ++i) {
    C_local[i] = 0;
  }
  for (int stage = 0; stage < 2; ++stage) {
    for (int i = 0; i < 4; ++i) {
      const int row = i * 32 + threadIdx.x / 4, chunk = threadIdx.x % 4, place = stage * 4096 + row * 32 + (chunk ^ (row / 2 % 4)) * 8;
      async_copy<16>(A_shared + place, A + ((m_first + row) * k + stage * 32 + chunk * 8), m_first + row < m && stage * 32 < k);  // first A
      async_copy<16>(B_shared + place, B + ((n_first + row) * k + stage * 32 + chunk * 8), n_first + row < n && stage * 32 < k);  // first B
    }
    commit_copies();
  }
  for (int64_t step = 0; step < k / 32; ++step) {
    const int now = step % 3, next = (step + 2) % 3;
    wait_copies<1>();  // wait
    sync_threads();  // barrier
    if (step + 2 < k / 32) {
      for (int i = 0; i < 4; ++i) {
        const int row = i * 32 + threadIdx.x / 4, chunk = threadIdx.x % 4, place = next * 4096 + row * 32 + (chunk ^ (row / 2 % 4)) * 8;
        async_copy<16>(A_shared + place, A + ((m_first + row) * k + (step + 2) * 32 + chunk * 8), m_first + row < m);  // next A
        async_copy<16>(B_shared + place, B + ((n_first + row) * k + (step + 2) * 32 + chunk * 8), n_first + row < n);  // next B
      }
    }
    commit_copies();
    for (int part = 0; part < 2; ++part) {
      registers<float16, 32> A_frag;
      registers<float16, 32> B_frag;
      for (int i = 0; i < 4; ++i) {
        const int row = (warp / 2) * 64 + i * 16 + lane % 16, chunk = part * 2 + lane / 16;
        ldmatrix<4>(&A_frag[i * 8], A_shared + (now * 4096 + row * 32 + (chunk ^ (row / 2 % 4)) * 8));  // load A
      }
      for (int i = 0; i < 4; ++i) {
        const int row = (warp % 2) * 64 + i * 16 + lane / 16 * 8 + lane % 8, chunk = part * 2 + lane / 8 % 2;
        ldmatrix<4>(&B_frag[i * 8], B_shared + (now * 4096 + row * 32 + (chunk ^ (row / 2 % 4)) * 8));  // load B
      }
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 8; ++j) {
          mma_m16n8k16(&C_local[(i * 8 + j) * 4], &A_frag[i * 8], &B_frag[j * 4]);  // mma
        }
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int half = 0; half < 2; ++half) {
        const int64_t row = m_first + (warp / 2) * 64 + i * 16 + half * 8 + lane / 4, column = n_first + (warp % 2) * 64 + j * 8 + lane % 4 * 2;
        if (row < m && column < n) {
          copy_vector<8>(C + (row * n + column), &C_local[(i * 8 + j) * 4 + half * 2]);  // store
        }
      }
    }
  }
}
)"};
  return kernel;
}

}  // namespace tilepilot::emulator::testing
