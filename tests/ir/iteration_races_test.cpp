// Races that are certain, and what is none, or may be none.
#include "compiler/passes/iteration_races.h"

#include <gmock/gmock.h>

#include "compiler/ir/text.h"
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

}  // namespace
}  // namespace tilepilot::testing
