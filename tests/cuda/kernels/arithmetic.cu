// Integer arithmetic and the element-wise functions, for device_test.cpp.
#define FUNCTION(name)                                                                                      \
  extern "C" __global__ void float_##name(global_array<float> x, global_array<float> y, int64_t count) {    \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                       \
    if (i < count) y[i] = name##_of(x[i]);                                                                  \
  }                                                                                                         \
  extern "C" __global__ void double_##name(global_array<double> x, global_array<double> y, int64_t count) { \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                       \
    if (i < count) y[i] = name##_of(x[i]);                                                                  \
  }
FUNCTION(exp)
FUNCTION(exp2)
FUNCTION(exp10)
FUNCTION(log)
FUNCTION(log2)
FUNCTION(log10)
FUNCTION(log1p)
FUNCTION(sqrt)
FUNCTION(rsqrt)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tan)
FUNCTION(sinh)
FUNCTION(cosh)
FUNCTION(tanh)
FUNCTION(asin)
FUNCTION(acos)
FUNCTION(atan)
FUNCTION(asinh)
FUNCTION(acosh)
FUNCTION(atanh)
FUNCTION(erf)
FUNCTION(sigmoid)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(trunc)
FUNCTION(rint)
FUNCTION(abs)
#define FUNCTION_OF_TWO(name)                                                                                      \
  extern "C" __global__ void float_##name(global_array<float> x, global_array<float> y, global_array<float> z,     \
                                          int64_t count) {                                                         \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                              \
    if (i < count) z[i] = name##_of(x[i], y[i]);                                                                   \
  }                                                                                                                \
  extern "C" __global__ void double_##name(global_array<double> x, global_array<double> y, global_array<double> z, \
                                           int64_t count) {                                                        \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                              \
    if (i < count) z[i] = name##_of(x[i], y[i]);                                                                   \
  }
FUNCTION_OF_TWO(pow)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(hypot)
FUNCTION_OF_TWO(nextafter)
FUNCTION_OF_TWO(fmod)
FUNCTION_OF_TWO(ldexp)

// Of two integers: division, remainder, extrema, bits.
#define INTEGERS(type)                                                                                           \
  extern "C" __global__ void arithmetic_##type(global_array<type> x, global_array<type> y, global_array<type> z, \
                                               int64_t count) {                                                  \
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;                                            \
    if (i >= count) return;                                                                                      \
    const global_array<type> row = z + i * 8;                                                                    \
    row[0] = floor_div<type>(x[i], y[i]);                                                                        \
    row[1] = floor_mod<type>(x[i], y[i]);                                                                        \
    row[2] = min_of<type>(x[i], y[i]);                                                                           \
    row[3] = max_of<type>(x[i], y[i]);                                                                           \
    row[4] = abs_of(x[i]);                                                                                       \
    row[5] = sizeof(type) >= 4 ? popcount_of(x[i]) : type(0);                                                    \
    row[6] = sizeof(type) >= 4 ? leading_zeros_of(x[i]) : type(0);                                               \
    row[7] = clamp_to<type>(x[i], type(3), type(90));                                                            \
  }
INTEGERS(int8_t)
INTEGERS(uint8_t)
INTEGERS(int16_t)
INTEGERS(int32_t)
INTEGERS(uint32_t)
INTEGERS(int64_t)
INTEGERS(uint64_t)

// Bits: x is NaN, infinite, finite, then of x and y the first is the least, the greatest.
extern "C" __global__ void tests_of_floats(global_array<float> x, global_array<float> y, global_array<int32_t> z,
                                           int64_t count) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  const uint32_t least = bits_of(min_of<float>(x[i], y[i])), greatest = bits_of(max_of<float>(x[i], y[i]));
  z[i] = is_nan(x[i]) | is_inf(x[i]) << 1 | is_finite(x[i]) << 2 | (least == bits_of(x[i])) << 3 |
         (greatest == bits_of(x[i])) << 4 | (x[i] < infinity) << 5 | (not_a_number != not_a_number) << 6;
}
