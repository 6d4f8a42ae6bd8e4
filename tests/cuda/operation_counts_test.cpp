// Arithmetic by class, as the emulator counts it: exact numbers of programs that can be counted by hand.
#include <gmock/gmock.h>

#include <regex>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::c::Operation;
using targets::c::Operations;
using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

struct CountedRun {
  emulator::Counters counters;
  std::string source;

  int64_t warps(Operation operation) const { return counters.warp_operations[operation]; }
  const Operations& line(int64_t number) const { return counters.operation_lines.at({"program.ir", number}); }
};

CountedRun counted(const std::string& text, Architecture architecture = Architecture::sm_80) {
  SourceMap sources;
  DiagnosticList warnings;
  const auto program = ir::read_text(sources, sources.add("program.ir", text), warnings);
  EXPECT_TRUE(program && !warnings.has_errors()) << text;
  EmulatedBatch batch(architecture);
  const auto added = batch.add(*program, &sources, true);
  EXPECT_TRUE(added.ok()) << added.error().message;
  batch.compile();
  const ir::testing::RandomArguments given(*program, 1);
  EXPECT_EQ(batch.run(0, to_launch(given.values())), "") << batch.source(0);
  return {batch.counters(), batch.source(0)};
}

// Classes that are not named are 0.
Operations these(const std::vector<std::pair<Operation, int64_t>>& counts) {
  Operations all;
  for (const auto& [operation, count] : counts) all[operation] = count;
  return all;
}

std::string shown(const Operations& operations) {
  std::string text;
  for (size_t k = 0; k < targets::c::kOperationClasses; ++k)
    text += fmt::format("{} {}, ", operations[static_cast<Operation>(k)], name_of(static_cast<Operation>(k)));
  return text;
}

void expect_same(const Operations& actual, const Operations& expected, const std::string& source) {
  EXPECT_EQ(shown(actual), shown(expected)) << source;
}

TEST(OperationCounts, OfElements) {
  const CountedRun run = counted(R"(program p(x: float32[256], y: float32[256]) {
  kernel bx in 2 threads 32 {
    parallel i in 128 {
      y[bx * 128 + i] = exp(x[bx * 128 + i]) * 2.0 + 1.0
    }
  }
})");
  // bx * 128 + thread * 4, once for both tensors.
  const Operations indices = these({{Operation::integer, 64 * 3}});
  const Operations values = these({{Operation::fp32_fma, 256}, {Operation::special, 256}});
  Operations all = indices;
  all.add(values);
  expect_same(run.counters.thread_operations, all, run.source);
  expect_same(run.line(3), indices, run.source);
  expect_same(run.line(4), values, run.source);
  EXPECT_EQ(run.warps(Operation::fp32_fma), 8);
  EXPECT_EQ(run.warps(Operation::integer), 6);
}

// Eight rows, of which the tensor has seven; a warp has a row, a thread at most eight vectors of it, in all 250.
TEST(OperationCounts, OfRowsOfASoftmax) {
  const CountedRun run = counted(R"(program softmax(x: float32[7, 1000], y: float32[7, 1000]) {
  kernel bx in 2 threads 128 {
    fragment t: float32[4, 1000]
    fragment largest: float32[4]
    fragment total: float32[4]
    copy x[bx * 4 : +4, 0 : +1000] -> t
    reduce max t -> largest axis 1
    parallel i, j in 4, 1000 {
      t[i, j] = exp(t[i, j] - largest[i])
    }
    reduce sum t -> total axis 1
    parallel i, j in 4, 1000 {
      t[i, j] = t[i, j] / total[i]
    }
    copy t -> y[bx * 4 : +4, 0 : +1000]
  }
})");
  constexpr int64_t kThreads = 256, kElements = 8 * 1000, kVectors = 8 * 250;
  // Whether a vector or an element is in the row is asked of each register.
  constexpr int64_t kOfVectors = kThreads * 8, kOfElements = kThreads * 32, kShuffles = 5 * kThreads;
  // thread % 32, thread / 32, and the offset of (bx * 4 + t1) * 1000 + t0 * 4; whether that row is there.
  expect_same(run.line(6),
              these({{Operation::integer, 7 * kThreads}, {Operation::comparison, kThreads + 2 * kOfVectors}}),
              run.source);
  expect_same(run.line(7), these({{Operation::comparison, kElements + kOfElements + kShuffles}}), run.source);
  expect_same(run.line(9), these({{Operation::fp32, kElements}, {Operation::special, kElements}}), run.source);
  expect_same(run.line(11), these({{Operation::fp32, kElements + kShuffles}, {Operation::comparison, kOfElements}}),
              run.source);
  // Quick divisions: of each vector one reciprocal, and a test of the divisor and of each dividend.
  ASSERT_THAT(run.source, HasSubstr("reciprocal_quotient"));
  expect_same(run.line(12),
              these({{Operation::integer, 2 * kElements},
                     {Operation::comparison, 2 * kElements + 2 * kVectors + kOfVectors},
                     {Operation::special, kVectors}}),
              run.source);
  expect_same(run.line(13), these({{Operation::fp32, kElements}, {Operation::fp32_fma, 2 * kElements}}), run.source);
}

// Divided as ever, in the other one of the two loops.
TEST(OperationCounts, OfDivisionsThatAreNotQuick) {
  const std::string text = R"(program p(x: float32[128], y: float32[128]) {
  kernel bx in 1 threads 32 {
    parallel i in 128 {
      y[i] = x[i] / SCALE
    }
  }
})";
  const auto divided_by = [&](const std::string& divisor) {
    std::string with = text;
    return counted(with.replace(with.find("SCALE"), 5, divisor));
  };
  const CountedRun quick = divided_by("3.0"), slow = divided_by("1e-30"), product = divided_by("4.0");
  ASSERT_THAT(slow.source, HasSubstr("reciprocal_quotient"));
  EXPECT_EQ(slow.line(4)[Operation::special], 128);
  EXPECT_EQ(slow.line(4)[Operation::fp32_fma], 0);
  EXPECT_EQ(quick.line(4)[Operation::special], 0);
  EXPECT_EQ(quick.line(4)[Operation::fp32_fma], 256);
  ASSERT_THAT(product.source, Not(HasSubstr("reciprocal_quotient")));
}

TEST(OperationCounts, OfAPlainProduct) {
  const CountedRun run = counted(R"(program gemm(a: float32[64, 64], b: float32[64, 32], c: float32[64, 32]) {
  kernel bx, by in 2, 2 threads 64 {
    shared a_tile: float32[32, 16]
    shared b_tile: float32[16, 16]
    fragment sums: float32[32, 16]
    fill sums = 0.0
    pipelined k in 4 stages 2 {
      copy a[by * 32 : +32, k * 16 : +16] -> a_tile
      copy b[k * 16 : +16, bx * 16 : +16] -> b_tile
      gemm sums += a_tile @ b_tile
    }
    copy sums -> c[by * 32 : +32, bx * 16 : +16]
  }
})");
  EXPECT_EQ(run.counters.thread_operations[Operation::fp32_fma], 64 * 32 * 64);
  EXPECT_EQ(run.warps(Operation::fp32_fma), 64 * 32 * 64 / 32);
  EXPECT_EQ(run.counters.thread_operations[Operation::fp32], 0);
  // Of 256 threads, 64 steps, four in a turn of the loop, and more for the offsets of both operands.
  const int64_t steps = int64_t{256} * 64;
  EXPECT_EQ(run.line(10)[Operation::comparison], steps / 4);
  EXPECT_GE(run.line(10)[Operation::integer], steps);
  EXPECT_LE(run.line(10)[Operation::integer], 3 * steps);
}

// A warp goes both ways if its lanes do.
TEST(OperationCounts, OfBranches) {
  const CountedRun run = counted(R"(program p(x: float32[64], y: float32[64]) {
  kernel bx in 1 threads tx in 64 {
    if tx < 16 {
      y[tx] = x[tx] + 1.0
    } else {
      y[tx] = x[tx] * x[63 - tx]
    }
  }
})");
  expect_same(run.counters.thread_operations,
              these({{Operation::fp32, 16 + 48}, {Operation::integer, 48}, {Operation::comparison, 64}}), run.source);
  EXPECT_EQ(run.line(4)[Operation::fp32], 16);
  EXPECT_EQ(run.line(6)[Operation::fp32], 48);
  EXPECT_EQ(run.warps(Operation::fp32), 1 + 2);
  EXPECT_EQ(run.warps(Operation::comparison), 2);
}

// Thread t takes t + 1 turns; what a loop leaves unchanged is computed once.
TEST(OperationCounts, OfLoops) {
  const CountedRun run = counted(R"(program p(x: float32[64, 31], y: float32[32]) {
  kernel bx in 1 threads tx in 32 {
    local sum: float32[1]
    sum[0] = 0.0
    serial k in tx + 1 {
      sum[0] = sum[0] + x[tx * 2, k] * 0.5
    }
    y[tx] = sum[0]
  }
})");
  constexpr int64_t kTurns = 32 * 33 / 2;
  expect_same(run.line(5), these({{Operation::integer, kTurns + 32}, {Operation::comparison, kTurns}}), run.source);
  // tx * 2 * 31 before the loop; in it k is added, after a look whether it is inside.
  expect_same(
      run.line(6),
      these({{Operation::fp32_fma, kTurns}, {Operation::integer, kTurns + 2 * 32}, {Operation::comparison, kTurns}}),
      run.source);
  EXPECT_EQ(run.warps(Operation::fp32_fma), 32);
}

// Only who stores computes what it stores.
TEST(OperationCounts, OfGuards) {
  const CountedRun run = counted(R"(program p(x: float32[40], y: float32[40]) {
  kernel bx in 1 threads tx in 64 {
    y[tx] = x[0] * 2.0
  }
})");
  expect_same(run.counters.thread_operations, these({{Operation::fp32, 40}, {Operation::comparison, 64}}), run.source);
  EXPECT_EQ(run.warps(Operation::fp32), 2);
}

struct Formula {
  std::string_view value;
  std::vector<std::pair<Operation, int64_t>> counts;  // of one element
};
void PrintTo(const Formula& formula, std::ostream* out) { *out << formula.value; }

class FormulaCounts : public ::testing::TestWithParam<Formula> {};

// Of a single element for each thread, so that nothing else is computed.
TEST_P(FormulaCounts, AreOfEachElement) {
  const std::string value(GetParam().value);
  const std::string type = value.substr(0, value.find(' '));
  const CountedRun run =
      counted(fmt::format(R"(program p(h: float16[32], f: float32[32], d: float64[32], n: int32[32]) {{
  kernel bx in 1 threads tx in 32 {{
    {}[tx] = {}
  }}
}})",
                          type, value.substr(value.find(' ') + 1)));
  Operations expected;
  expected.add(these(GetParam().counts), 32);
  expect_same(run.counters.thread_operations, expected, run.source);
  Operations of_warp;
  of_warp.add(these(GetParam().counts));
  expect_same(run.counters.warp_operations, of_warp, run.source);
}

INSTANTIATE_TEST_SUITE_P(
    OperationCounts, FormulaCounts,
    ::testing::Values(
        Formula{"f f[tx] - 0.5", {{Operation::fp32, 1}}}, Formula{"f f[tx] * 0.5 - f[tx]", {{Operation::fp32_fma, 1}}},
        Formula{"f f[tx] * 0.5 + f[tx] * 0.25", {{Operation::fp32, 1}, {Operation::fp32_fma, 1}}},
        Formula{"f -abs(f[tx])", {}},
        Formula{"f f[tx] / (f[tx] + 1.0)", {{Operation::special, 1}, {Operation::fp32, 1}}},
        Formula{"f sigmoid(f[tx])", {{Operation::special, 2}, {Operation::fp32, 1}}},
        Formula{"f rsqrt(f[tx]) * rsqrt(f[tx])", {{Operation::special, 1}, {Operation::fp32, 1}}},
        Formula{"f floor(f[tx])", {{Operation::conversion, 1}}},
        Formula{"f select(f[tx] > 0.0, min(f[tx], 6.0), 0.0)", {{Operation::comparison, 3}}},
        Formula{"f float32(n[tx])", {{Operation::conversion, 1}}},
        // By instructions of the type.
        Formula{"h h[tx] * 2.0 + 1.0", {{Operation::fp32, 2}}}, Formula{"d d[tx] * 2.0 + 1.0", {{Operation::fp64, 1}}},
        Formula{"d exp(d[tx]) / 3.0", {{Operation::fp64, 2}}}, Formula{"n n[tx] * 3 + 1", {{Operation::integer, 2}}},
        Formula{"n n[tx] // 8 + (n[tx] << 2)", {{Operation::integer, 3}}},
        Formula{"n n[tx] // 7", {{Operation::integer_division, 1}}},
        Formula{"n n[tx] & 7 | tx", {{Operation::integer, 2}}},
        Formula{"n max(n[tx], tx)", {{Operation::comparison, 1}}}));

// What functions of the prelude compute is counted with their calls.
TEST(OperationCounts, OfSplitProducts) {
  const CountedRun run = counted(R"(program gemm(a: float32[32, 32], b: float32[32, 32], c: float32[32, 32]) {
  kernel bx in 1 threads 32 {
    shared a_tile: float32[32, 32]
    shared b_tile: float32[32, 32]
    fragment sums: float32[32, 32]
    fill sums = 0.0
    copy a -> a_tile
    copy b -> b_tile
    gemm sums += a_tile @ b_tile.T precision fp32
    copy sums -> c
  }
})");
  ASSERT_THAT(run.source, HasSubstr("split_floats"));
  ASSERT_THAT(run.source, HasSubstr("split_product"));
  // Each operand is split once: a difference and two roundings an element. Each sum of the two kinds of parts is
  // bounded, then added.
  const Operations& all = run.line(9);
  EXPECT_EQ(all[Operation::conversion], 2 * (32 * 32 + 32 * 32)) << run.source;
  EXPECT_EQ(all[Operation::fp32], (32 * 32 + 32 * 32) + all[Operation::comparison]) << run.source;
  EXPECT_EQ(all[Operation::comparison] % (32 * 32), 0);
  EXPECT_GT(all[Operation::comparison], 0);
}

// The calls that count are all that is different, and nobody else gets them.
TEST(OperationCounts, LeaveTheTextAlone) {
  const std::string programs[] = {
      R"(program p(x: float32[40], n: int32[40], y: float32[40]) {
  kernel bx in 1 threads tx in 64 {
    y[tx] = x[n[tx]] * 2.0
    atomic add n[tx], tx * 3 -> was: int32
  }
})",
      R"(program q(x: float16[64, 60], y: float16[64, 60]) {
  kernel bx in 4 threads 64 {
    shared t: float16[16, 64]
    fragment u: float32[16, 64]
    fragment total: float32[16]
    pipelined k in 3 stages 2 {
      copy x[bx * 16 : +16, k * 30 : +64] -> t
      copy t -> u
    }
    reduce sum u -> total axis 1
    parallel i, j in 16, 64 {
      u[i, j] = u[i, j] / total[i]
    }
    copy u -> y[bx * 16 : +16, 0 : +64]
  }
})"};
  for (const std::string& text : programs) {
    const ir::Program program = parse(text);
    for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
      const auto plain = targets::cuda::generate(program, architecture);
      const auto with = targets::cuda::generate(program, architecture, {nullptr, true});
      ASSERT_TRUE(plain.ok() && with.ok());
      EXPECT_THAT(plain->source, Not(HasSubstr("count_operations")));
      EXPECT_TRUE(plain->launches[0].operation_counters.empty());
      EXPECT_THAT(with->source, HasSubstr("emulated::count_operations(0)"));
      const std::string lines =
          std::regex_replace(with->source, std::regex(" *emulated::count_operations\\([0-9]+\\);\n"), "");
      EXPECT_EQ(std::regex_replace(lines, std::regex("emulated::count_operations\\([0-9]+\\), "), ""), plain->source);
      for (size_t number = 0; number < with->launches[0].operation_counters.size(); ++number) {
        const std::string call = fmt::format("emulated::count_operations({})", number);
        const bool is_called = with->source.find(call) != std::string::npos;
        EXPECT_EQ(is_called, !with->launches[0].operation_counters[number].parts.empty()) << call;
      }
    }
  }
}

}  // namespace
}  // namespace tilepilot::testing
