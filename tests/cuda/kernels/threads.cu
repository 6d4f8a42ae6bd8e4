// Shuffles, votes and barriers, for device_test.cpp.

// One warp; a row of 16 numbers a thread.
template <class T>
static __device__ void shuffled(T x, int lane, int width, global_array<T> row) {
  row[0] = shuffle(x, lane, width);
  row[1] = shuffle_xor(x, lane, width);
  row[2] = shuffle_up(x, lane, width);
  row[3] = shuffle_down(x, lane, width);
}
#define SHUFFLES(type)                                                                                        \
  extern "C" __global__ void shuffles_##type(global_array<type> from, global_array<type> to, int64_t lane,    \
                                             int64_t width) {                                                 \
    shuffled<type>(from[threadIdx.x], static_cast<int>(lane), static_cast<int>(width), to + threadIdx.x * 4); \
  }
SHUFFLES(uint8_t)
SHUFFLES(float16)
SHUFFLES(float)
SHUFFLES(int64_t)
SHUFFLES(double)

extern "C" __global__ void votes(global_array<int32_t> from, global_array<int32_t> to) {
  const bool mine = from[threadIdx.x] != 0;
  to[threadIdx.x * 3] = vote_any(mine);
  to[threadIdx.x * 3 + 1] = vote_all(mine);
  to[threadIdx.x * 3 + 2] = static_cast<int32_t>(ballot(mine));
}

// 128 threads: the first two warps write what the others read, then the first of those two what the second reads.
extern "C" __global__ void named_barriers(global_array<int32_t> to) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 128);
  tile[threadIdx.x] = -1;
  sync_threads();
  if (threadIdx.x < 64) {
    tile[threadIdx.x] = threadIdx.x * 3;
    arrive_named(1, 128);
    if (threadIdx.x < 32) tile[threadIdx.x + 64] = 7;
    sync_named(2, 64);
    to[threadIdx.x] = tile[64 + threadIdx.x % 32];
  } else {
    sync_named(1, 128);
    to[threadIdx.x] = tile[threadIdx.x - 64];
  }
  sync_warp();
}

// A cooperative launch: every block sees what all blocks wrote, three times.
extern "C" __global__ void grid_barrier(global_array<int32_t> seen, global_array<int32_t> sums, int64_t blocks) {
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) seen[blockIdx.x] = static_cast<int32_t>(blockIdx.x) + round;
    sync_grid();
    if (threadIdx.x == 0) {
      int32_t sum = 0;
      for (int64_t b = 0; b < blocks; ++b) sum += atomic_read(seen + b);
      sums[round * blocks + blockIdx.x] = sum;
    }
    sync_grid();
  }
}

extern "C" __global__ void failing(int64_t number) {
  fence_device();
  if (number != 0 && threadIdx.x == 3) fail_check(static_cast<int>(number));
}
