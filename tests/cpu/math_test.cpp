// Accuracy of the prelude's element-wise functions, as generated code computes them.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

struct Function {
  const char* name;
  double (*exact)(double);
  float low, high;  // where it is sampled
  double ulps;      // allowed error
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double rsqrt(double x) { return 1 / std::sqrt(x); }
double exp10_exact(double x) { return std::pow(10.0, x); }

const Function kFunctions[] = {
    {"exp", std::exp, -87.3f, 88.7f, 2.5},    {"exp2", std::exp2, -149, 128, 2.5},
    {"exp10", exp10_exact, -37.9f, 38.5f, 3}, {"log", std::log, 0, 3e38f, 2.5},
    {"log2", std::log2, 0, 3e38f, 2.5},       {"log10", std::log10, 0, 3e38f, 2.5},
    {"log1p", std::log1p, -0.999f, 1e30f, 3}, {"sqrt", std::sqrt, 0, 1e38f, 0.51},
    {"rsqrt", rsqrt, 1e-30f, 1e30f, 2},       {"sin", std::sin, -1e5f, 1e5f, 2.5},
    {"cos", std::cos, -1e5f, 1e5f, 2.5},      {"tan", std::tan, -1e3f, 1e3f, 4},
    {"tanh", std::tanh, -20, 20, 2.5},        {"erf", std::erf, -6, 6, 2.5},
    {"sigmoid", sigmoid, -85, 85, 3},         {"sinh", std::sinh, -80, 80, 2.5},
    {"cosh", std::cosh, -80, 80, 2.5},        {"asin", std::asin, -1, 1, 2.5},
    {"acos", std::acos, -1, 1, 2.5},          {"atan", std::atan, -1e6f, 1e6f, 2.5},
};

constexpr int64_t kCount = 40000;

// Half of the samples evenly over [low, high], half evenly over the floats in it, so that all magnitudes occur.
void fill(Array& x, const Function& function) {
  for (int64_t i = 0; i < kCount; ++i) {
    const double t = static_cast<double>(i / 2) / (kCount / 2 - 1);
    float& sample = x.as<float>()[i];
    if (i % 2 == 0) {
      sample = static_cast<float>(function.low + t * (static_cast<double>(function.high) - function.low));
      continue;
    }
    const float end = t < 0.5 && function.low < 0 ? function.low : function.high;
    const double part = std::fabs(2 * t - 1);
    sample =
        std::copysign(std::bit_cast<float>(static_cast<uint32_t>(part * std::bit_cast<uint32_t>(std::fabs(end)))), end);
    if (sample < function.low || sample > function.high) sample = function.high;
  }
}

double ulp(double exact) {
  const float magnitude = static_cast<float>(std::fabs(exact));
  const float next = std::nextafter(magnitude, INFINITY);
  return std::max(static_cast<double>(next) - magnitude, 1.4e-45);
}

std::string program_of(const std::string& function) {
  return fmt::format(R"(program f(x: float32[{0}], y: float32[{0}]) {{
  kernel b in 1 threads 128 {{
    parallel i in {0} {{
      y[i] = {1}(x[i])
    }}
  }}
}}
)",
                     kCount, function);
}

class MathTest : public ::testing::TestWithParam<Function> {};

TEST_P(MathTest, IsAccurate) {
  const Function& function = GetParam();
  Array x(ir::kFloat32, {kCount}), y(ir::kFloat32, {kCount});
  fill(x, function);
  run(parse(program_of(function.name)), {x.view(), y.view()});
  double worst = 0;
  float where = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const float at = x.as<float>()[i];
    const double exact = function.exact(at);
    if (!std::isfinite(static_cast<float>(exact))) continue;
    // Results below the normal numbers may be flushed to 0.
    if (std::fabs(exact) < 1.2e-38) continue;
    const double error = std::fabs(y.as<float>()[i] - exact) / ulp(exact);
    if (error > worst || std::isnan(error)) worst = std::isnan(error) ? INFINITY : error, where = at;
  }
  EXPECT_LE(worst, function.ulps) << "at " << where;
}

TEST_P(MathTest, IsExactAtTheEdges) {
  const float nan = NAN, infinity = INFINITY;
  const float edges[] = {0.0f, -0.0f, infinity, -infinity, nan, 1.0f, -1.0f, 200.0f, -200.0f};
  Array x(ir::kFloat32, {kCount}), y(ir::kFloat32, {kCount});
  for (int64_t i = 0; i < kCount; ++i) x.as<float>()[i] = edges[i % std::size(edges)];
  run(parse(program_of(GetParam().name)), {x.view(), y.view()});
  for (size_t i = 0; i < std::size(edges); ++i) {
    const float exact = static_cast<float>(GetParam().exact(edges[i])), got = y.as<float>()[i];
    const auto agrees = [&] {
      if (std::isnan(exact)) return std::isnan(got);
      if (std::isinf(exact) || exact == 0) return got == exact || (exact == 0 && std::fabs(got) < 1.2e-38);
      // Beyond 1 only the limits matter here: tan of 200 is as good as any number.
      return std::fabs(edges[i]) > 1 || std::fabs(got - exact) <= 4 * ulp(exact);
    };
    EXPECT_TRUE(agrees()) << edges[i] << " gives " << got << " instead of " << exact;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, MathTest, ::testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tilepilot::testing
