// The prelude of kernels on a GPU or in the emulator: conversions of all codes, integer arithmetic, element-wise
// functions.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/interpret/small_float.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

struct SmallType {
  const char* name;
  ir::DType type;
  uint32_t codes;  // 0: too many to try
};
constexpr SmallType kSmallTypes[] = {
    {"float16", ir::kFloat16, 1 << 16},       {"bfloat16", ir::kBFloat16, 1 << 16},
    {"float8_e4m3", ir::kFloat8E4M3, 1 << 8}, {"float8_e5m2", ir::kFloat8E5M2, 1 << 8},
    {"float8_e8m0", ir::kFloat8E8M0, 1 << 8}, {"float4_e2m1", ir::kFloat4E2M1, 1 << 4},
    {"tfloat32", ir::kTensorFloat32, 0},
};

std::vector<uint32_t> codes_of(const SmallType& row) {
  std::vector<uint32_t> codes;
  for (uint32_t code = 0; code < row.codes; ++code) codes.push_back(code);
  std::mt19937 random(1);
  while (row.codes == 0 && codes.size() < 200000) codes.push_back(random());
  return codes;
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

constexpr uint32_t kStep = 20 / rounds(20);  // from code to code: under the sanitizers few of them do

// Every number of the type, what lies halfway to the next one, the doubles beside that, and numbers of all sizes.
std::vector<double> numbers_around(const SmallType& row) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> numbers = {0.0,   -0.0,  infinity, -infinity, NAN,   3.4028234663852886e38,
                                 1e-45, 1e-40, -1e-42,   1e300,     1e-300};
  const uint32_t positive = row.type == ir::kFloat8E8M0 ? row.codes : row.codes / 2;
  for (uint32_t code = 0; code + 1 < positive; code += kStep) {
    const double low = interpret::decode(code, row.type), high = interpret::decode(code + 1, row.type);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const double middle = (low + high) / 2;
    for (const double x : {low, middle, std::nextafter(middle, 0.0), std::nextafter(middle, infinity),
                           middle * (1 + 1e-7), middle * (1 - 1e-7)})
      numbers.insert(numbers.end(), {x, -x});
  }
  std::mt19937 random(2);
  for (int k = 0; k < rounds(100000); ++k) numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  return numbers;
}

class Conversions : public GpuTest, public ::testing::WithParamInterface<SmallType> {
 protected:
  // Any NaN is as good as another.
  static bool agrees(uint32_t code, double number) {
    const ir::DType type = GetParam().type;
    const uint32_t expected = interpret::encode(number, type);
    return code == expected || (std::isnan(number) && std::isnan(interpret::decode(code, type)));
  }
  static uint32_t code_at(const std::vector<std::byte>& bytes, size_t index) {
    uint32_t code = 0;
    const auto size = static_cast<size_t>(GetParam().type.bytes());
    for (size_t k = 0; k < size; ++k) code |= std::to_integer<uint32_t>(bytes[index * size + k]) << (8 * k);
    return code;
  }
};

TEST_P(Conversions, DecodeEveryCode) {
  const std::vector<uint32_t> codes = codes_of(GetParam());
  const auto size = static_cast<size_t>(GetParam().type.bytes());
  std::vector<std::byte> stored(codes.size() * size);
  for (size_t k = 0; k < codes.size(); ++k)
    for (size_t byte = 0; byte < size; ++byte) stored[k * size + byte] = std::byte(codes[k] >> (8 * byte));
  const Memory from = upload(stored), to = zeros(static_cast<int64_t>(codes.size() * 4));
  run_over("conversions", std::string("decode_") + GetParam().name, static_cast<int64_t>(codes.size()), {&from, &to});
  const auto got = download<float>(to);
  for (size_t k = 0; k < codes.size(); ++k) {
    const auto expected = static_cast<float>(interpret::decode(codes[k], GetParam().type));
    ASSERT_TRUE(same(expected, got[k])) << std::hex << codes[k] << " gives " << got[k] << " instead of " << expected;
  }
}

TEST_P(Conversions, EncodeNumbers) {
  std::vector<float> numbers;
  for (const double x : numbers_around(GetParam())) numbers.push_back(static_cast<float>(x));
  const auto count = static_cast<int64_t>(numbers.size());
  const Memory from = upload(numbers), to = zeros(count * GetParam().type.bytes()), rounded = zeros(count * 4);
  run_over("conversions", std::string("encode_") + GetParam().name, count, {&from, &to});
  run_over("conversions", std::string("round_") + GetParam().name + "_all", count, {&from, &rounded});
  const auto got = download<std::byte>(to);
  const auto floats = download<float>(rounded);
  for (size_t k = 0; k < numbers.size(); ++k) {
    ASSERT_TRUE(agrees(code_at(got, k), numbers[k])) << numbers[k] << " gives " << std::hex << code_at(got, k);
    const double expected = interpret::decode(interpret::encode(numbers[k], GetParam().type), GetParam().type);
    ASSERT_TRUE(same(static_cast<float>(expected), floats[k])) << numbers[k] << " is rounded to " << floats[k];
  }
}

TEST_P(Conversions, RoundDoublesOnce) {
  const std::vector<double> numbers = numbers_around(GetParam());
  const auto count = static_cast<int64_t>(numbers.size());
  const Memory from = upload(numbers), to = zeros(count * GetParam().type.bytes());
  run_over("conversions", std::string("narrow_") + GetParam().name, count, {&from, &to});
  const auto got = download<std::byte>(to);
  for (size_t k = 0; k < numbers.size(); ++k)
    ASSERT_TRUE(agrees(code_at(got, k), numbers[k])) << numbers[k] << " gives " << std::hex << code_at(got, k);
}

INSTANTIATE_TEST_SUITE_P(Types, Conversions, ::testing::ValuesIn(kSmallTypes),
                         [](const auto& info) { return std::string(info.param.name); });

using Integers = GpuTest;

TEST_F(Integers, OfFourBits) {
  std::vector<int32_t> numbers;
  for (int32_t x = -300; x <= 300; ++x) numbers.push_back(x);
  const auto count = static_cast<int64_t>(numbers.size());
  const Memory from = upload(numbers), to = zeros(count * 32);
  run_over("conversions", "integers", count, {&from, &to});
  const auto got = download<int32_t>(to);
  for (size_t k = 0; k < numbers.size(); ++k) {
    const int32_t x = numbers[k], *row = got.data() + k * 8;
    const int32_t low = x & 15, wrapped = low >= 8 ? low - 16 : low;
    const auto nibble = static_cast<int32_t>(interpret::encode(x, ir::kFloat4E2M1));
    const int32_t expected[] = {wrapped, low, low, wrapped, x & 1023, low, nibble, static_cast<int8_t>(x)};
    for (int column = 0; column < 8; ++column) ASSERT_EQ(row[column], expected[column]) << x << ", column " << column;
  }
}

__extension__ typedef __int128 Wide;  // holds every result before it wraps

template <class T>
class IntegerArithmetic : public GpuTest {
 public:
  static Wide floor_division(Wide a, Wide b) {
    if (b == 0) return 0;
    const Wide quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
  static int bits_set(T x) { return std::popcount(static_cast<std::make_unsigned_t<T>>(x)); }
  static int zeros_before(T x) { return std::countl_zero(static_cast<std::make_unsigned_t<T>>(x)); }
};

template <class T>
constexpr const char* kIntegerName = "";
template <>
constexpr const char* kIntegerName<int8_t> = "int8_t";
template <>
constexpr const char* kIntegerName<uint8_t> = "uint8_t";
template <>
constexpr const char* kIntegerName<int16_t> = "int16_t";
template <>
constexpr const char* kIntegerName<int32_t> = "int32_t";
template <>
constexpr const char* kIntegerName<uint32_t> = "uint32_t";
template <>
constexpr const char* kIntegerName<int64_t> = "int64_t";
template <>
constexpr const char* kIntegerName<uint64_t> = "uint64_t";

using IntegerTypes = ::testing::Types<int8_t, uint8_t, int16_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(IntegerArithmetic, IntegerTypes);

TYPED_TEST(IntegerArithmetic, IsPythons) {
  using T = TypeParam;
  std::mt19937_64 random(3);
  std::vector<T> some = {
      T(0), T(1), T(-1), T(2), T(7), T(-7), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  for (int k = 0; k < 60; ++k) some.push_back(static_cast<T>(random() >> (random() % 64)));
  std::vector<T> x, y;
  for (const T a : some)
    for (const T b : some) x.push_back(a), y.push_back(b);
  const auto count = static_cast<int64_t>(x.size());
  const auto from = this->upload(x), other = this->upload(y),
             to = this->zeros(count * 8 * static_cast<int64_t>(sizeof(T)));
  this->run_over("arithmetic", std::string("arithmetic_") + kIntegerName<T>, count, {&from, &other, &to});
  const auto got = this->template download<T>(to);
  for (size_t k = 0; k < x.size(); ++k) {
    const Wide a = x[k], b = y[k], quotient = this->floor_division(a, b);
    const bool counts = sizeof(T) >= 4;
    const T expected[] = {static_cast<T>(quotient),
                          static_cast<T>(a - quotient * b),
                          std::min(x[k], y[k]),
                          std::max(x[k], y[k]),
                          static_cast<T>(a < 0 ? -a : a),
                          static_cast<T>(counts ? this->bits_set(x[k]) : 0),
                          static_cast<T>(counts ? this->zeros_before(x[k]) : 0),
                          static_cast<T>(a < 3    ? 3
                                         : a > 90 ? 90
                                                  : a)};
    for (size_t column = 0; column < 8; ++column)
      ASSERT_EQ(got[k * 8 + column], expected[column])
          << int64_t(x[k]) << ", " << int64_t(y[k]) << ", column " << column;
  }
}

struct Function {
  const char* name;
  long double (*exact)(long double);
  double low, high;  // where it is sampled
  double ulps;       // allowed error of the float32 one
};
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double reciprocal_root(long double x) { return 1 / std::sqrt(x); }
long double power_of_ten(long double x) { return std::pow(10.0L, x); }
const Function kFunctions[] = {
    {"exp", std::exp, -87.3, 88.7, 2.5},
    {"exp2", std::exp2, -126, 127.9, 2.5},
    {"exp10", power_of_ten, -37.9, 38.5, 2.5},
    {"log", std::log, 1e-30, 3e38, 2},
    {"log2", std::log2, 1e-30, 3e38, 2},
    {"log10", std::log10, 1e-30, 3e38, 2.5},
    {"log1p", std::log1p, -0.999, 1e30, 2},
    {"sqrt", std::sqrt, 0, 1e38, 0.51},
    {"rsqrt", reciprocal_root, 1e-30, 1e30, 2},
    {"sin", std::sin, -1e5, 1e5, 2},
    {"cos", std::cos, -1e5, 1e5, 2},
    {"tan", std::tan, -1e3, 1e3, 4},
    {"sinh", std::sinh, -80, 80, 3.5},
    {"cosh", std::cosh, -80, 80, 2.5},
    {"tanh", std::tanh, -20, 20, 2.5},
    {"asin", std::asin, -1, 1, 2.5},
    {"acos", std::acos, -1, 1, 2.5},
    {"atan", std::atan, -1e6, 1e6, 2.5},
    {"asinh", std::asinh, -1e6, 1e6, 3.5},
    {"acosh", std::acosh, 1, 1e6, 4.5},
    {"atanh", std::atanh, -0.999, 0.999, 3.5},
    {"erf", std::erf, -6, 6, 2.5},
    {"sigmoid", sigmoid, -85, 85, 4},
    {"floor", std::floor, -1e5, 1e5, 0},
    {"ceil", std::ceil, -1e5, 1e5, 0},
    {"trunc", std::trunc, -1e5, 1e5, 0},
    {"rint", std::rint, -1e5, 1e5, 0},
    {"abs", std::fabs, -1e5, 1e5, 0},
};

class Functions : public GpuTest, public ::testing::WithParamInterface<Function> {
 protected:
  template <class T>
  static std::vector<T> samples() {
    std::vector<T> all;
    constexpr int kCount = rounds(50000);
    const Function& f = GetParam();
    for (int k = 0; k < kCount; ++k) {
      const double t = (k + 0.5) / kCount;
      all.push_back(static_cast<T>(f.low + t * (f.high - f.low)));
      const double end = k % 2 == 0 && f.low < 0 ? f.low : f.high;
      const auto small = static_cast<T>(end * std::pow(2.0, -40 * t));  // all magnitudes
      if (static_cast<double>(small) >= f.low && static_cast<double>(small) <= f.high) all.push_back(small);
    }
    return all;
  }
  // The largest error in units of the last place.
  template <class T>
  static double worst(const std::string& name, T least) {
    const std::vector<T> x = samples<T>();
    const auto count = static_cast<int64_t>(x.size());
    const Memory from = upload(x), to = zeros(count * static_cast<int64_t>(sizeof(T)));
    run_over("arithmetic", name + GetParam().name, count, {&from, &to});
    const auto y = download<T>(to);
    double most = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      const long double exact = GetParam().exact(x[k]);
      if (std::fabs(exact) < least || std::fabs(exact) > std::numeric_limits<T>::max()) continue;
      const T rounded = std::fabs(static_cast<T>(exact));
      const long double ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
      const auto error = static_cast<double>(std::fabs(y[k] - exact) / ulp);
      if (std::isnan(error)) return std::numeric_limits<double>::infinity();
      most = std::max(most, error);
    }
    return most;
  }
};

TEST_P(Functions, AreAccurate) {
  EXPECT_LE(worst<float>("float_", 1.2e-38f), GetParam().ulps);
  EXPECT_LE(worst<double>("double_", 1e-300), 4.0);
}

INSTANTIATE_TEST_SUITE_P(Prelude, Functions, ::testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

struct FunctionOfTwo {
  const char* name;
  double (*exact)(double, double);
  double ulps;
};
double scaled(double x, double y) { return std::ldexp(x, static_cast<int>(y)); }
double next_float(double x, double y) { return std::nextafter(static_cast<float>(x), static_cast<float>(y)); }

TEST_F(GpuTest, FunctionsOfTwo) {
  const FunctionOfTwo functions[] = {{"pow", std::pow, 5},   {"atan2", std::atan2, 3.5}, {"hypot", std::hypot, 3.5},
                                     {"fmod", std::fmod, 0}, {"ldexp", scaled, 0},       {"nextafter", next_float, 0}};
  std::mt19937 random(4);
  std::uniform_real_distribution<float> positive(0.01f, 20.0f), any(-8.0f, 8.0f);
  for (const FunctionOfTwo& f : functions) {
    std::vector<float> x, y;
    for (int k = 0; k < rounds(20000); ++k) {
      x.push_back(positive(random));
      y.push_back(f.exact == scaled ? std::rint(any(random)) : any(random));
    }
    const Memory first = upload(x), second = upload(y), to = zeros(static_cast<int64_t>(x.size() * 4));
    run_over("arithmetic", std::string("float_") + f.name, static_cast<int64_t>(x.size()), {&first, &second, &to});
    const auto got = download<float>(to);
    for (size_t k = 0; k < x.size(); ++k) {
      const double exact = f.exact(x[k], y[k]);
      const float rounded = std::fabs(static_cast<float>(exact));
      const double ulp = std::nextafter(rounded, INFINITY) - rounded;
      ASSERT_LE(std::fabs(got[k] - exact), f.ulps * ulp) << f.name << "(" << x[k] << ", " << y[k] << ") = " << got[k];
    }
  }
}

TEST_F(GpuTest, FloatsAreTestedAndCompared) {
  const float infinity = INFINITY;
  const std::vector<float> some = {0.0f, -0.0f, 1.0f, -1.0f, infinity, -infinity, NAN, 3e38f};
  std::vector<float> x, y;
  for (const float a : some)
    for (const float b : some) x.push_back(a), y.push_back(b);
  const Memory first = upload(x), second = upload(y), to = zeros(static_cast<int64_t>(x.size() * 4));
  run_over("arithmetic", "tests_of_floats", static_cast<int64_t>(x.size()), {&first, &second, &to});
  const auto got = download<int32_t>(to);
  for (size_t k = 0; k < x.size(); ++k) {
    const float a = x[k], b = y[k];
    const auto is_first = [&](float chosen) { return std::bit_cast<uint32_t>(chosen) == std::bit_cast<uint32_t>(a); };
    const int expected = std::isnan(a) | std::isinf(a) << 1 | std::isfinite(a) << 2 | is_first(a < b ? a : b) << 3 |
                         is_first(a > b ? a : b) << 4 | (a < infinity) << 5 | 1 << 6;
    EXPECT_EQ(got[k], expected) << a << ", " << b;
  }
}

}  // namespace
}  // namespace tilepilot::testing
