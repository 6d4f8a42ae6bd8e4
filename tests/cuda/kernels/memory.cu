// Copies between global memory, shared memory and registers, for device_test.cpp. One block of 32 threads.

// Rows of 32 vectors of each width: global to registers to shared to global.
template <int bytes>
static __device__ void through(global_array<uint8_t> from, global_array<uint8_t> to) {
  shared_array<uint8_t> tile = shared_tile<uint8_t>(1024, 512);
  registers<uint8_t, 16> held;
  copy_vector<bytes>(&held[0], from + threadIdx.x * bytes);
  copy_vector<bytes>(tile + threadIdx.x * bytes, &held[0]);
  sync_threads();
  copy_vector<bytes>(to + threadIdx.x * bytes, tile + (threadIdx.x ^ 1) * bytes);
  sync_threads();
}
extern "C" __global__ void vectors(global_array<uint8_t> from, global_array<uint8_t> to) {
  through<1>(from, to);
  through<2>(from + 512, to + 512);
  through<4>(from + 1024, to + 1024);
  through<8>(from + 1536, to + 1536);
  through<16>(from + 2048, to + 2048);
  zero_vector<16>(to + 2560 + threadIdx.x * 16);
  if (threadIdx.x % 2 == 0) zero_vector<4>(to + threadIdx.x * 4 + 1024);
  if (threadIdx.x == 1) zero_vector<8>(to + 1536), zero_vector<2>(to + 512), zero_vector<1>(to);
}

// As many bytes a thread, those of odd threads are outside.
template <int bytes>
static __device__ void fetched(global_array<uint8_t> from, global_array<uint8_t> to) {
  shared_array<uint8_t> tile = shared_tile<uint8_t>(0, 1024), plain = shared_tile<uint8_t>(1024, 1024);
  async_copy<bytes>(tile + threadIdx.x * bytes, from + threadIdx.x * bytes, threadIdx.x % 2 == 0);
  commit_copies();
  async_copy<bytes>(plain + threadIdx.x * bytes, from + threadIdx.x * bytes);
  commit_copies();
  wait_copies<1>();
  wait_copies<0>();
  sync_threads();
  copy_vector<bytes>(to + threadIdx.x * bytes, tile + threadIdx.x * bytes);
  copy_vector<bytes>(to + 512 + threadIdx.x * bytes, plain + threadIdx.x * bytes);
  sync_threads();
}
extern "C" __global__ void async_copies(global_array<uint8_t> from, global_array<uint8_t> to) {
  fetched<4>(from, to);
  fetched<8>(from, to + 1024);
  fetched<16>(from, to + 2048);
}

// A stack of 32 rows of 8 elements, through each form of ldmatrix: 4 words a thread and form, in the order x4, x4
// transposed, x2, x2 transposed, x1, x1 transposed.
extern "C" __global__ void matrices(global_array<uint16_t> from, global_array<uint16_t> to) {
  shared_array<float16> tile = shared_tile<float16>(0, 256);
  copy_vector<16>(tile + threadIdx.x * 8, from + threadIdx.x * 8);
  sync_threads();
  registers<float16, 48> held;
  for (int i = 0; i < 48; ++i) held[i] = float16{0};
  ldmatrix<4>(&held[0], tile + threadIdx.x * 8);
  ldmatrix_transposed<4>(&held[8], tile + threadIdx.x * 8);
  ldmatrix<2>(&held[16], tile + threadIdx.x * 8);
  ldmatrix_transposed<2>(&held[24], tile + threadIdx.x * 8);
  ldmatrix<1>(&held[32], tile + threadIdx.x * 8);
  ldmatrix_transposed<1>(&held[40], tile + threadIdx.x * 8);
  for (int form = 0; form < 6; ++form) copy_vector<16>(to + (form * 32 + threadIdx.x) * 8, &held[form * 8]);
}

#if __CUDA_ARCH__ >= 900
// What ldmatrix took, stored by each form of stmatrix: the stack again, or each of its matrices transposed.
extern "C" __global__ void stored_matrices(global_array<uint16_t> from, global_array<uint16_t> to) {
  shared_array<bfloat16> tile = shared_tile<bfloat16>(0, 256);
  copy_vector<16>(tile + threadIdx.x * 8, from + threadIdx.x * 8);
  sync_threads();
  registers<bfloat16, 8> held;
  ldmatrix<4>(&held[0], tile + threadIdx.x * 8);
  for (int form = 0; form < 6; ++form) {
    sync_threads();
    zero_vector<16>(tile + threadIdx.x * 8);
    sync_threads();
    if (form == 0) stmatrix<4>(tile + threadIdx.x * 8, &held[0]);
    if (form == 1) stmatrix_transposed<4>(tile + threadIdx.x * 8, &held[0]);
    if (form == 2) stmatrix<2>(tile + threadIdx.x * 8, &held[0]);
    if (form == 3) stmatrix_transposed<2>(tile + threadIdx.x * 8, &held[0]);
    if (form == 4) stmatrix<1>(tile + threadIdx.x * 8, &held[0]);
    if (form == 5) stmatrix_transposed<1>(tile + threadIdx.x * 8, &held[0]);
    sync_threads();
    copy_vector<16>(to + (form * 32 + threadIdx.x) * 8, tile + threadIdx.x * 8);
  }
}
#endif

// Registers of every size that nothing has written: 8 numbers a thread, which are of either sign.
template <class T>
static __device__ float unwritten(int which) {
  registers<T, 4> held;
  poison(held);
  held[0] = static_cast<T>(1);
  return static_cast<float>(held[1 + which]);
}
extern "C" __global__ void poisoned(global_array<float> to) {
  registers<float16, 4> halves;
  poison(halves);
  registers<float8_e5m2, 4> small;
  poison(small);
  const float all[8] = {unwritten<float>(0),    unwritten<double>(1),         unwritten<int64_t>(0), unwritten<int32_t>(1),
                        unwritten<int16_t>(0), unwritten<int8_t>(1), to_float(halves[3]), to_float(small[2])};
#pragma unroll
  for (int i = 0; i < 8; ++i) to[threadIdx.x * 8 + i] = all[i] + (unwritten<bool>(0) ? 1.0f : 0.0f);
}
