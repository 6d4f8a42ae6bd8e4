// Hardware barriers, bulk copies and asynchronous products, for device_test.cpp. What is called wgmma_... stands before
// this text.

// 64 threads: the second warp waits until the first one's copies are there.
extern "C" __global__ void copies_arrive(global_array<int32_t> from, global_array<int32_t> to) {
  shared_array<uint64_t> barrier = shared_tile<uint64_t>(0, 2);
  shared_array<int32_t> tile = shared_tile<int32_t>(1024, 64);
  if (threadIdx.x == 0) barrier_init(barrier, 32), barrier_init(barrier + 1, 32);
  sync_threads();
  for (int round = 0; round < 4; ++round) {
    if (threadIdx.x < 32) {
      if (round > 0) barrier_wait(barrier + 1, (round + 1) % 2);
      async_copy<8>(tile + threadIdx.x * 2, from + round * 64 + threadIdx.x * 2);
      barrier_arrive_copied(barrier);
    } else {
      barrier_wait(barrier, round % 2);
      const int lane = threadIdx.x - 32;
      to[round * 64 + lane] = tile[63 - lane];
      to[round * 64 + 32 + lane] = tile[31 - lane];
      barrier_arrive(barrier + 1);
    }
  }
}

#if __CUDA_ARCH__ >= 900
// 128 threads: 4096 bytes to shared memory, each byte changed, and back.
extern "C" __global__ void bulk_copies(global_array<uint8_t> from, global_array<uint8_t> to) {
  shared_array<uint64_t> barrier = shared_tile<uint64_t>(0, 1);
  shared_array<uint8_t> tile = shared_tile<uint8_t>(1024, 4096);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    fence_barriers();
  }
  sync_threads();
  if (threadIdx.x < 32 && elect_thread()) {
    barrier_expect(barrier, 1024);
    barrier_arrive_expect(barrier, 3072);
    bulk_load(tile, from, 1024, barrier);
    bulk_load(tile + 1024, from + 1024, 3072, barrier);
  }
  barrier_wait(barrier, 0);
  for (int i = threadIdx.x; i < 4096; i += 128) tile[i] ^= 0x55;
  fence_async();
  sync_threads();
  if (threadIdx.x == 0) {
    bulk_store(to, tile, 4096);
    commit_stores();
    wait_stores<0>();
  }
}

// A box of 8 rows of 16 floats of a matrix, or what of it lies inside, to another one and once more added to a third.
// The matrices are parameters, too: the emulator knows memory by these.
extern "C" __global__ void boxes(global_array<float>, global_array<float>, global_array<float>,
                                 global_array<float> seen, int64_t x, int64_t y,
                                 const __grid_constant__ tensor_map from, const __grid_constant__ tensor_map to,
                                 const __grid_constant__ tensor_map sum) {
  shared_array<uint64_t> barrier = shared_tile<uint64_t>(0, 1);
  shared_array<float> tile = shared_tile<float>(1024, 128);
  if (threadIdx.x == 0) {
    prefetch_map(from);
    barrier_init(barrier, 1);
    fence_barriers();
    fence_async();
    barrier_arrive_expect(barrier, 512);
    tma_load_2d(tile, from, barrier, static_cast<int>(x), static_cast<int>(y));
  }
  sync_threads();
  barrier_wait(barrier, 0);
  seen[threadIdx.x] = tile[threadIdx.x];
  if (threadIdx.x == 0) {
    tma_store_2d(to, tile, static_cast<int>(x), static_cast<int>(y));
    tma_add_2d(sum, tile, static_cast<int>(x), static_cast<int>(y));
    commit_stores();
    wait_stores_read<1>();
    wait_stores<0>();
  }
}

// Each rank and form is compiled, none is launched.
extern "C" __global__ void all_boxes(const __grid_constant__ tensor_map map) {
  shared_array<uint64_t> barrier = shared_tile<uint64_t>(0, 1);
  shared_array<float> tile = shared_tile<float>(1024, 128);
  tma_load_1d(tile, map, barrier, 0);
  tma_load_3d(tile, map, barrier, 0, 1, 2);
  tma_load_4d(tile, map, barrier, 0, 1, 2, 3);
  tma_load_5d(tile, map, barrier, 0, 1, 2, 3, 4);
  tma_load_multicast_1d(tile, map, barrier, 3, 0);
  tma_load_multicast_2d(tile, map, barrier, 3, 0, 1);
  tma_load_multicast_3d(tile, map, barrier, 3, 0, 1, 2);
  tma_load_multicast_4d(tile, map, barrier, 3, 0, 1, 2, 3);
  tma_load_multicast_5d(tile, map, barrier, 3, 0, 1, 2, 3, 4);
  tma_store_1d(map, tile, 0);
  tma_store_3d(map, tile, 0, 1, 2);
  tma_store_4d(map, tile, 0, 1, 2, 3);
  tma_store_5d(map, tile, 0, 1, 2, 3, 4);
  tma_add_1d(map, tile, 0);
  tma_add_3d(map, tile, 0, 1, 2);
  tma_add_4d(map, tile, 0, 1, 2, 3);
  tma_add_5d(map, tile, 0, 1, 2, 3, 4);
}

// c[64, 32] = a[64, 64] * b[32, 64]^T, once with a from shared memory and once from registers. Rows of a and b are 128
// bytes, swizzled: vector j of row i stands at j ^ (i % 8).
template <bool from_registers>
static __device__ void product(global_array<float16> a, global_array<float16> b, global_array<float> c) {
  shared_array<float16> a_tile = shared_tile<float16>(0, 4096), b_tile = shared_tile<float16>(8192, 2048);
  for (int vector = threadIdx.x; vector < 512; vector += 128) {
    const int to = (vector / 8 * 8 + (vector % 8 ^ vector / 8 % 8)) * 8;
    copy_vector<16>(a_tile + to, a + vector * 8);
    if (vector < 256) copy_vector<16>(b_tile + to, b + vector * 8);
  }
  fence_async();
  sync_threads();
  registers<float, 16> sum;
  for (int i = 0; i < 16; ++i) sum[i] = 1000.0f;
  const uint64_t a_place = matrix_place(a_tile, 16, 1024, 1), b_place = matrix_place(b_tile, 16, 1024, 1);
  registers<float16, 32> held;
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < 8; ++i) held[k * 8 + i] = a[(row + i / 2 % 2 * 8) * 64 + k * 16 + column + i / 4 * 8 + i % 2];
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if constexpr (from_registers)
      wgmma_m64n32k16_f32_f16_f16_ra(&sum[0], &held[k * 8], b_place + k * 2, k > 0);
    else
      wgmma_m64n32k16_f32_f16_f16(&sum[0], a_place + k * 2, b_place + k * 2, k > 0);
  }
  wgmma_commit();
  wgmma_wait<0>();
  for (int i = 0; i < 16; ++i) c[(row + i / 2 % 2 * 8) * 32 + i / 4 * 8 + column + i % 2] = sum[i];
}
extern "C" __global__ void __launch_bounds__(128, 1) product_shared(global_array<float16> a,
                                                                    global_array<float16> b,
                                                                    global_array<float> c) {
  product<false>(a, b, c);
}
extern "C" __global__ void __launch_bounds__(128, 1) product_registers(global_array<float16> a,
                                                                       global_array<float16> b,
                                                                       global_array<float> c) {
  product<true>(a, b, c);
}

// Three warp groups, of which the first gives registers to the others.
extern "C" __global__ void __launch_bounds__(384, 1) reallocated(global_array<float> c) {
  if (threadIdx.x < 128) {
    set_registers_down<40>();
    c[threadIdx.x] = 1.0f;
  } else {
    set_registers_up<232>();
    c[threadIdx.x] = 2.0f;
  }
}

// Clusters of two blocks: each waits for the other one's arrival.
extern "C" __global__ void clusters(global_array<int32_t> to) {
  shared_array<uint64_t> barrier = shared_tile<uint64_t>(0, 1);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    fence_barriers();
  }
  sync_cluster();
  const uint32_t rank = block_of_cluster();
  if (threadIdx.x == 0) {
    barrier_arrive_remote(barrier, rank ^ 1u);
    barrier_wait(barrier, 0);
    to[blockIdx.x] = static_cast<int32_t>(rank) + 10;
  }
  sync_cluster();
}
#endif
