// Products of float32 by tensor cores, as accurate as the program asks for: errors against sums of doubles, beside
// those of plain float32; numbers at the edges; both architectures, every way of storing operands.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "compiler/targets/cuda/prelude.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/nvrtc_fixture.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

struct PrecisionCase {
  std::string name, precision = "fp32";
  bool transpose_a = false, transpose_b = false;
  int64_t m = 64, n = 64, k = 96;  // of the tensors
  int64_t tile_m = 64, tile_n = 64, tile_k = 32, threads = 128;
  bool held = false;  // A in registers
};

std::vector<PrecisionCase> precision_cases() {
  return {{.name = "nt", .transpose_b = true},
          {.name = "nn"},
          {.name = "tn", .transpose_a = true},
          {.name = "tt", .transpose_a = true, .transpose_b = true},
          {.name = "tails", .transpose_b = true, .m = 70, .n = 50, .k = 45},
          {.name = "tails_nn", .m = 50, .n = 70, .k = 83},
          {.name = "wide", .transpose_b = true, .m = 128, .n = 128, .k = 64, .tile_m = 128, .tile_n = 128},
          {.name = "two_groups", .transpose_b = true, .m = 128, .n = 128, .tile_m = 128, .tile_n = 128, .threads = 256},
          {.name = "two_groups_nn", .m = 128, .n = 128, .tile_m = 128, .tile_n = 128, .threads = 256},
          {.name = "two_groups_tt", .transpose_a = true, .transpose_b = true, .m = 128, .tile_m = 128, .threads = 256},
          {.name = "across", .transpose_b = true, .m = 64, .n = 256, .k = 64, .tile_n = 256, .threads = 256},
          {.name = "two_rounds", .transpose_b = true, .k = 128, .tile_k = 64},
          {.name = "two_rounds_held", .k = 128, .tile_k = 64, .held = true},
          {.name = "narrow", .transpose_b = true, .n = 24, .tile_n = 24},
          {.name = "one_step", .transpose_b = true, .k = 40, .tile_k = 8},
          {.name = "held", .transpose_b = true, .held = true},
          {.name = "tf32", .precision = "tf32", .transpose_b = true},
          {.name = "tf32_nn", .precision = "tf32"},
          {.name = "tf32_held", .precision = "tf32", .transpose_b = true, .held = true}};
}

std::string precision_text(const PrecisionCase& c) {
  const auto pair = [](int64_t a, int64_t b, bool swaps) {
    return swaps ? fmt::format("[{}, {}]", b, a) : fmt::format("[{}, {}]", a, b);
  };
  const auto box = [](const std::string& rows, int64_t tall, const std::string& columns, int64_t wide, bool swaps) {
    return swaps ? fmt::format("[{} : +{}, {} : +{}]", columns, wide, rows, tall)
                 : fmt::format("[{} : +{}, {} : +{}]", rows, tall, columns, wide);
  };
  const auto tiles = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  return fmt::format(
      R"(program product(a: float32{a}, b: float32{b}, c: float32[{m}, {n}]) {{
  kernel bx, by in {gx}, {gy} threads {threads} {{
    shared a_tile: float32{at}
    shared b_tile: float32{bt}
    {scope} a_own: float32{at}
    fragment c_tile: float32[{tm}, {tn}]
    fill c_tile = 0.0
    pipelined k in {steps} stages 2 {{
      copy a{abox} -> a_tile
      copy b{bbox} -> b_tile
      {copy}
      gemm c_tile += {own}{ta} @ b_tile{tb} precision {precision}
    }}
    copy c_tile -> c[by * {tm} : +{tm}, bx * {tn} : +{tn}]
  }}
}})",
      fmt::arg("a", pair(c.m, c.k, c.transpose_a)), fmt::arg("b", pair(c.k, c.n, c.transpose_b)), fmt::arg("m", c.m),
      fmt::arg("n", c.n), fmt::arg("gx", tiles(c.n, c.tile_n)), fmt::arg("gy", tiles(c.m, c.tile_m)),
      fmt::arg("threads", c.threads), fmt::arg("at", pair(c.tile_m, c.tile_k, c.transpose_a)),
      fmt::arg("bt", pair(c.tile_k, c.tile_n, c.transpose_b)), fmt::arg("scope", c.held ? "fragment" : "shared"),
      fmt::arg("tm", c.tile_m), fmt::arg("tn", c.tile_n), fmt::arg("steps", tiles(c.k, c.tile_k)),
      fmt::arg("abox", box(fmt::format("by * {}", c.tile_m), c.tile_m, fmt::format("k * {}", c.tile_k), c.tile_k,
                           c.transpose_a)),
      fmt::arg("bbox", box(fmt::format("k * {}", c.tile_k), c.tile_k, fmt::format("bx * {}", c.tile_n), c.tile_n,
                           c.transpose_b)),
      fmt::arg("copy", c.held ? "copy a_tile -> a_own" : ""), fmt::arg("own", c.held ? "a_own" : "a_tile"),
      fmt::arg("ta", c.transpose_a ? ".T" : ""), fmt::arg("tb", c.transpose_b ? ".T" : ""),
      fmt::arg("precision", c.precision));
}

// The tensors of a case, and its sums as doubles and as float32 has them.
struct PrecisionRun {
  Array a, b, c;
  std::vector<double> exact;
  std::vector<float> plain;

  PrecisionRun(const PrecisionCase& shape, const std::function<float()>& number)
      : a(ir::kFloat32, shape.transpose_a ? std::vector{shape.k, shape.m} : std::vector{shape.m, shape.k}),
        b(ir::kFloat32, shape.transpose_b ? std::vector{shape.n, shape.k} : std::vector{shape.k, shape.n}),
        c(ir::kFloat32, {shape.m, shape.n}) {
    for (int64_t i = 0; i < a.size(); ++i) a.as<float>()[i] = number();
    for (int64_t i = 0; i < b.size(); ++i) b.as<float>()[i] = number();
    sum(shape);
  }

  void sum(const PrecisionCase& shape) {
    exact.clear();
    plain.clear();
    for (int64_t row = 0; row < shape.m; ++row)
      for (int64_t column = 0; column < shape.n; ++column) {
        double total = 0;
        float rounded = 0;
        for (int64_t k = 0; k < shape.k; ++k) {
          const float x = a.as<float>()[shape.transpose_a ? k * shape.m + row : row * shape.k + k];
          const float y = b.as<float>()[shape.transpose_b ? column * shape.k + k : k * shape.n + column];
          total += static_cast<double>(x) * static_cast<double>(y);
          rounded = std::fma(x, y, rounded);
        }
        exact.push_back(total);
        plain.push_back(rounded);
      }
  }

  // The root of the mean square error.
  double error(const float* values) const {
    double total = 0;
    for (size_t k = 0; k < exact.size(); ++k) total += std::pow(static_cast<double>(values[k]) - exact[k], 2);
    return std::sqrt(total / static_cast<double>(exact.size()));
  }
};

class EmulatedPrecision : public ::testing::TestWithParam<Architecture> {};

TEST_P(EmulatedPrecision, IsWhatTheProgramAsksFor) {
  EmulatedBatch batch(GetParam());
  const auto cases = precision_cases();
  for (const PrecisionCase& c : cases) {
    const auto added = batch.add(parse(precision_text(c)));
    ASSERT_TRUE(added.ok()) << c.name << ": " << added.error().message;
  }
  batch.compile(true);
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < cases.size(); ++k) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    PrecisionRun run(cases[k], [&] { return normal(random); });
    EXPECT_EQ(batch.run(k, {run.a.view(), run.b.view(), run.c.view()}), "") << cases[k].name << "\n" << batch.source(k);
    const double error = run.error(run.c.as<float>()), plain = run.error(run.plain.data());
    if (cases[k].precision == "fp32") {
      // What products of two low parts lose is less than what plain sums of some length lose.
      const double lost = 0x1p-22 * std::sqrt(static_cast<double>(cases[k].k));
      EXPECT_LE(error, cases[k].k < 64 ? std::max(plain, lost) : plain) << cases[k].name;
    } else {
      EXPECT_LE(error, 16384 * plain) << cases[k].name;
      EXPECT_GE(error, 16 * plain) << cases[k].name;  // no more was asked for, and tensor cores do the work
    }
  }
}

// Each number meets all others, and what their product is in float32 is what comes out.
void expect_edges(EmulatedBatch& batch, size_t number, const PrecisionCase& c) {
  const std::vector<float> edges{
      0.0f,      -0.0f,       1.0f,      -1.0f, 1.0f + 0x1p-23f, INFINITY, -INFINITY, NAN, 3.402823466e38f, -3.4e38f,
      0x1p-126f, 0x1.8p-140f, 0x1p-149f, 0.1f,  0x1.fffffep-1f,  0x1p127f};
  PrecisionRun run(c, [] { return 0.0f; });
  for (int64_t i = 0; i < 16; ++i) run.a.as<float>()[i * 16 + 3] = run.b.as<float>()[i * 16 + 3] = edges[size_t(i)];
  for (int64_t i = 0; i < 16; ++i) run.a.as<float>()[i * 16 + 9] = run.b.as<float>()[i * 16 + 9] = 0.5f;
  run.sum(c);
  EXPECT_EQ(batch.run(number, {run.a.view(), run.b.view(), run.c.view()}), "");
  for (size_t k = 0; k < run.plain.size(); ++k) {
    const float got = run.c.as<float>()[k], wanted = run.plain[k];
    const float x = edges[k / 16], y = edges[k % 16];
    if (std::max(std::fabs(x), std::fabs(y)) == std::numeric_limits<float>::max()) continue;  // may be infinite
    const std::string where = fmt::format("{} times {}", x, y);
    const bool lost = (x != 0 && std::fabs(x) < 0x1p-136f) || (y != 0 && std::fabs(y) < 0x1p-136f);
    if (std::isfinite(wanted)) {
      const float digits = 0x1p-136f * (std::fabs(x) + std::fabs(y));
      EXPECT_LE(std::fabs(got - wanted), std::fabs(wanted) * 0x1p-22f + digits) << where;
    } else if (lost) {
      EXPECT_FALSE(std::isfinite(got)) << where;
    } else {
      EXPECT_EQ(std::isnan(got), std::isnan(wanted)) << where;
      // The error of a finite result may be what keeps it below infinity.
      if (!std::isnan(wanted)) { EXPECT_GE(std::copysign(got, wanted * got), 0x1.fffff8p127f) << where; }
    }
  }
}

TEST_P(EmulatedPrecision, KeepsNumbersAtTheEdges) {
  const PrecisionCase by_warps{.name = "edges",
                               .transpose_b = true,
                               .m = 16,
                               .n = 16,
                               .k = 16,
                               .tile_m = 16,
                               .tile_n = 16,
                               .tile_k = 16,
                               .threads = 32};
  PrecisionCase by_groups = by_warps;
  by_groups.tile_m = 64;
  by_groups.threads = 128;
  EmulatedBatch batch(GetParam());
  for (const PrecisionCase& c : {by_warps, by_groups}) ASSERT_TRUE(batch.add(parse(precision_text(c))).ok());
  batch.compile();
  for (const size_t k : {0, 1}) expect_edges(batch, k, by_warps);
}

TEST_P(EmulatedPrecision, UsesTensorCoresWhenAsked) {
  PrecisionCase c{.name = "asked", .transpose_b = true};
  const auto source = [&](const std::string& precision) {
    c.precision = precision;
    auto code = targets::cuda::generate(parse(precision_text(c)), GetParam());
    return code.ok() ? code->source : code.error().message;
  };
  const bool groups = GetParam() == Architecture::sm_90a;
  for (const bool stored_along_k : {true, false}) {
    c.transpose_b = stored_along_k;
    EXPECT_THAT(source("fp32"), HasSubstr(groups ? "wgmma_m64n64k8_f32_tf32_tf32_ra(" : "split_product<"));
  }
  c.transpose_b = true;
  EXPECT_THAT(source("tf32"), HasSubstr(groups ? "wgmma_m64" : "mma_m16n8k8("));
  EXPECT_THAT(source("ieee"), Not(HasSubstr("mma_")));
  // 128 sums of a thread leave room for those of 128 columns, but 256 for none.
  c = {.name = "large", .transpose_b = true, .m = 128, .n = 256, .tile_m = 128, .tile_n = 256, .threads = 256};
  if (groups) { EXPECT_THAT(source("fp32"), HasSubstr("wgmma_m64n128k8_f32_tf32_tf32_ra(")); }
  c.threads = 128;
  EXPECT_THAT(source("fp32"), HasSubstr("split_product<"));
}

TEST_P(EmulatedPrecision, Compiles) {
  SKIP_WITHOUT_NVRTC();
  for (const PrecisionCase& c : precision_cases()) {
    const auto code = targets::cuda::generate(parse(precision_text(c)), GetParam());
    ASSERT_TRUE(code.ok()) << c.name << ": " << code.error().message;
    DiagnosticList warnings;
    const auto made = nvrtc().compile(targets::cuda::prelude() + code->source,
                                      GetParam() == Architecture::sm_90a ? "sm_90a" : "sm_80", warnings);
    ASSERT_TRUE(made.ok()) << c.name << ": " << made.error().message << "\n" << code->source;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedPrecision, ::testing::Values(Architecture::sm_80, Architecture::sm_90a),
                         [](const auto& info) { return info.param == Architecture::sm_80 ? "sm_80" : "sm_90a"; });

}  // namespace
}  // namespace tilepilot::testing
