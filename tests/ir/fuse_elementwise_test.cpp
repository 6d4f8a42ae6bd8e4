#include "compiler/passes/fuse_elementwise.h"

#include <gtest/gtest.h>

#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/simplify.h"
#include "random_program.h"
#include "same_meaning.h"
#include "tests/rounds.h"

namespace tilepilot::passes {
namespace {

using namespace ir;

Program with_body(const std::string& tiles, const std::string& body) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const std::string text =
      "program f(x: float32[64, 64], y: float16[64, 64], n: int32) { kernel bx in 8 threads 128 { " + tiles + " " +
      body + " } }";
  auto program = read_text(sources, sources.add("test.ir", text), diagnostics);
  EXPECT_TRUE(program) << text << "\n" << (program ? "" : diagnostics.items().front().message);
  return program ? *std::move(program) : Program{};
}

constexpr const char* kT = "fragment t: float32[8, 64]";
constexpr const char* kTU = "fragment t: float32[8, 64] fragment u: float32[8, 64]";

void expect_fused(const char* tiles, const std::string& before, const char* tiles_left, const std::string& after) {
  const Program original = with_body(tiles, before), result = fuse_elementwise(original);
  EXPECT_EQ(to_text(result), to_text(with_body(tiles_left, after)));
  DiagnosticList diagnostics;
  EXPECT_TRUE(verify(result, diagnostics));
  EXPECT_EQ(testing::compare_meaning(original, result, 1), testing::Meaning::same);
}

void expect_kept(const char* tiles, const std::string& body) {
  const Program original = with_body(tiles, body);
  EXPECT_TRUE(same_nodes(original, fuse_elementwise(original))) << to_text(fuse_elementwise(original));
}

TEST(FuseElementwiseTest, CopyComputeCopyBecomesOneLoop) {
  expect_fused(kT,
               "copy x[bx * 8 : +8, 0 : 64] -> t "
               "parallel i, j in 8, 64 { t[i, j] = max(t[i, j], 0.0) } "
               "copy t -> y[bx * 8 : +8, 0 : 64]",
               "",
               "parallel i0, i1 in 8, 64 { "
               "let t: float32 = x[bx * 8 + i0, i1] "
               "let t_1: float32 = max(t, 0.0) "
               "y[bx * 8 + i0, i1] = float16(t_1) }");
}

TEST(FuseElementwiseTest, TwoTensorsIntoOne) {
  expect_fused(kTU,
               "copy x[bx * 8 : +8, 0 : 64] -> t copy y[bx * 8 : +8, 0 : 64] -> u "
               "parallel i, j in 8, 64 { t[i, j] = t[i, j] + u[i, j] } "
               "copy t -> x[bx * 8 : +8, 0 : 64]",
               "",
               "parallel i0, i1 in 8, 64 { "
               "let t: float32 = x[bx * 8 + i0, i1] let u: float32 = float32(y[bx * 8 + i0, i1]) "
               "let t_1: float32 = t + u x[bx * 8 + i0, i1] = t_1 }");
}

// As in softmax: the tile is read by the reduction, so it stays; the last store into it goes.
TEST(FuseElementwiseTest, TheLastLoopWritesOut) {
  const char* tiles = "fragment t: float32[8, 64] fragment r: float32[8]";
  expect_fused(tiles,
               "copy x[bx * 8 : +8, 0 : 64] -> t reduce sum t -> r axis 1 "
               "parallel i, j in 8, 64 { t[i, j] = t[i, j] / r[i] } copy t -> y[bx * 8 : +8, 0 : 64]",
               tiles,
               "copy x[bx * 8 : +8, 0 : 64] -> t reduce sum t -> r axis 1 "
               "parallel i, j in 8, 64 { let t_1: float32 = t[i, j] / r[i] y[bx * 8 + i, j] = float16(t_1) }");
}

TEST(FuseElementwiseTest, InALoopWhatTheNextIterationOverwritesIsDead) {
  expect_fused(kT,
               "serial k in 4 { copy x[k * 8 : +8, 0 : 64] -> t parallel i, j in 8, 64 { t[i, j] = t[i, j] * 2.0 } "
               "copy t -> y[k * 8 : +8, 0 : 64] }",
               "",
               "serial k in 4 { parallel i0, i1 in 8, 64 { let t: float32 = x[k * 8 + i0, i1] "
               "let t_1: float32 = t * 2.0 y[k * 8 + i0, i1] = float16(t_1) } }");
}

TEST(FuseElementwiseTest, ATileThatIsReadAgainStays) {
  // In the next iteration.
  expect_kept(kT,
              "serial k in 4 { parallel i, j in 8, 64 { t[i, j] = t[i, j] * 2.0 } copy t -> y[k * 8 : +8, 0 : 64] }");
  // After the loop.
  expect_kept(kT,
              "serial k in 4 { copy x[k * 8 : +8, 0 : 64] -> t parallel i, j in 8, 64 { t[i, j] = t[i, j] * 2.0 } } "
              "copy t[0 : 4, 0 : 64] -> y[0 : 4, 0 : 64]");
  // By the condition of a loop.
  expect_kept("local t: float32[8]",
              "while t[0] < 3.0 { copy x[0 : 8, 0] -> t parallel i in 8 { t[i] = t[i] * 2.0 } copy t -> y[0 : 8, 0] }");
}

TEST(FuseElementwiseTest, ALoopWithoutABlockIsStillALoop) {
  Program program = with_body(kT,
                              "serial k in 4 { if k < n { parallel i, j in 8, 64 { t[i, j] = t[i, j] * 2.0 } copy t -> "
                              "y[k * 8 : +8, 0 : 64] } }");
  For loop = std::get<For>(std::get<Block>(program.kernels[0].body->node).body[0]->node);
  loop.body = std::get<Block>(loop.body->node).body[0];
  program.kernels[0].body = make_stmt(Block{{make_stmt(loop, {})}}, {});
  EXPECT_TRUE(same_nodes(program, fuse_elementwise(program)));
}

TEST(FuseElementwiseTest, AJumpPastTheOverwriteKeepsTheTile) {
  expect_kept(kT,
              "serial k in 4 { parallel i, j in 8, 64 { t[i, j] = t[i, j] * 2.0 } copy t -> y[0 : 8, 0 : 64] "
              "if k < n { continue } fill t = 0.0 }");
}

TEST(FuseElementwiseTest, OtherElementsAreOtherElements) {
  // Reversed.
  expect_kept(kTU,
              "parallel i, j in 8, 64 { t[i, j] = x[i, j] } parallel i, j in 8, 64 { u[i, j] = t[i, 63 - j] } "
              "copy u[0 : 4, 0 : 64] -> y[0 : 4, 0 : 64]");
  // Broadcast: all columns write one element.
  expect_kept("fragment r: float32[8]",
              "parallel i, j in 8, 64 { r[i] = x[i, j] } parallel i, j in 8, 64 { y[i, j] = float16(r[i]) }");
  // Of the global buffer that is read and written.
  expect_kept(kT, "copy x[0 : 8, 0 : 64] -> t parallel i, j in 8, 64 { x[i, 63 - j] = t[i, j] }");
  // Other boxes: only the second and third are joined.
  expect_fused("fragment t: float32[8, 64] fragment u: float32[64, 8]",
               "copy x[0 : 8, 0 : 64] -> t parallel i, j in 64, 8 { u[i, j] = t[j, i] } copy u -> y[0 : 64, 0 : 8]", kT,
               "copy x[0 : 8, 0 : 64] -> t "
               "parallel i, j in 64, 8 { let u: float32 = t[j, i] y[i, j] = float16(u) }");
}

TEST(FuseElementwiseTest, StatementsAreOnlyJoinedForATile) {
  // The tile feeds a gemm: the copy into it is best left a copy.
  const char* tiles = "shared a: float32[8, 8] shared b: float32[8, 8] fragment c: float32[8, 8]";
  expect_kept(tiles,
              "fill c = 0.0 copy x[0 : 8, 0 : 8] -> a copy x[8 : 16, 0 : 8] -> b gemm c += a @ b "
              "copy c[0 : 4, 0 : 8] -> x[0 : 4, 0 : 8]");
  // The epilogue is joined, the operands stay.
  expect_fused(tiles,
               "fill c = 0.0 copy x[0 : 8, 0 : 8] -> a copy x[8 : 16, 0 : 8] -> b gemm c += a @ b "
               "parallel i, j in 8, 8 { c[i, j] = c[i, j] * 2.0 } copy c -> y[0 : 8, 0 : 8]",
               tiles,
               "fill c = 0.0 copy x[0 : 8, 0 : 8] -> a copy x[8 : 16, 0 : 8] -> b gemm c += a @ b "
               "parallel i, j in 8, 8 { let c_1: float32 = c[i, j] * 2.0 y[i, j] = float16(c_1) }");
  // Two independent copies gain nothing.
  expect_kept(kTU,
              "copy x[0 : 8, 0 : 64] -> t copy y[0 : 8, 0 : 64] -> u reduce sum t -> u[0 : 8, 0] axis 1 copy u -> x[0 "
              ": 8, 0 : 64]");
}

TEST(FuseElementwiseTest, GuardedStoresKeepTheirTile) {
  expect_kept(kT, "parallel i, j in 8, 64 { if j < n { t[i, j] = 1.0 } } copy t -> y[0 : 8, 0 : 64]");
}

TEST(FuseElementwiseTest, RandomProgramsMeanTheSame) {
  int fused = 0, compared = 0;
  for (int seed = 0; seed < rounds(600); ++seed) {
    const Program before = simplify(testing::RandomProgram(seed, {4, 2}).program()), after = fuse_elementwise(before);
    if (same_nodes(before, after)) continue;
    ++fused;
    DiagnosticList diagnostics;
    ASSERT_TRUE(verify(after, diagnostics)) << diagnostics.items().front().message << to_text(after);
    const auto meaning = testing::compare_meaning(before, after, seed, steps(2'000'000));
    ASSERT_NE(meaning, testing::Meaning::different) << "seed " << seed << "\n" << to_text(before) << to_text(after);
    compared += meaning == testing::Meaning::same;
  }
  EXPECT_GT(fused, rounds(100));
  EXPECT_GT(compared, rounds(80));
}

}  // namespace
}  // namespace tilepilot::passes
