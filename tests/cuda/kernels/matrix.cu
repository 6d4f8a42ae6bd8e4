// One product of each kind, for device_test.cpp: a thread's elements of a, b and c follow each other.
template <class T, int count>
TP_INLINE void take(registers<T, count>& held, global_array<T> from) {
  for (int i = 0; i < count; ++i) held[i] = from[threadIdx.x * count + i];
}
template <class T, int count>
TP_INLINE void give(global_array<T> to, const registers<T, count>& held) {
  for (int i = 0; i < count; ++i) to[threadIdx.x * count + i] = held[i];
}
#define PRODUCT(name, mma, C, A, B, c_count, a_count, b_count)                                              \
  extern "C" __global__ void name(global_array<A> from_a, global_array<B> from_b, global_array<C> from_c) { \
    registers<A, a_count> a;                                                                                \
    registers<B, b_count> b;                                                                                \
    registers<C, c_count> c;                                                                                \
    take(a, from_a), take(b, from_b), take(c, from_c);                                                      \
    mma(&c[0], &a[0], &b[0]);                                                                               \
    give(from_c, c);                                                                                        \
  }
PRODUCT(f16_k8, mma_m16n8k8, float, float16, float16, 4, 4, 2)
PRODUCT(bf16_k8, mma_m16n8k8, float, bfloat16, bfloat16, 4, 4, 2)
PRODUCT(f16_k16, mma_m16n8k16, float, float16, float16, 4, 8, 4)
PRODUCT(bf16_k16, mma_m16n8k16, float, bfloat16, bfloat16, 4, 8, 4)
PRODUCT(f16_sum_k8, mma_m16n8k8, float16, float16, float16, 4, 4, 2)
PRODUCT(f16_sum_k16, mma_m16n8k16, float16, float16, float16, 4, 8, 4)
PRODUCT(tf32_k4, mma_m16n8k4, float, tfloat32, tfloat32, 4, 2, 1)
PRODUCT(tf32_k8, mma_m16n8k8, float, tfloat32, tfloat32, 4, 4, 2)
PRODUCT(f32_k4, mma_m16n8k4, float, float, float, 4, 2, 1)
PRODUCT(f32_k8, mma_m16n8k8, float, float, float, 4, 4, 2)
PRODUCT(s8_s8_k16, mma_m16n8k16, int32_t, int8_t, int8_t, 4, 8, 4)
PRODUCT(u8_u8_k16, mma_m16n8k16, int32_t, uint8_t, uint8_t, 4, 8, 4)
PRODUCT(s8_u8_k16, mma_m16n8k16, int32_t, int8_t, uint8_t, 4, 8, 4)
PRODUCT(u8_s8_k16, mma_m16n8k16, int32_t, uint8_t, int8_t, 4, 8, 4)
PRODUCT(s8_s8_k32, mma_m16n8k32, int32_t, int8_t, int8_t, 4, 16, 8)
PRODUCT(u8_u8_k32, mma_m16n8k32, int32_t, uint8_t, uint8_t, 4, 16, 8)
PRODUCT(s8_u8_k32, mma_m16n8k32, int32_t, int8_t, uint8_t, 4, 16, 8)
PRODUCT(u8_s8_k32, mma_m16n8k32, int32_t, uint8_t, int8_t, 4, 16, 8)
PRODUCT(f64_k4, mma_m8n8k4, double, double, double, 2, 1, 1)
#if __CUDA_ARCH__ >= 890
PRODUCT(e4m3_e4m3_k32, mma_m16n8k32, float, float8_e4m3, float8_e4m3, 4, 16, 8)
PRODUCT(e5m2_e5m2_k32, mma_m16n8k32, float, float8_e5m2, float8_e5m2, 4, 16, 8)
PRODUCT(e4m3_e5m2_k32, mma_m16n8k32, float, float8_e4m3, float8_e5m2, 4, 16, 8)
PRODUCT(e5m2_e4m3_k32, mma_m16n8k32, float, float8_e5m2, float8_e4m3, 4, 16, 8)
#endif
#if __CUDA_ARCH__ >= 900
PRODUCT(f64_m16_k4, mma_m16n8k4, double, double, double, 4, 2, 1)
PRODUCT(f64_m16_k8, mma_m16n8k8, double, double, double, 4, 4, 2)
PRODUCT(f64_m16_k16, mma_m16n8k16, double, double, double, 4, 8, 4)
#endif
