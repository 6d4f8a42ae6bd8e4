#include "compiler/passes/algebra/simplify.h"

#include <gtest/gtest.h>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pipeline.h"
#include "random_program.h"
#include "same_meaning.h"
#include "tests/rounds.h"

namespace tilepilot::passes {
namespace {

using namespace ir;

Program read(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  auto program = read_text(sources, sources.add("test.ir", text), diagnostics);
  EXPECT_TRUE(program) << text << "\n" << (program ? "" : diagnostics.items().front().message);
  return program ? *std::move(program) : Program{};
}

Program with_body(const std::string& body) {
  return read(
      "program f<m: int32>(x: float32[m, 64], y: float32[64, 64], n: int32) { kernel bx, by in 8, (m + 7) // 8 "
      "threads 128 { fragment t: float32[8, 64] " +
      body + " } }");
}

// Both as printed.
void expect_simplified(const std::string& before, const std::string& after) {
  const Program result = simplify(with_body(before));
  EXPECT_EQ(to_text(result), to_text(with_body(after)));
  DiagnosticList diagnostics;
  EXPECT_TRUE(verify(result, diagnostics));
}

TEST(SimplifyTest, GuardsThatAlwaysHoldVanish) {
  expect_simplified("parallel i, j in 8, 64 { if bx * 8 + i < 64 and j < 64 { t[i, j] = y[bx * 8 + i, j] } }",
                    "parallel i, j in 8, 64 { t[i, j] = y[bx * 8 + i, j] }");
  expect_simplified("parallel i, j in 8, 64 { t[i, j] = select(bx * 8 + i < 64, y[bx * 8 + i, j], 0.0) }",
                    "parallel i, j in 8, 64 { t[i, j] = y[bx * 8 + i, j] }");
}

TEST(SimplifyTest, GuardsOfSymbolicExtentsStay) {
  const char* text = "parallel i, j in 8, 64 { if by * 8 + i < m { t[i, j] = x[by * 8 + i, j] } }";
  expect_simplified(text, text);
}

TEST(SimplifyTest, ABranchKnowsItsCondition) {
  expect_simplified("serial i in 8 { if i < 4 { if i < 5 { t[i, 0] = 1.0 } } else { if i > 3 { t[i, 1] = 2.0 } } }",
                    "serial i in 8 { if i < 4 { t[i, 0] = 1.0 } else { t[i, 1] = 2.0 } }");
}

TEST(SimplifyTest, DecidedBranches) {
  expect_simplified("if 1 < 2 { t[0, 0] = 1.0 } else { t[0, 0] = 2.0 }", "t[0, 0] = 1.0");
  expect_simplified("if 2 < 1 { t[0, 0] = 1.0 } else { t[0, 0] = 2.0 }", "t[0, 0] = 2.0");
  expect_simplified("if 2 < 1 { t[0, 0] = 1.0 }", "");
  expect_simplified("while 2 < 1 { t[0, 0] = 1.0 }", "");
  expect_simplified("if n < 1 { } else { t[0, 0] = 2.0 }", "if n >= 1 { t[0, 0] = 2.0 }");
}

TEST(SimplifyTest, LoopsOfNoOrOneIteration) {
  expect_simplified("serial i in 0 { t[i, 0] = 1.0 }", "");
  expect_simplified("serial i in 1 { t[i, 0] = 1.0 }", "t[0, 0] = 1.0");
  expect_simplified("parallel i, j in 1, 64 { t[i, j] = 1.0 }", "parallel j in 64 { t[0, j] = 1.0 }");
  expect_simplified("parallel i, j in 1, 1 { t[i, j] = 1.0 }", "t[0, 0] = 1.0");
  expect_simplified("pipelined k in 1 stages 2 { copy y[k * 8 : +8, 0 : 64] -> t }", "copy y[0 : 8, 0 : 64] -> t");
  expect_simplified("serial i in bx // 8 { t[i, 0] = 1.0 }", "");
  expect_simplified("serial i in 8 { }", "");
  // The break ends the loop, so it must stay.
  const char* broken = "serial i in 1 { if n > 3 { break } t[i, 0] = 1.0 }";
  expect_simplified(broken, "serial i in 1 { if n > 3 { break } t[0, 0] = 1.0 }");
  expect_simplified("serial i in 1 { serial j in 8 { if n > 3 { break } t[i, j] = 1.0 } }",
                    "serial j in 8 { if n > 3 { break } t[0, j] = 1.0 }");
}

TEST(SimplifyTest, Definitions) {
  expect_simplified("let a: int32 = n + 1", "");
  expect_simplified("let a: int32 = 3 let b: int32 = a + 1 t[b, a] = 1.0", "t[4, 3] = 1.0");
  expect_simplified("let a: int32 = n let b: int32 = a + 1 if b < 3 { t[0, 0] = 1.0 }",
                    "let b: int32 = n + 1 if b < 3 { t[0, 0] = 1.0 }");
  // A load stays where it is: the buffer may change before the value is used.
  const char* load = "let a: float32 = t[0, 0] t[0, 0] = 2.0 t[0, 1] = a";
  expect_simplified(load, load);
  expect_simplified("let a: int32 = bx * 8 if a < 64 { t[0, 0] = float32(a) }",
                    "let a: int32 = bx * 8 t[0, 0] = float32(a)");
}

TEST(SimplifyTest, NestedBlocks) {
  expect_simplified("{ t[0, 0] = 1.0 { t[0, 1] = 1.0 } { } }", "t[0, 0] = 1.0 t[0, 1] = 1.0");
}

TEST(SimplifyTest, NothingToDoKeepsTheNodes) {
  const Program program =
      with_body("parallel i, j in 8, 64 { t[i, j] = t[i, j] + 1.0 } copy t -> y[bx * 8 : +8, 0 : 64]");
  EXPECT_TRUE(same_nodes(program, simplify(program)));
}

TEST(SimplifyTest, RandomProgramsStayValidAndSettleAndMeanTheSame) {
  int compared = 0;
  for (int seed = 0; seed < rounds(200); ++seed) {
    const Program program = testing::RandomProgram(seed).program(), once = simplify(program);
    const auto meaning = testing::compare_meaning(program, once, seed, steps(2'000'000));
    ASSERT_NE(meaning, testing::Meaning::different) << "seed " << seed << "\n" << to_text(program) << to_text(once);
    compared += meaning == testing::Meaning::same;
    DiagnosticList diagnostics;
    ASSERT_TRUE(verify(once, diagnostics)) << "seed " << seed << " " << diagnostics.items().front().message;
    ASSERT_TRUE(structurally_equal(once, simplify(once))) << "seed " << seed;
  }
  EXPECT_GT(compared, steps(2000) == 2000 ? 100 : 2);  // fewer end within few steps
}

TEST(PipelineTest, ShowsThePassesThatChangedSomething) {
  std::vector<std::string> seen;
  PipelineOptions options{true, [&](std::string_view pass, const Program&) { seen.emplace_back(pass); }};
  ASSERT_TRUE(run_pipeline(with_body("t[0, 0] = y[0, 0]"), options).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"stage"}));
  seen.clear();
  ASSERT_TRUE(run_pipeline(with_body("if 1 < 2 { t[0, 0] = 1.0 }"), options).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"stage", "simplify"}));
}

TEST(PipelineTest, fail_AnInvalidProgramIsReported) {
  const Program invalid = with_body("t[0] = 1.0");
  const auto result = run_pipeline(invalid, {true, nullptr});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, DiagnosticKind::ir_invalid);
  EXPECT_NE(result.error().message.find("after `stage`"), std::string::npos);
}

}  // namespace
}  // namespace tilepilot::passes
