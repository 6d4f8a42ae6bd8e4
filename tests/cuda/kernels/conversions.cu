// Every conversion of small elements, for device_test.cpp: stored to computed, and back from float and double.
#define CONVERSIONS(type)                                                                                          \
  extern "C" __global__ void decode_##type(global_array<type> from, global_array<float> to, int64_t count) {       \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                              \
    if (i < count) to[i] = to_float(from[i]);                                                                      \
  }                                                                                                                \
  extern "C" __global__ void encode_##type(global_array<float> from, global_array<type> to, int64_t count) {       \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                              \
    if (i < count) to[i] = to_##type(from[i]);                                                                     \
  }                                                                                                                \
  extern "C" __global__ void round_##type##_all(global_array<float> from, global_array<float> to, int64_t count) { \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                              \
    if (i < count) to[i] = round_##type(from[i]);                                                                  \
  }                                                                                                                \
  extern "C" __global__ void narrow_##type(global_array<double> from, global_array<type> to, int64_t count) {      \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                              \
    if (i < count) to[i] = convert<type>(from[i]);                                                                 \
  }
CONVERSIONS(float16)
CONVERSIONS(bfloat16)
CONVERSIONS(float8_e4m3)
CONVERSIONS(float8_e5m2)
CONVERSIONS(float8_e8m0)
CONVERSIONS(float4_e2m1)
CONVERSIONS(tfloat32)

// Of one integer: what it becomes as 4 bits, and through other types.
extern "C" __global__ void integers(global_array<int32_t> from, global_array<int32_t> to, int64_t count) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  const int32_t x = from[i];
  const global_array<int32_t> row = to + i * 8;
  row[0] = to_int4(x).value;
  row[1] = to_uint4(x).value;
  row[2] = nibble_of(to_int4(x));
  row[3] = convert<int4>(convert<float>(x)).value;
  row[4] = convert<int32_t>(convert<float16>(x & 1023));
  row[5] = convert<uint4>(to_int4(x)).value;
  row[6] = nibble_of(to_float4_e2m1(static_cast<float>(x)));
  row[7] = convert<int8_t>(int16_t(x));
}
