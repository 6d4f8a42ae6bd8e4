// Functions of the language against the C library's, and integer functions against their definition.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "tests/tile/checked_backend.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class Maths : public Run {
 protected:
  Maths() : Run(checked()) {}
  static runtime::KernelBackend& checked() {
    static testing::CheckedBackend instance(backend());
    return instance;
  }
  // y[i] = expression of a = A[i] and b = B[i].
  Array of(const std::string& expression, const std::string& type, const Array& a, const Array& b,
           const std::string& result = "float32") {
    load(
        "@tilelang.jit(out_idx=[-1])\ndef f(dtype, result, N):\n    @T.prim_func\n    def main(A: T.Tensor((N,), "
        "dtype), "
        "B: T.Tensor((N,), dtype), Y: T.Tensor((N,), result)):\n        with T.Kernel(1, threads=64) as _:\n"
        "            for i in T.Parallel(N):\n                a = A[i]\n                b = B[i]\n                Y[i] "
        "= " +
        expression + "\n    return main\n");
    return call(fmt::format("f('{}', '{}', {})(x0, x1)", type, result, a->size()), {a, b});
  }
};

constexpr int64_t kCount = 64;

TEST_F(Maths, FunctionsOfTwo) {
  const Array a = testing::make_array(ir::kFloat32, {kCount}, [](int64_t i) { return (i - 31.5) * 0.37; });
  const Array b = testing::make_array(ir::kFloat32, {kCount}, [](int64_t i) { return i % 7 * 0.51 - 1.2; });
  struct Row {
    const char* expression;
    double (*exact)(double, double);
  };
  const Row rows[] = {
      {"T.atan2(a, b)", [](double x, double y) { return std::atan2(x, y); }},
      {"T.hypot(a, b)", [](double x, double y) { return std::hypot(x, y); }},
      {"T.fmod(a, b)", [](double x, double y) { return std::fmod(x, y); }},
      {"T.copysign(a, b)", [](double x, double y) { return std::copysign(x, y); }},
      {"T.ldexp(a, T.cast(b * 4, 'int32'))", [](double x, double y) { return std::ldexp(x, int(float(y) * 4)); }},
      {"T.ldexp(a, 3)", [](double x, double) { return x * 8; }},
      {"T.asinh(a) + T.atanh(b / 4)", [](double x, double y) { return std::asinh(x) + std::atanh(y / 4); }},
      {"T.acosh(T.abs(a) + 1)", [](double x, double) { return std::acosh(std::fabs(x) + 1); }},
      {"T.fast_rcp(a)", [](double x, double) { return 1 / x; }},
      {"T.ieee_add(a, b) * T.ieee_sub(a, b, 'rn')", [](double x, double y) { return x * x - y * y; }},
      {"T.ieee_fmaf(a, b, b)", [](double x, double y) { return x * y + y; }},
      {"T.ieee_fdiv(T.ieee_mul(a, b), a)", [](double, double y) { return y; }},
      {"T.ieee_frcp(a) + T.ieee_fsqrt(a * a) + T.ieee_frsqrt(a * a)",
       [](double x, double) { return 1 / x + std::fabs(x) + 1 / std::fabs(x); }},
      {"T.max(T.min(a, 2.0), b)", [](double x, double y) { return std::max(std::min(x, 2.0), y); }},
      {"T.Select(a > b, a, b)", [](double x, double y) { return std::max(x, y); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.expression);
    expect_near(of(row.expression, "float32", a, b), 2e-5,
                [&](int64_t i) { return row.exact(double{float(a->at(i))}, double{float(b->at(i))}); });
  }
}

TEST_F(Maths, NextNumbers) {
  const Array a =
      testing::make_array(ir::kFloat32, {kCount}, [](int64_t i) { return i == 0 ? 0 : std::ldexp(1, int(i) - 32); });
  const Array b = testing::make_array(ir::kFloat32, {kCount}, [](int64_t i) { return i % 2 ? 1e9 : -1e9; });
  const Array next = of("T.nextafter(a, b)", "float32", a, b);
  ASSERT_TRUE(next);
  for (int64_t i = 0; i < kCount; ++i) EXPECT_EQ(float(next->at(i)), std::nextafterf(float(a->at(i)), float(b->at(i))));
}

// Rounded once: half of these lie so close to the middle of two float16 that going through float32 misses it.
TEST_F(Maths, DoublesAreRoundedOnce) {
  const auto value = [](int64_t i) { return 1 + std::ldexp(1, -11) + std::ldexp(i % 2 ? 1 : -1, -40); };
  const Array a = testing::make_array(ir::kFloat64, {kCount}, value);
  const Array rounded = of("T.cast(a, 'float16')", "float64", a, a, "float16");
  expect_near(rounded, 0, [](int64_t i) { return i % 2 ? 1 + std::ldexp(1, -10) : 1.0; });
}

TEST_F(Maths, BitsOfIntegers) {
  const Array a = testing::make_array(
      ir::kInt32, {kCount}, [](int64_t i) { return i == 0 ? 0 : double(int64_t{1} << (i % 31)) + double(i); });
  expect_near(of("T.clz(a)", "int32", a, a, "int32"), 0,
              [&](int64_t i) { return std::countl_zero(uint32_t(int64_t(a->at(i)))); });
  expect_near(of("T.popcount(a)", "int32", a, a, "int32"), 0,
              [&](int64_t i) { return std::popcount(uint32_t(int64_t(a->at(i)))); });
  expect_near(of("T.clz(T.cast(a, 'int64')) * 100 + T.clz(T.cast(a, 'uint8'))", "int32", a, a, "int32"), 0,
              [&](int64_t i) {
                const auto x = int64_t(a->at(i));
                return std::countl_zero(uint64_t(x)) * 100 + std::countl_zero(uint8_t(x));
              });
}

TEST_F(Maths, FourProductsAtOnce) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def dots(N):
    @T.prim_func
    def main(A: T.Tensor((N * 8,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(N, threads=1) as n:
            a = T.alloc_local((8,), "int8")
            sum = T.alloc_local((1,), "int32")
            for i in T.serial(8):
                a[i] = A[n * 8 + i]
            sum[0] = 1000
            T.dp4a(a, a[4], sum)
            T.dp4a(a[4], a[0], sum[0])
            B[n] = sum[0]
    return main
)");
  const Array a = testing::make_array(ir::kInt32, {32}, [](int64_t i) { return double(i * 53 % 200 - 100); });
  expect_near(call("dots(4)(x0)", {a}), 0, [&](int64_t n) {
    double sum = 1000;
    for (int64_t k = 0; k < 4; ++k) sum += 2 * a->at(n * 8 + k) * a->at(n * 8 + 4 + k);
    return sum;
  });
}

}  // namespace
}  // namespace tilepilot::stage
