// Asynchronous products with operands in each form that descriptors can say, laid out as CuTe writes their canonical
// layouts (cute/atom/mma_traits_sm90_gmma.hpp): a shape and strides in elements, then an exclusive or of address bits.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Form {
  int swizzle, bits;  // as descriptors and as CuTe count it
  bool transposed;
  int64_t leading, stride;  // bytes
};
constexpr Form kForms[] = {
    {0, 0, false, 128, 256}, {3, 1, false, 16, 256},  {2, 2, false, 16, 512},  {1, 3, false, 16, 1024},
    {0, 0, true, 1024, 128}, {3, 1, true, 512, 2048}, {2, 2, true, 1024, 512}, {1, 3, true, 2048, 1024},
};

// The byte where element (mn, k) of 16 bits lies.
int64_t place_of(const Form& form, int64_t mn, int64_t k) {
  constexpr int64_t kUnit = 8;  // elements of 16 bytes
  const int64_t units = int64_t{1} << form.bits, leading = form.leading / 2, stride = form.stride / 2;
  int64_t at = 0;
  if (!form.transposed) {
    // ((8, m), (T, 2)) : ((units T, SBO), (1, T)), the last one LBO without a swizzle
    at = mn % 8 * units * kUnit + mn / 8 * stride + k % kUnit + k / kUnit * (form.bits == 0 ? leading : kUnit);
  } else if (form.bits == 0) {
    // ((T, 1, m), (8, k)) : ((1, T, SBO), (T, LBO))
    at = mn % kUnit + mn / kUnit * stride + k % 8 * kUnit + k / 8 * leading;
  } else {
    // ((T, units, m), (8, k)) : ((1, T, LBO), (units T, SBO))
    at =
        mn % kUnit + mn / kUnit % units * kUnit + mn / kUnit / units * leading + k % 8 * units * kUnit + k / 8 * stride;
  }
  const int64_t byte = at * 2, mask = units - 1;
  return byte ^ ((byte >> 7 & mask) << 4);
}

std::vector<uint16_t> laid_out(const Form& form, const std::vector<float>& tile, int64_t mn_extent) {
  std::vector<uint16_t> memory(4096);
  for (int64_t mn = 0; mn < mn_extent; ++mn)
    for (int64_t k = 0; k < 16; ++k)
      memory[size_t(place_of(form, mn, k) / 2)] = to_half_bits(tile[size_t(mn * 16 + k)]);
  return memory;
}

struct Operands {
  std::vector<float> a = std::vector<float>(64 * 16), b = std::vector<float>(64 * 16), c = std::vector<float>(64 * 64);
  Operands() {
    for (size_t i = 0; i < a.size(); ++i) a[i] = float(i * 7 % 11) - 5, b[i] = float(i * 5 % 13) - 6;
    for (size_t i = 0; i < 64; ++i)
      for (size_t j = 0; j < 64; ++j)
        for (size_t k = 0; k < 16; ++k) c[i * 64 + j] += a[i * 16 + k] * b[j * 16 + k];
  }
};

// Of a thread's registers: those of warp w have rows 16 w to 16 w + 15.
std::vector<float> in_order(const std::vector<float>& held) {
  std::vector<float> c(64 * 64);
  for (size_t thread = 0; thread < 128; ++thread)
    for (size_t i = 0; i < 32; ++i)
      c[(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * 64 + i / 4 * 8 + thread % 4 * 2 + i % 2] =
          held[thread * 32 + i];
  return c;
}

KernelText kernel_of(const std::string& call) {
  return {R"(
extern "C" __global__ void __launch_bounds__(128) main_0(global_array<float16> A, global_array<float16> B, global_array<float> C) {
  shared_array<float16> A_shared = shared_tile<float16>(0, 4096);
  shared_array<float16> B_shared = shared_tile<float16>(8192, 4096);
  for (int i = threadIdx.x; i < 512; i += 128) {
    copy_vector<16>(A_shared + i * 8, A + i * 8);
    copy_vector<16>(B_shared + i * 8, B + i * 8);
  }
  fence_async();
  sync_threads();
  registers<float16, 8> a;
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 8; ++i) {
    a[i] = A[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2];
  }
  registers<float, 32> sum;
  wgmma_fence();
  )" + call +
          R"(
  wgmma_commit();
  wgmma_wait<0>();
  for (int i = 0; i < 32; ++i) {
    C[threadIdx.x * 32 + i] = sum[i];
  }
}
)"};
}

std::string descriptor(const char* tile, const Form& form) {
  return fmt::format("matrix_place({}, {}, {}, {})", tile, form.leading, form.stride, form.swizzle);
}

TEST(Wgmma, ReadsEveryFormOfBothOperands) {
  const Operands operands;
  for (const Form& a_form : kForms)
    for (const Form& b_form : kForms) {
      if (&a_form != kForms && &b_form != kForms && &a_form != &b_form) continue;  // each with the first, and alike
      const KernelText kernel = kernel_of(fmt::format("wgmma_m64n64k16_f32_f16_f16{}{}(&sum[0], {}, {}, false);",
                                                      a_form.transposed ? "_ta" : "", b_form.transposed ? "_tb" : "",
                                                      descriptor("A_shared", a_form), descriptor("B_shared", b_form)));
      std::vector<uint16_t> a = laid_out(a_form, operands.a, 64), b = laid_out(b_form, operands.b, 64);
      std::vector<float> c(128 * 32);
      const Report report =
          run_kernel(kernel, {.threads = 128, .shared_bytes = 16384}, Buffers().add("A", a).add("B", b).add("C", c));
      EXPECT_THAT(told(report), IsEmpty());
      EXPECT_EQ(in_order(c), operands.c) << kernel.text;
    }
}

TEST(Wgmma, TakesOneOperandFromRegisters) {
  const Operands operands;
  const Form& form = kForms[3];
  const KernelText kernel =
      kernel_of("wgmma_m64n64k16_f32_f16_f16_ra(&sum[0], &a[0], " + descriptor("B_shared", form) + ", false);");
  std::vector<uint16_t> a(4096), b = laid_out(form, operands.b, 64);
  for (size_t i = 0; i < operands.a.size(); ++i) a[i] = to_half_bits(operands.a[i]);
  std::vector<float> c(128 * 32);
  const Report report =
      run_kernel(kernel, {.threads = 128, .shared_bytes = 16384}, Buffers().add("A", a).add("B", b).add("C", c));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(in_order(c), operands.c);
}

// The product of the test above with one line changed.
Report changed(const std::string& line, const std::string& to) {
  const KernelText kernel = kernel_of("wgmma_m64n64k16_f32_f16_f16_ra(&sum[0], &a[0], " +
                                      descriptor("B_shared", kForms[3]) + ", false);  // product");
  std::vector<uint16_t> a(4096), b(4096);
  std::vector<float> c(128 * 32);
  return run_kernel(kernel.with(line, to), {.threads = 128, .shared_bytes = 16384},
                    Buffers().add("A", a).add("B", b).add("C", c));
}

TEST(Wgmma, FindsRegistersWithoutAFence) {
  const Report none = changed("  wgmma_fence();\n", "");
  EXPECT_THAT(told(none), Contains(HasSubstr("before any wgmma_fence")));
  const Report early = changed("  wgmma_fence();\n", "  wgmma_fence();\n  a[2] = a[3];\n");
  EXPECT_THAT(told(early), ElementsAre(HasSubstr("with register 2 of A, which it has written since its last")));
  const Report sums = changed("  wgmma_fence();\n", "  wgmma_fence();\n  sum[5] = 0.0f;\n");
  EXPECT_THAT(told(sums), ElementsAre(HasSubstr("with register 5 of its sums, which it has written since its last")));
}

TEST(Wgmma, FindsRegistersThatChangeUnderWay) {
  const Report operand = changed("  wgmma_commit();\n", "  wgmma_commit();\n  a[7] = a[0];\n");
  EXPECT_THAT(told(operand), ElementsAre(HasSubstr("writes register 7 of A while the wgmma is outstanding")));
  const Report sums = changed("  wgmma_commit();\n", "  wgmma_commit();\n  sum[3] = 1.0f;\n");
  EXPECT_THAT(told(sums), ElementsAre(HasSubstr("writes register 3 of the sums while the wgmma is outstanding")));
  const Report after = changed("  wgmma_wait<0>();\n", "  wgmma_wait<0>();\n  a[7] = a[0];\n  sum[3] = 1.0f;\n");
  EXPECT_THAT(told(after), IsEmpty());
}

// The first of two groups may be over, but a second adds to the same sums.
TEST(Wgmma, FindsSumsOfALaterGroup) {
  const std::string second = "wgmma_m64n64k16_f32_f16_f16_ra(&sum[0], &a[0], " + descriptor("B_shared", kForms[3]) +
                             ", true);\n  wgmma_commit();\n";
  const Report early =
      changed("  wgmma_commit();\n  wgmma_wait<0>();\n", "  wgmma_commit();\n  " + second + "  wgmma_wait<1>();\n");
  ASSERT_THAT(told(early), ElementsAre(HasSubstr("which nothing has written"),
                                       HasSubstr("a wgmma of thread 0 still reads its memory")));
  EXPECT_EQ(early.defects[0].kind, DefectKind::uninitialised_read);
  const Report all =
      changed("  wgmma_commit();\n  wgmma_wait<0>();\n", "  wgmma_commit();\n  " + second + "  wgmma_wait<0>();\n");
  EXPECT_THAT(told(all), IsEmpty());
}

}  // namespace
}  // namespace tilepilot::emulator::testing
