// Updates of one element by all threads, for device_test.cpp. Elements 0 to 4 of `place` are put, added to, and become
// the least, the greatest and the bits of all values.
#define UPDATES(type, computed)                                                                  \
  extern "C" __global__ void updates_##type(global_array<type> place, global_array<type> values, \
                                            global_array<computed> before) {                     \
    const computed x = convert<computed>(values[blockIdx.x * blockDim.x + threadIdx.x]);         \
    const computed old = atomic_update<add_update>(place + 1, x);                                \
    atomic_update<min_update>(place + 2, x);                                                     \
    atomic_update<max_update>(place + 3, x);                                                     \
    if (x == computed(5)) atomic_update<put_update>(place, x);                                   \
    if (old == computed(0)) before[0] = atomic_read(place + 5);                                  \
    if (blockIdx.x == 0 && threadIdx.x == 0) before[1] = plain_update<add_update>(place + 6, x); \
    if (blockIdx.x == 0 && threadIdx.x == 0) before[2] = plain_read(place + 5);                  \
  }
UPDATES(int8_t, int8_t)
UPDATES(uint8_t, uint8_t)
UPDATES(int16_t, int16_t)
UPDATES(int32_t, int32_t)
UPDATES(uint32_t, uint32_t)
UPDATES(int64_t, int64_t)
UPDATES(uint64_t, uint64_t)
UPDATES(float, float)
UPDATES(double, double)
UPDATES(float16, float)
UPDATES(bfloat16, float)
UPDATES(float8_e5m2, float)
#define BITS(type)                                                                                                  \
  extern "C" __global__ void bits_##type(global_array<type> place, global_array<type> values, global_array<type>) { \
    atomic_update<or_update>(place + 4, values[blockIdx.x * blockDim.x + threadIdx.x]);                             \
  }
BITS(uint8_t)
BITS(int16_t)
BITS(int32_t)
BITS(uint32_t)
BITS(int64_t)
BITS(uint64_t)

// The same in shared memory: a histogram of 16 numbers by each width.
extern "C" __global__ void histogram(global_array<int32_t> values, global_array<int32_t> words,
                                     global_array<float16> halves, global_array<int8_t> bytes) {
  shared_array<int32_t> word = shared_tile<int32_t>(0, 16);
  shared_array<float16> half = shared_tile<float16>(1024, 16);
  shared_array<int8_t> byte = shared_tile<int8_t>(2048, 16);
  if (threadIdx.x < 16) word[threadIdx.x] = 0, half[threadIdx.x] = float16{0}, byte[threadIdx.x] = 0;
  sync_threads();
  const int32_t bin = values[threadIdx.x];
  atomic_update<add_update>(word + bin, 1);
  atomic_update<add_update>(half + bin, 1.0f);
  atomic_update<add_update>(byte + bin, int8_t(1));
  sync_threads();
  if (threadIdx.x < 16) {
    words[threadIdx.x] = word[threadIdx.x];
    halves[threadIdx.x] = half[threadIdx.x];
    bytes[threadIdx.x] = byte[threadIdx.x];
  }
}
