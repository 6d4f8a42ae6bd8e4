// Functions of the language against the C library's, and integer functions against their definition.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/tile/checked_backend.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

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

// An operation of 8 or 16 bits is computed in 32, and a conversion to its own type cuts it.
TEST_F(Maths, ConversionsCutToTheTypeThatIsThereAlready) {
  const Array a = testing::make_array(ir::kInt32, {kCount}, [](int64_t i) { return 13 * i - 400; });
  struct Row {
    const char* expression;
    int64_t (*exact)(int64_t);
  };
  const Row rows[] = {
      {"T.cast(T.cast(a, 'int8') << 4, 'int8') >> 4",
       [](int64_t x) -> int64_t { return int8_t(uint32_t(int8_t(x)) << 4) >> 4; }},
      {"(T.cast(a, 'int8') << 4) >> 4", [](int64_t x) -> int64_t { return int8_t(x); }},
      {"T.cast(T.cast(a, 'uint8') * 16, 'uint8') // 16",
       [](int64_t x) -> int64_t { return uint8_t(uint8_t(x) * 16) / 16; }},
      {"(T.cast(a, 'int16') * 256).astype('int16') // 256",
       [](int64_t x) -> int64_t { return int16_t(int16_t(x) * 256) / 256; }},
      {"T.cast(T.cast(a, 'int8') + 100, 'int8') - 100",
       [](int64_t x) -> int64_t { return int8_t(int8_t(x) + 100) - 100; }},
      {"T.cast(T.max(T.cast(a, 'int8') + 100, 0), 'int8') * 2",
       [](int64_t x) -> int64_t { return int8_t(std::max(int8_t(x) + 100, 0)) * 2; }},
      {"T.cast((T.cast(a, 'uint8') * 3) // 2, 'uint8') + 0",
       [](int64_t x) -> int64_t { return uint8_t(uint8_t(x) * 3 / 2); }},
      {"T.max(T.cast(a, 'uint8') * 3, 7)", [](int64_t x) -> int64_t { return std::max(uint8_t(x) * 3, 7); }},
      {"T.if_then_else(a > 0, T.cast(a, 'uint8') * 3, 0)",
       [](int64_t x) -> int64_t { return x > 0 ? uint8_t(x) * 3 : 0; }},
      {"(T.cast(a, 'uint8') * 3 if a > 0 else 1) // 2",
       [](int64_t x) -> int64_t { return (x > 0 ? uint8_t(x) * 3 : 1) / 2; }},
      {"T.clamp(T.cast(a, 'uint8') + 200, 0, 1000)", [](int64_t x) -> int64_t { return uint8_t(x) + 200; }},
      {"T.truncdiv(T.cast(a, 'int8') * 100, 3)", [](int64_t x) -> int64_t { return int8_t(x) * 100 / 3; }},
      {"T.cast(T.cast(a, 'uint8') - 200, 'uint8')", [](int64_t x) -> int64_t { return uint8_t(uint8_t(x) - 200); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.expression);
    const Array y = of(row.expression, "int32", a, a, "int32");
    for (int64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(y->at(i), static_cast<double>(row.exact(static_cast<int64_t>(a->at(i))))) << a->at(i);
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

// `T.call_extern` with the names of C's mathematics.
struct ExternCase {
  std::string name;
  std::string call;  // of a and b
  double (*expected)(double a, double b);
};

class ExternMaths : public Run, public ::testing::WithParamInterface<ExternCase> {
 protected:
  ExternMaths() : Run(checked_backend()) {}
};

TEST_P(ExternMaths, IsOurOwn) {
  load(R"(
@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32"), C: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(40):
            a = A[i]
            b = B[i]
            C[i] = )" +
       GetParam().call + "\n");
  const Array a = testing::make_array(ir::kFloat32, {40}, [](int64_t i) { return 0.125 * static_cast<double>(i + 1); });
  const Array b =
      testing::make_array(ir::kFloat32, {40}, [](int64_t i) { return 3.0 - 0.25 * static_cast<double>(i); });
  expect_near(call("kernel(x0, x1)", {a, b}), 2e-5, [&](int64_t i) { return GetParam().expected(a->at(i), b->at(i)); });
}

const ExternCase kCases[] = {
    {"fmaxf", "T.call_extern('float32', 'fmaxf', a, b)", [](double a, double b) { return std::fmax(a, b); }},
    {"fminf", "T.call_extern('float32', 'fminf', a, b)", [](double a, double b) { return std::fmin(a, b); }},
    {"expf", "T.call_extern('float32', 'expf', -a)", [](double a, double) { return std::exp(-a); }},
    {"fastexpf", "T.call_extern('float32', '__expf', -a)", [](double a, double) { return std::exp(-a); }},
    {"logf", "T.call_extern('float32', 'logf', a)", [](double a, double) { return std::log(a); }},
    {"log2f", "T.call_extern(\"float32\", \"log2f\", a)", [](double a, double) { return std::log2(a); }},
    {"tanhf", "T.call_extern(T.float32, 'tanhf', b)", [](double, double b) { return std::tanh(b); }},
    {"erff", "T.call_extern('float32', 'erff', b)", [](double, double b) { return std::erf(b); }},
    {"sqrtf", "T.call_extern('float32', 'sqrtf', a)", [](double a, double) { return std::sqrt(a); }},
    {"rsqrtf", "T.call_extern('float32', 'rsqrtf', a)", [](double a, double) { return 1 / std::sqrt(a); }},
    {"fabsf", "T.call_extern('float32', 'fabsf', b)", [](double, double b) { return std::fabs(b); }},
    {"powf", "T.call_extern('float32', 'powf', a, 2.0)", [](double a, double) { return a * a; }},
    {"floorf", "T.call_extern('float32', 'floorf', b)", [](double, double b) { return std::floor(b); }},
    {"ceilf", "T.call_extern('float32', 'ceilf', b)", [](double, double b) { return std::ceil(b); }},
    {"roundf", "T.call_extern('float32', 'roundf', b * 2)", [](double, double b) { return std::round(b * 2); }},
    {"rintf", "T.call_extern('float32', 'rintf', b * 2)", [](double, double b) { return std::rint(b * 2); }},
    {"fdividef", "T.call_extern('float32', '__fdividef', b, a)", [](double a, double b) { return b / a; }},
    {"saturatef", "T.call_extern('float32', '__saturatef', b)",
     [](double, double b) { return std::fmin(std::fmax(b, 0), 1); }},
    {"fmaf", "T.call_extern('float32', 'fmaf', a, b, 1.0)", [](double a, double b) { return a * b + 1; }},
    {"OfHalves", "T.cast(T.call_extern('float16', 'fabsf', T.cast(b, 'float16')), 'float32')",
     [](double, double b) { return std::fabs(b); }},
    {"dtypeByName", "T.call_extern('exp2f', a, dtype='float32')", [](double a, double) { return std::exp2(a); }},
};
INSTANTIATE_TEST_SUITE_P(Names, ExternMaths, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

class ExternMathsCalls : public Run {
 protected:
  ExternMathsCalls() : Run(checked_backend()) {}
};

TEST_F(ExternMathsCalls, OfANumberAndANaNTheLargerIsTheNumber) {
  load(R"(
@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32"), C: T.Tensor((2, 4), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            C[0, i] = T.call_extern("float32", "fmaxf", A[i], B[i])
            C[1, i] = T.call_extern("float32", "fminf", A[i], B[i])
)");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double a[] = {1, nan, 2, nan}, b[] = {nan, 3, 5, nan};
  const auto fill = [](const double* from) {
    return testing::make_array(ir::kFloat32, {4}, [from](int64_t i) { return from[i]; });
  };
  const Array c = call("kernel(x0, x1)", {fill(a), fill(b)});
  ASSERT_TRUE(c);
  for (int64_t i = 0; i < 4; ++i) {
    const double larger = std::fmax(a[i], b[i]), smaller = std::fmin(a[i], b[i]);
    EXPECT_TRUE(c->at(i) == larger || (std::isnan(larger) && std::isnan(c->at(i)))) << i;
    EXPECT_TRUE(c->at(4 + i) == smaller || (std::isnan(smaller) && std::isnan(c->at(4 + i)))) << i;
  }
}

// What `__float2half_rz` gives is never farther from 0 than the number, and the float16 after it is.
TEST_F(ExternMathsCalls, ConvertTowardsZero) {
  load(R"(
@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            C[i] = T.call_extern("float16", "__float2half_rz", A[i])
)");
  const double infinity = std::numeric_limits<double>::infinity();
  const double given[] = {0.0, 1.0, 1e-8, 6e-8, 7e-8, 65504, 65519, 65536, 1e30, infinity, 0.1, 2.0 / 3, 1000.4};
  const Array a = testing::make_array(
      ir::kFloat32, {64}, [&](int64_t i) { return given[i / 2 % 13] * (i % 2 == 0 ? 1 : -1) * (i >= 26 ? 0.7 : 1); });
  const Array c = call("kernel(x0)", {a});
  ASSERT_TRUE(c);
  for (int64_t i = 0; i < 64; ++i) {
    const double x = std::fabs(a->at(i)), y = std::fabs(c->at(i));
    if (std::isinf(x)) {
      EXPECT_EQ(y, x);
      continue;
    }
    const double step = y < 0x1p-14 ? 0x1p-24 : std::ldexp(1, std::ilogb(y) - 10);
    EXPECT_LE(y, x) << i;
    EXPECT_TRUE(y + step > x || y == 65504) << i << ": " << x << " gives " << y;
    EXPECT_EQ(std::signbit(a->at(i)), std::signbit(c->at(i))) << i;
  }
}

// As in C, integers of 8 and 16 bits are computed with in 32 until they are kept somewhere.
TEST_F(ExternMathsCalls, NarrowIntegersArePromoted) {
  load(R"(
@tilelang.jit
@T.prim_func
def kernel(A: T.Tensor((8,), "int8"), U: T.Tensor((8,), "uint16"), C: T.Tensor((6, 8), "int32"), D: T.Tensor((2, 8), "int8")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            C[0, i] = A[i] * A[i]
            C[1, i] = T.cast(U[i] << 8, "int32")
            C[2, i] = T.cast((A[i] + A[i]) // 2, "int32")
            C[3, i] = T.if_then_else(A[i] + A[i] > 127, 1, 0)
            kept = A[i] * A[i]
            C[4, i] = kept
            C[5, i] = T.cast(-A[i], "int32")
            D[0, i] = A[i] * A[i]
            D[1, i] = (A[i] + A[i]) // 2
)");
  const auto a = [](int64_t i) { return static_cast<double>(i * 36 - 128); };
  const Array given = testing::make_array(ir::kInt8, {8}, a);
  const Array wide = testing::make_array(ir::kUInt16, {8}, [](int64_t i) { return i * 9000; });
  const Array c = testing::make_array(ir::kInt32, {6, 8}, [](int64_t) { return 0; });
  const Array d = testing::make_array(ir::kInt8, {2, 8}, [](int64_t) { return 0; });
  call("kernel(x0, x1, x2, x3)", {given, wide, c, d});
  for (int64_t i = 0; i < 8; ++i) {
    const int8_t cut = static_cast<int8_t>(static_cast<int>(a(i)) * static_cast<int>(a(i)));
    EXPECT_EQ(c->at(i), a(i) * a(i));
    EXPECT_EQ(c->at(8 + i), i * 9000 * 256);
    EXPECT_EQ(c->at(16 + i), a(i));
    EXPECT_EQ(c->at(24 + i), 2 * a(i) > 127 ? 1 : 0);
    EXPECT_EQ(c->at(32 + i), cut) << "a name has the type of its value";
    EXPECT_EQ(c->at(40 + i), -a(i));
    EXPECT_EQ(d->at(i), cut);
    EXPECT_EQ(d->at(8 + i), a(i));
  }
}

TEST_F(ExternMathsCalls, fail_WrongCountsAndOtherFunctions) {
  load(R"(
def build(text):
    @tilelang.jit
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(4):
                A[i] = T.call_extern("float32", *text)
    return kernel
)");
  EXPECT_THAT(failure("build(('fmaxf', 1.0))", {}), HasSubstr("`fmaxf` takes 2 arguments, got 1"));
  EXPECT_THAT(failure("build(('expf', 1.0, 2.0))", {}), HasSubstr("expf"));
  EXPECT_THAT(failure("build(('decode', 1.0))(x0)", {random_array(ir::kFloat32, {4}, 1)}),
              HasSubstr("foreign device source"));
}

}  // namespace
}  // namespace tilepilot::stage
