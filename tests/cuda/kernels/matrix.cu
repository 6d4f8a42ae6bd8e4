// One product of each kind, for device_test.cpp: a thread's elements of a, b and c follow each other.
template <class C, class A, class B, int c_count, int a_count, int b_count>
struct operands {
  registers<C, c_count> c;
  registers<A, a_count> a;
  registers<B, b_count> b;
  __device__ operands(const A* from_a, const B* from_b, const C* from_c) {
    for (int i = 0; i < a_count; ++i) a[i] = from_a[threadIdx.x * a_count + i];
    for (int i = 0; i < b_count; ++i) b[i] = from_b[threadIdx.x * b_count + i];
    for (int i = 0; i < c_count; ++i) c[i] = from_c[threadIdx.x * c_count + i];
  }
  __device__ void give(C* to) const {
    for (int i = 0; i < c_count; ++i) to[threadIdx.x * c_count + i] = c[i];
  }
};
#define PRODUCT(name, mma, C, A, B, c_count, a_count, b_count)                      \
  extern "C" __global__ void name(const A* a, const B* b, C* c) {                   \
    operands<C, A, B, c_count, a_count, b_count> held(a, b, c);                     \
    mma(&held.c[0], &held.a[0], &held.b[0]);                                        \
    held.give(c);                                                                   \
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
