// Races that are certain, and what is none, or may be none.
#include "compiler/passes/iterations/iteration_races.h"
#include "compiler/passes/iterations/block_races.h"

#include <gmock/gmock.h>

#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"

namespace tilepilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ir::Program parse(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  auto program = ir::read_text(sources, sources.add("test.ir", text), diagnostics);
  EXPECT_TRUE(program) << text << "\n" << (program ? "" : diagnostics.items().front().message);
  return program ? *std::move(program) : ir::Program{};
}

// The loads at fault in a loop over 8 x 16 elements.
std::vector<std::string> races_of(const std::string& body) {
  const ir::Program program = parse(R"(program f(x: float32[64, 64], n: int32, at: int32[64]) {
  kernel bx in 4 threads 64 {
    shared s: float32[64, 64]
    shared flat: float32[4096]
    local own: float32[64]
    parallel i, j in 8, 16 {
)" + body + "\n    }\n  }\n}\n");
  std::vector<std::string> reads;
  ir::walk(
      program.kernels[0].body,
      [&](const ir::Stmt& stmt) {
        const auto* loop = ir::as<ir::For>(stmt);
        if (loop == nullptr || loop->kind != ir::LoopKind::parallel) return;
        for (const auto& race : passes::iteration_races(stmt)) reads.push_back(ir::to_text(race.read));
      },
      [](const ir::Expr&) {});
  return reads;
}

TEST(IterationRaces, AreReadsOfWhatOtherIterationsWrite) {
  EXPECT_THAT(races_of("s[i, j] = s[i + 1, j]"), ElementsAre("s[i + 1, j]"));
  EXPECT_THAT(races_of("s[i, j] = s[i - 2, j + 3] * 0.5"), ElementsAre("s[i - 2, j + 3]"));
  EXPECT_THAT(races_of("x[bx * 8 + i, j] = x[bx * 8 + i, j + 15] + 1.0"), ElementsAre("x[bx * 8 + i, j + 15]"));
  EXPECT_THAT(races_of("flat[i * 16 + j] = flat[i * 16 + j + 32]"), ElementsAre("flat[i * 16 + j + 32]"));
  EXPECT_THAT(races_of("let k: int32 = i + n\n let held: float32 = s[k, j + 1]\n s[k, j] = held"),
              ElementsAre("s[k, j + 1]"));
}

TEST(IterationRaces, AreNotTold) {
  EXPECT_THAT(races_of("s[i, j] = s[i, j] * 2.0"), IsEmpty());
  // Beyond what the loop writes.
  EXPECT_THAT(races_of("s[i, j] = s[i + 8, j]"), IsEmpty());
  EXPECT_THAT(races_of("s[i, j] = s[i, j - 16]"), IsEmpty());
  EXPECT_THAT(races_of("flat[i * 32 + j] = flat[i * 32 + j + 16]"), IsEmpty());
  EXPECT_THAT(races_of("s[i * 2, j] = s[i * 2 + 1, j]"), IsEmpty());
  EXPECT_THAT(races_of("s[i, i] = s[i + 1, i]"), IsEmpty());
  // Outside nothing is written, and what is read there is 0.
  EXPECT_THAT(races_of("s[i + 60, j] = s[i + 64, j]"), IsEmpty());
  // Maybe none: by chance, or where a condition sees to it.
  EXPECT_THAT(races_of("s[i, j] = s[i + n, j]"), IsEmpty());
  EXPECT_THAT(races_of("s[i, j] = s[at[i], j]"), IsEmpty());
  EXPECT_THAT(races_of("if i < 4 {\n s[i, j] = s[i + 4, j]\n }"), IsEmpty());
  EXPECT_THAT(races_of("s[i, j] = select(i < 4, s[i + 4, j], 0.0)"), IsEmpty());
  EXPECT_THAT(races_of("own[i] = own[i + 1]"), IsEmpty());
}

TEST(IterationRaces, AreWarnedOfOnceABuffer) {
  const auto warnings = passes::race_warnings(parse(R"(program f(x: float32[64]) {
  kernel bx in 1 threads 64 {
    parallel i in 62 {
      x[i] = x[i + 1] + x[i + 2]
    }
  }
})"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].kind, DiagnosticKind::iteration_race);
  EXPECT_THAT(warnings[0].message, HasSubstr("read elements of `x` that others write"));
}

// "store along block", of a kernel of 4 x 2 blocks.
std::vector<std::string> block_races_of(const std::string& body) {
  const ir::Program program = parse(R"(program f(x: float32[64, 64], n: int32, at: int32[64], s: float32[64]) {
  kernel bx, by in 4, 2 threads 64 {
    local own: float32[1]
    parallel i in 16 {
)" + body + "\n    }\n  }\n}\n");
  std::vector<std::string> races;
  for (const auto& race : passes::block_races(program, program.kernels[0]))
    races.push_back(race.buffer->name + " along " + race.block->name);
  return races;
}

TEST(BlockRaces, AreUpdatesOfTheSameElements) {
  EXPECT_THAT(block_races_of("s[i] = s[i] + x[bx, i]"), ElementsAre("s along bx"));
  EXPECT_THAT(block_races_of("s[bx * 16 + i] = s[bx * 16 + i] + x[by, i]"), ElementsAre("s along by"));
  EXPECT_THAT(block_races_of("let old: float32 = s[i]\n let more: float32 = old + x[bx, i]\n s[i] = more"),
              ElementsAre("s along bx"));
  EXPECT_THAT(block_races_of("if bx == 0 {\n s[i] = s[i] + x[by, i]\n }"), ElementsAre("s along by"));
  // Guards and loops that several blocks pass.
  EXPECT_THAT(block_races_of("if bx * 16 + i < 50 {\n s[i] = s[i] + x[bx * 16 + i, 0]\n }"), ElementsAre("s along bx"));
  EXPECT_THAT(block_races_of("serial k in 8 - bx * 2 {\n s[i] = s[i] + x[bx * 8 + k, i]\n }"),
              ElementsAre("s along bx"));
  EXPECT_THAT(block_races_of("s[bx % 2 * 16 + i] = s[bx % 2 * 16 + i] + x[bx, i]"), ElementsAre("s along bx"));
  // By way of memory of its own.
  EXPECT_THAT(block_races_of("own[0] = s[i]\n own[0] = own[0] + x[bx, i]\n s[i] = own[0]"), ElementsAre("s along bx"));
}

TEST(BlockRaces, AreNotTold) {
  EXPECT_THAT(block_races_of("x[bx * 2 + by, i] = x[bx * 2 + by, i] + s[i]"), IsEmpty());
  EXPECT_THAT(block_races_of("if bx == 0 {\n if by == 1 {\n s[i] = s[i] * 2.0\n }\n }"), IsEmpty());
  EXPECT_THAT(block_races_of("let first: bool = bx + by == 0\n if first {\n s[i] = s[i] * 2.0\n }"), IsEmpty());
  // The last block alone.
  EXPECT_THAT(block_races_of("atomic add x[0, 0], 1.0 -> before: float32\n if before == 7.0 {\n s[i] = s[i] * 2.0\n }"),
              IsEmpty());
  EXPECT_THAT(block_races_of("if bx * 16 + i < 16 {\n if by == 0 {\n s[i] = s[i] * 2.0\n }\n }"), IsEmpty());
  EXPECT_THAT(block_races_of("if bx == 0 {\n own[0] = s[i]\n }\n if bx == 1 {\n s[i] = own[0]\n }"), IsEmpty());
  EXPECT_THAT(block_races_of("serial k in 2 {\n if bx + by > 0 {\n break\n }\n s[i] = s[i] * 2.0\n }"), IsEmpty());
  EXPECT_THAT(block_races_of("if bx * 16 < n {\n s[i] = s[i] * 2.0\n }"), IsEmpty());  // maybe of one block
  // All write, and none reads what others have written.
  EXPECT_THAT(block_races_of("s[i] = x[0, i]"), IsEmpty());
  // Maybe none.
  EXPECT_THAT(block_races_of("s[at[i]] = s[at[i]] + x[bx, i]"), IsEmpty());
  EXPECT_THAT(block_races_of("if x[bx, i] > 0.0 {\n s[i] = s[i] + 1.0\n }"), IsEmpty());
}

TEST(BlockRaces, AreOfTilesToo) {
  const auto races_of = [](const std::string& between) {
    const ir::Program program = parse(R"(program f(x: float32[4, 16], s: float32[16]) {
  kernel bx in 4 threads 64 {
    fragment f: float32[16]
    copy s[0 : +16] -> f
    parallel i in 16 {
      f[i] = f[i] + x[bx, i]
    }
)" + between + "    copy f -> s[0 : +16]\n  }\n}\n");
    return passes::block_races(program, program.kernels[0]).size();
  };
  EXPECT_EQ(races_of(""), 1u);
  EXPECT_EQ(races_of("    sync grid\n"), 0u);
}

TEST(BlockRaces, AreWarnedOfOnceABuffer) {
  const auto warnings = passes::race_warnings(parse(R"(program f(x: float32[64]) {
  kernel bx in 3 threads 64 {
    parallel i in 32 {
      x[i] = x[i] + 1.0
      x[i + 32] = x[i + 32] + 1.0
    }
  }
})"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].kind, DiagnosticKind::block_race);
  EXPECT_THAT(warnings[0].message, HasSubstr("blocks along `bx` change the same elements of `x`"));
}

}  // namespace
}  // namespace tilepilot::testing
