// Layouts that nothing demands: of several partitions the one that costs the least is chosen, the plain one where that
// is as cheap. Costs are the emulator's counts of what the generated code does.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/layout/free_layouts.h"
#include "compiler/targets/gpu/layout/layout_cost.h"
#include "compiler/targets/gpu/schedule/pipeline.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using targets::gpu::FreeLayout;
using targets::gpu::FreeTile;
using targets::gpu::LayoutCost;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kTile = 64 * 64;

// Threads hold neighbours along both axes, so that both sides are vectors and no sector moves in part.
TEST(FreeLayouts, OfATileThatIsStoredTransposed) {
  const Launched run = launched(R"(program f(x: float16[64, 64], y: float16[64, 64]) {
  kernel bx in 1 threads 128 {
    fragment t: float16[64, 64]
    copy x -> t
    parallel i, j in 64, 64 {
      y[j, i] = t[i, j]
    }
  }
})");
  EXPECT_EQ(run.sectors(), 2 * kTile * 2 / 32);  // rows by vectors: 1280
  EXPECT_LE(run.accesses(), 64);                 // 144
  EXPECT_THAT(run.source, AllOf(HasSubstr("copy_vector<16>(&x_v"), HasSubstr("copy_vector<8>(y")));
  EXPECT_THAT(run.explanation, AllOf(HasSubstr("layout of fragment t: axis "), HasSubstr("    not plain, cost ")));
}

TEST(FreeLayouts, OfATransposingLoop) {
  const Launched run = launched(R"(program f(x: float32[64, 64], y: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    parallel i, j in 64, 64 {
      y[j, i] = x[i, j]
    }
  }
})");
  EXPECT_EQ(run.sectors(), 2 * kTile * 4 / 32);  // 2560
  EXPECT_THAT(run.explanation, HasSubstr("layout of loop over 64 x 64: axis "));
}

// Rows of a matrix divided by what each row's threads know: all of them have a part of the row, and lanes find theirs
// side by side, whether their number divides the row or not.
Launched divided_rows(int64_t columns) {
  return launched(fmt::format(R"(program f(x: float32[8, {0}], y: float32[8, {0}]) {{
  kernel bx in 2 threads 128 {{
    fragment s: float32[4]
    fragment t: float32[4, 32]
    copy x[bx * 4 : +4, 0 : +32] -> t
    reduce sum t -> s axis 1
    parallel i, j in 4, {0} {{
      y[bx * 4 + i, j] = x[bx * 4 + i, j] / s[i]
    }}
  }}
}})",
                              columns));
}

TEST(FreeLayouts, OfRowsThatNoThreadCountDivides) {
  const Launched run = divided_rows(771);
  EXPECT_LE(run.accesses(), 2 * 8 * 771 / 32 * 5 / 4);
  EXPECT_LE(run.sectors(), 2 * 8 * 771 / 8 * 3 / 2);
}

TEST(FreeLayouts, OfLongRowsByVectors) {
  const Launched run = divided_rows(2048);
  EXPECT_LE(run.accesses(), 2 * 8 * 2048 / 128 * 9 / 8);
  EXPECT_LE(run.sectors(), 2 * 8 * 2048 / 8 * 9 / 8);
}

// The third part of the threads that is no power of two has work, too.
TEST(FreeLayouts, OfATransposingLoopByThreadsOfThreeWarps) {
  const Launched run = launched(R"(program f(x: float32[64, 96], y: float32[96, 64]) {
  kernel bx in 1 threads 96 {
    parallel i, j in 64, 96 {
      y[j, i] = x[i, j]
    }
  }
})");
  EXPECT_EQ(run.sectors(), 2 * 64 * 96 * 4 / 32);
  EXPECT_LE(run.accesses(), 64 * 96 / 32 * 5 / 4);
}

// What lies together in memory is what the strides say.
TEST(FreeLayouts, OfATensorWithStrides) {
  const Launched run = launched(R"(program f(x: float32[64, 64] strides [1, 64], y: float32[64]) {
  kernel bx in 1 threads 128 {
    fragment t: float32[64, 64]
    fragment s: float32[64]
    copy x -> t
    reduce sum t -> s axis 1
    copy s -> y
  }
})");
  EXPECT_LE(run.counters.global_reads.global_sectors, kTile * 4 / 32);  // 2048
}

// Few threads share a column, and leave the reduction little to exchange.
TEST(FreeLayouts, OfATileThatIsReducedAlongItsFirstAxis) {
  const Launched run = launched(R"(program f(x: float16[64, 128], y: float32[128]) {
  kernel bx in 1 threads 128 {
    fragment t: float32[64, 128]
    fragment s: float32[128]
    copy x -> t
    reduce sum t -> s axis 0
    copy s -> y
  }
})");
  EXPECT_EQ(run.counters.shuffles, 0);
  EXPECT_EQ(run.counters.global_reads.global_sectors, 64 * 128 * 2 / 32);
  EXPECT_LE(run.wavefronts(), 64);  // 160
}

// A warp keeps a row to itself.
TEST(FreeLayouts, OfSeveralLongRows) {
  const Launched run = launched(R"(program f(x: float16[4, 1000], y: float16[4, 1000]) {
  kernel bx in 1 threads 128 {
    fragment t: float16[4, 1000]
    fragment s: float16[4]
    copy x -> t
    reduce max t -> s axis 1
    parallel i, j in 4, 1000 {
      y[i, j] = t[i, j] - s[i]
    }
  }
})");
  EXPECT_EQ(run.wavefronts(), 0);  // 80
  EXPECT_EQ(run.counters.block_syncs, 0);
  EXPECT_EQ(run.counters.shuffles, 4 * 5);
  EXPECT_THAT(run.source, HasSubstr("copy_vector<16>(&x_v"));
}

TEST(FreeLayouts, OfAFragmentThatIsLoadedAlongColumns) {
  const Launched run = launched(R"(program f(x: float32[64, 64], y: float32[64]) {
  kernel bx in 1 threads 128 {
    shared c: float32[64, 64]
    fragment t: float32[64, 64]
    fragment s: float32[64]
    copy x -> c
    parallel i, j in 64, 64 {
      t[i, j] = c[j, i]
    }
    reduce sum t -> s axis 1
    copy s -> y
  }
})");
  EXPECT_EQ(run.counters.shared_reads.bank_conflicts, 0);
  EXPECT_LE(run.counters.shared_reads.shared_wavefronts, 256);  // 2048
}

// A tile is swizzled where that saves a quarter of what its loops wait for: accumulators of 32 bits, whose pairs lie in
// eight rows, wait half as long, vectors of rows as long as before.
TEST(FreeLayouts, OfATileOfSumsThatIsAddedToATensor) {
  const Launched run = launched(
      R"(program f(a: float16[64, 32], b: float16[32, 128], c: float32[64, 128]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 32]
    shared b_tile: float16[32, 128]
    shared sums: float32[64, 128]
    fragment s: float32[64, 128]
    copy a -> a_tile
    copy b -> b_tile
    fill s = 0.0
    gemm s += a_tile @ b_tile
    copy s -> sums
    parallel i, j in 64, 128 {
      atomic add c[i, j], sums[i, j]
    }
  }
})",
      Architecture::sm_90a);
  constexpr int64_t kPairs = 64 * 128 / 2 / 32, kVectors = 64 * 128 / 4 / 32;
  EXPECT_LE(run.wavefronts(), 4 * kPairs + 4 * kVectors + 128);  // in rows 8 times kPairs
}

// Where elements move one by one anyway, neighbours go to neighbouring threads.
TEST(FreeLayouts, OfALoopThatCannotMoveVectors) {
  const Launched run = launched(R"(program f(x: float32[64, 64], y: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    parallel i, j in 64, 64 {
      atomic add y[i, j], x[i, j]
    }
  }
})");
  EXPECT_EQ(run.counters.global_reads.global_sectors, kTile * 4 / 32);  // 2048
}

// What follows from a choice counts as well: here the loop that stores another fragment.
TEST(FreeLayouts, SeeWhatFollows) {
  const Launched run = launched(R"(program f(x: float16[64, 64], y: float16[64, 64]) {
  kernel bx in 1 threads 128 {
    fragment t: float16[64, 64]
    fragment u: float16[64, 64]
    copy x -> t
    parallel i, j in 64, 64 {
      u[i, j] = t[i, j] + 1.0
    }
    parallel i, j in 64, 64 {
      y[j, i] = u[i, j]
    }
  }
})");
  EXPECT_EQ(run.sectors(), 2 * kTile * 2 / 32);
  EXPECT_THAT(run.source, HasSubstr("copy_vector<8>(y"));
}

targets::gpu::PlannedKernel planned(const std::string& text) {
  const auto prepared = targets::gpu::prepare(parse(text));
  EXPECT_TRUE(prepared.ok());
  auto kernel = targets::gpu::plan_kernel(prepared->kernels[0], targets::gpu::machine_of(Architecture::sm_80));
  EXPECT_TRUE(kernel.ok());
  return std::move(*kernel);
}

// Rows of vectors are as good as can be, or as good as others: no reason to depart from them.
TEST(FreeLayouts, ArePlainWhereNothingCostsLess) {
  for (const std::string body : {"copy t -> y", "parallel i, j in 64, 64 {\n y[i, j] = t[63 - i, j]\n }"}) {
    const std::string text = fmt::format(R"(program f(x: float16[64, 64], y: float16[64, 64]) {{
  kernel bx in 1 threads 128 {{
    fragment t: float16[64, 64]
    copy x -> t
    {}
  }}
}})",
                                         body);
    const targets::gpu::PlannedKernel kernel = planned(text);
    bool found = false;
    for (const auto& [buffer, fragment] : kernel.inference.fragments) {
      if (buffer->name != "t") continue;
      found = true;
      EXPECT_TRUE(layout::equal_functions(fragment, plain_fragment(FreeTile{{64, 64}, 128, 8, {}, {}}))) << body;
    }
    EXPECT_TRUE(found);
  }
  const std::string halves = R"(program f(x: float16[64, 64], y: float16[64, 64]) {
  kernel bx in 1 threads 128 {
    fragment t: float16[64, 64]
    copy x -> t
    copy t -> y
  }
})";
  EXPECT_THAT(launched(halves).explanation, Not(HasSubstr("layout of")));
}

// The costs of a kernel's loops as they were dealt out.
LayoutCost cost_of(const std::string& text) {
  const targets::gpu::PlannedKernel kernel = planned(text);
  targets::c::IntegerFacts facts;
  facts.learn(kernel.kernel);
  LayoutCost cost;
  ir::walk(
      kernel.kernel.body,
      [&](const ir::Stmt& stmt) {
        const auto found = kernel.inference.loops.find(stmt.get());
        if (found == kernel.inference.loops.end()) return;
        const auto loop = targets::gpu::parallel_loop(stmt, 1);
        cost += loop_cost(*loop,
                          memory_accesses(*loop, facts, kernel.inference.tiles, kernel.inference.machine.adds_vectors),
                          found->second);
      },
      [](const ir::Expr&) {});
  return cost;
}

// Sectors and wavefronts are no guesses where loops are regular.
TEST(LayoutCosts, AreWhatTheEmulatorCounts) {
  const std::vector<std::string> bodies{
      "parallel i, j in 64, 64 {\n y[i, j] = x[i, j]\n }",
      "parallel i, j in 64, 64 {\n y[j, i] = x[i, j]\n }",
      "parallel i, j in 32, 64 {\n y[2 * i, j] = x[i, j]\n }",
      "parallel i in 64 {\n y[i, 0] = x[0, i]\n }",
      "parallel i, j in 64, 64 {\n c[i, j] = x[i, j]\n }\n parallel i, j in 64, 64 {\n y[i, j] = c[j, i]\n }",
      "parallel i, j in 64, 32 {\n c[i, j] = x[i, j]\n }\n parallel i, j in 64, 32 {\n y[i, 2 * j] = c[i, j]\n }",
  };
  for (const std::string& body : bodies) {
    const std::string text = fmt::format(R"(program f(x: float32[64, 64], y: float32[64, 64]) {{
  kernel bx in 1 threads 128 {{
    shared c: float32[64, 64]
    {}
  }}
}})",
                                         body);
    const Launched run = launched(text);
    const LayoutCost cost = cost_of(text);
    EXPECT_EQ(cost.sectors, run.sectors()) << body;
    EXPECT_EQ(cost.wavefronts, run.wavefronts()) << body;
    EXPECT_EQ(cost.accesses,
              run.accesses() + run.counters.shared_reads.instructions + run.counters.shared_writes.instructions)
        << body;
  }
}

TEST(LayoutCosts, OfReductionsCountShufflesAndBoards) {
  const layout::Fragment rows = targets::gpu::plain_fragment({{64, 128}, 128, 8, {}, {}});  // 16 threads a row
  const LayoutCost along = targets::gpu::reduction_cost(rows, 1, 8);
  const LayoutCost across = targets::gpu::reduction_cost(rows, 0, 8);
  EXPECT_EQ(along.shuffles, 4 * 8 * 4);
  EXPECT_EQ(along.barriers, 0);
  EXPECT_EQ(across.shuffles, 4 * 8 * 1);
  EXPECT_EQ(across.barriers, 1);
  EXPECT_EQ(across.wavefronts, 4 * 8 * (1 + 4));
  EXPECT_LT(along.total() - along.steps, across.total() - across.steps);
}

// Of bringing the result of one product to where the next one wants its first operand.
struct Ways {
  int64_t shuffles = 0;
  LayoutCost by_shuffles, by_memory;
};
Ways ways_of(const std::string& type, int64_t columns) {
  const ir::Program program = parse(fmt::format(R"(program f(a: int8[64, 32]) {{
  kernel bx in 1 threads 128 {{
    shared a_tile: int8[64, 32]
    shared b_tile: int8[{1}, 32]
    shared v_tile: {0}[{1}, 32]
    fragment s: int32[64, {1}]
    fragment p: {0}[64, {1}]
    fragment sums: {2}[64, 32]
    gemm s += a_tile @ b_tile.T policy full_row
    gemm sums += p @ v_tile policy full_row
  }}
}})",
                                                type, columns, type == "int8" ? "int32" : "float32"));
  std::vector<targets::gpu::GemmPlan> plans;
  int64_t bits = 0;
  for (const ir::Stmt& stmt : ir::statements(program.kernels[0].body)) {
    const auto& gemm = *ir::as<ir::Gemm>(stmt);
    plans.push_back(targets::gpu::plan_gemm(gemm, 128, targets::gpu::machine_of(Architecture::sm_80), {}));
    bits = gemm.a.buffer->type.bits;
  }
  const auto moves = layout::warp_moves(plans[0].c, *plans[1].a, 32 / bits);
  return {moves->shuffles(), targets::gpu::shuffle_cost(*moves, bits, 128),
          targets::gpu::exchange_cost(plans[0].c, *plans[1].a, bits)};
}

TEST(LayoutCosts, OfConversionsAreAsMeasured) {
  const Ways narrow = ways_of("int8", 128), whole = ways_of("tfloat32", 32);
  EXPECT_EQ(narrow.shuffles, 64);
  EXPECT_GT(narrow.by_shuffles.total(), narrow.by_memory.total());
  EXPECT_EQ(whole.shuffles, 32);
  EXPECT_LT(whole.by_shuffles.total(), whole.by_memory.total());
  EXPECT_EQ(whole.by_memory.barriers, 2);
}

TEST(LayoutCosts, OfTooManyRegisters) {
  EXPECT_EQ(targets::gpu::register_cost(128, 128).total(), 0);
  EXPECT_GT(targets::gpu::register_cost(300, 128).total(), 0);
  EXPECT_GT(targets::gpu::register_cost(128, 1024).total(), 0);
}

// Of odd shapes and numbers of threads, too.
TEST(FreeLayouts, HoldEveryElementAndStayWithinAxes) {
  const std::vector<layout::Shape> shapes{{1}, {7}, {64}, {3, 5}, {64, 1}, {1, 64}, {37, 24}, {2, 3, 20}, {8, 6, 16}};
  int checked = 0;
  for (const layout::Shape& shape : shapes) {
    for (const int64_t threads : {1, 32, 96, 128, 100}) {
      for (const int64_t vector : {1, 4, 8}) {
        const FreeTile tile{shape, threads, vector, {0}, {shape.size() - 1}};
        std::vector<FreeLayout> all = other_layouts(tile);
        all.push_back({"plain", plain_fragment(tile)});
        for (const FreeLayout& one : all) {
          EXPECT_EQ(one.fragment.shape(), shape);
          EXPECT_EQ(one.fragment.thread_count(), threads) << one.name;
          EXPECT_TRUE(one.fragment.is_complete()) << one.name;
          EXPECT_TRUE(targets::gpu::is_separable(one.fragment)) << one.name;
          ++checked;
        }
        EXPECT_TRUE(plain_loop(tile).is_complete());
        const layout::Fragment dealt = targets::gpu::dealt_out(shape, {threads, vector});
        EXPECT_TRUE(dealt.is_complete());
        EXPECT_TRUE(std::gcd(vector, shape.back()) == 1 || targets::gpu::is_separable(dealt));
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

}  // namespace
}  // namespace tilepilot::testing
