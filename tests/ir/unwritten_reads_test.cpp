#include "compiler/passes/iterations/unwritten_reads.h"

#include <gtest/gtest.h>

#include "same_meaning.h"

namespace tilepilot::passes {
namespace {

using namespace ir;

// "acc" for each tile that may be read too early, "acc!" where nothing is written before.
std::string unwritten(const std::string& tiles, const std::string& body) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const std::string text =
      "program f(x: float32[64, 64], y: float32[64, 64], n: int32) { kernel bx in 1 threads 64 { " + tiles + " " +
      body + " } }";
  const auto program = read_text(sources, sources.add("test.ir", text), diagnostics);
  EXPECT_TRUE(program) << text << "\n" << (program ? "" : diagnostics.items().front().message);
  if (!program) return "";
  std::string found;
  for (const UnwrittenRead& each : unwritten_reads(program->kernels[0]))
    found += (found.empty() ? "" : " ") + each.buffer->name + (each.certain ? "!" : "");
  return found;
}

constexpr const char* kTiles =
    "shared a: float32[16, 16] shared b: float32[16, 16] fragment c: float32[16, 16] fragment r: float32[16]";
constexpr const char* kProduct = "serial k in 4 { gemm c += a @ b }";
constexpr const char* kOut = "copy c -> y[0 : 16, 0 : 16]";

std::string of_product(const std::string& before, const std::string& product = kProduct) {
  return unwritten(kTiles,
                   "copy x[0 : 16, 0 : 16] -> a copy x[0 : 16, 0 : 16] -> b " + before + " " + product + " " + kOut);
}

TEST(UnwrittenReads, AreThoseOfSumsThatNobodyCleared) {
  EXPECT_EQ(of_product(""), "c!");
  EXPECT_EQ(of_product("fill c = 0.0"), "");
  EXPECT_EQ(of_product("copy x[0 : 16, 0 : 16] -> c"), "");
  EXPECT_EQ(of_product("", "gemm c = a @ b"), "");
  EXPECT_EQ(of_product("parallel i, j in 16, 16 { c[i, j] = 0.0 }"), "");
  EXPECT_EQ(of_product("", "serial k in 4 { if k == 0 { fill c = 0.0 } gemm c += a @ b }"), "c");
}

TEST(UnwrittenReads, AreThoseOfElementsThatAPartLeavesOut) {
  EXPECT_EQ(of_product("fill c[0 : 8, 0 : 16] = 0.0"), "c");
  EXPECT_EQ(of_product("fill c[0 : 8, 0 : 16] = 0.0 fill c[8 : 16, 0 : 16] = 1.0"), "");
  EXPECT_EQ(of_product("parallel i, j in 16, 8 { c[i, j] = 0.0 }"), "c");
  EXPECT_EQ(of_product("parallel i, j in 16, 8 { c[i, j] = 0.0 c[i, 8 + j] = 0.0 }"), "");
  EXPECT_EQ(of_product("parallel i in 256 { c[i // 16, i % 16] = 0.0 }"), "");
  EXPECT_EQ(of_product("parallel i in 16 { c[i, i] = 0.0 }"), "c");
  EXPECT_EQ(of_product("parallel i, j in 16, 16 { if j < n { c[i, j] = 0.0 } }"), "c");
  EXPECT_EQ(of_product("parallel i, j in 16, 16 { if j < n { c[i, j] = 0.0 } else { c[i, j] = 1.0 } }"), "");
}

TEST(UnwrittenReads, FollowLoopsStepByStepWhereStepsDiffer) {
  const std::string local = "local t: float32[4]", sum = "parallel i in 64 { y[0, i] = t[0] + t[1] + t[2] + t[3] }";
  EXPECT_EQ(unwritten(local, "serial k in 4 { t[k] = 0.0 } " + sum), "");
  EXPECT_EQ(unwritten(local, "serial k in 3 { t[k] = 0.0 } " + sum), "t");
  EXPECT_EQ(unwritten(local, "serial k in 4 { let m: int32 = 3 - k t[m] = 0.0 } " + sum), "");
  EXPECT_EQ(unwritten(local, "serial k in 2 { t[2 * k] = 0.0 t[2 * k + 1] = t[2 * k] } " + sum), "");
  EXPECT_EQ(unwritten(local, "serial k in n { t[0] = 0.0 t[1] = 0.0 t[2] = 0.0 t[3] = 0.0 } " + sum), "t");
  EXPECT_EQ(unwritten(local, sum), "t!");
}

TEST(UnwrittenReads, AreThoseOfReductionsThatGoOn) {
  EXPECT_EQ(of_product("fill c = 0.0 reduce sum c -> r axis 1 copy r -> y[0, 0 : 16]"), "");
  EXPECT_EQ(of_product("fill c = 0.0 reduce sum c -> r axis 1 accumulate copy r -> y[0, 0 : 16]"), "r!");
}

TEST(UnwrittenReads, KnowViews) {
  const std::string tiles = "fragment t: float32[4, 4] fragment v: float32[16] view t";
  EXPECT_EQ(unwritten(tiles, "fill v = 0.0 copy t -> y[0 : 4, 0 : 4]"), "");
  EXPECT_EQ(unwritten(tiles, "fill v[0 : 8] = 0.0 copy t -> y[0 : 4, 0 : 4]"), "t");
}

}  // namespace
}  // namespace tilepilot::passes
