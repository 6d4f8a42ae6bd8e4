// Parallel loops whose iterations store one thing or another: neighbours are moved at once all the same. Costs are the
// emulator's counts, results the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;

// Of 2 x 1024 halves, in 256 vectors.
Launched choosing(const std::string& body) {
  return launched(fmt::format(R"(program f(x: float16[2, 1024], y: float16[2, 1024], z: float16[2, 1024]) {{
  kernel bx in 2 threads 128 {{
    parallel j in 1024 {{
      {}
    }}
  }}
}})",
                              body));
}

TEST(IfConversion, OfTwoSides) {
  for (const char* body : {
           "if x[bx, j] > float16(0) { y[bx, j] = x[bx, j] } else { y[bx, j] = x[bx, j] * float16(0.5) }",
           "if j < 512 { y[bx, j] = x[bx, j] } else { y[bx, j] = x[bx, j - 512] }",
           "if j % 3 == 0 { y[bx, j] = x[bx, j] } else { y[bx, j] = float16(0) }",
           "let a: float16 = x[bx, j] if a > float16(1) { y[bx, j] = a } else { if a < float16(0) "
           "{ y[bx, j] = float16(0) } else { y[bx, j] = a * a } }",
           "if j > 7 { let at: int32 = j - 8 let a: float16 = x[bx, at] y[bx, j] = a } else { y[bx, j] = x[bx, j] }",
       }) {
    SCOPED_TRACE(body);
    const Launched run = choosing(body);
    EXPECT_THAT(run.source, HasSubstr("copy_vector<16>(y"));
    EXPECT_EQ(run.counters.global_writes.instructions, 8);
    EXPECT_LE(run.counters.global_reads.instructions, 16);
  }
}

TEST(IfConversion, OfSeveralStores) {
  const Launched run = choosing(R"(let a: float16 = x[bx, j]
      if a > float16(0) {
        y[bx, j] = a
        z[bx, j] = a + float16(1)
      } else {
        y[bx, j] = -a
        let b: float16 = a * float16(2)
        z[bx, j] = b
      })");
  EXPECT_LE(run.counters.global_reads.instructions, 8);
  EXPECT_EQ(run.counters.global_writes.instructions, 16);
}

// What the condition reads is what it was before the first store.
TEST(IfConversion, OfConditionsThatStoresChange) {
  const Launched run = choosing(R"(if x[bx, j] > float16(0) {
        x[bx, j] = float16(-1)
        y[bx, j] = float16(1)
      } else {
        x[bx, j] = float16(1)
        y[bx, j] = float16(2)
      })");
  EXPECT_LE(run.accesses(), 8 + 16);
}

// A side is computed where it is chosen alone.
TEST(IfConversion, ComputesNoOtherSide) {
  choosing(R"(if j >= 1000 {
        let q: int32 = 1000 // (j - 999)
        y[bx, j] = x[bx, q]
      } else {
        y[bx, j] = float16(3)
      })");
}

// Sides that store to different places stay two.
TEST(IfConversion, LeavesOtherStores) {
  for (const char* body : {
           "if j % 2 == 0 { y[bx, j] = x[bx, j] } else { z[bx, j] = x[bx, j] }",
           "if j < 512 { y[bx, j] = x[bx, j] } else { y[bx, 1535 - j] = x[bx, j] }",
           "if j < 512 { y[bx, j] = x[bx, j] z[bx, j] = float16(1) } else { y[bx, j] = float16(1) }",
       }) {
    SCOPED_TRACE(body);
    choosing(body);
  }
}

// What is filled by loads or zeros is a copy, as it is where one expression says so.
TEST(IfConversion, OfCopiesUpToABound) {
  const auto text = [](const std::string& body) {
    return fmt::format(R"(program f(x: float16[60, 256], y: float16[64, 256]) {{
  kernel bx in 1 threads 128 {{
    shared tile: float16[64, 256]
    parallel i, j in 64, 256 {{
      {}
    }}
    parallel i, j in 64, 256 {{
      y[i, j] = tile[63 - i, j]
    }}
  }}
}})",
                       body);
  };
  const Launched run = launched(text("if i < 60 { tile[i, j] = x[i, j] } else { tile[i, j] = float16(0) }"));
  const Launched as_expression = launched(text("tile[i, j] = select(i < 60, x[i, j], float16(0))"));
  EXPECT_EQ(run.accesses(), as_expression.accesses());
  EXPECT_EQ(run.counters.shared_writes.instructions, as_expression.counters.shared_writes.instructions);
}

// Rows that a tensor names, under a condition: each of them is read along itself.
TEST(IfConversion, OfGatheredRows) {
  const Launched run = launched(R"(program f(rows: int32[64], x: float16[32, 512], y: float16[64, 512]) {
  kernel bx in 4 threads 128 {
    parallel i, j in 16, 512 {
      if rows[bx * 16 + i] >= 0 {
        y[bx * 16 + i, j] = x[rows[bx * 16 + i], j]
      } else {
        y[bx * 16 + i, j] = float16(0)
      }
    }
  }
})");
  EXPECT_THAT(run.source, HasSubstr("copy_vector<16>(&x_v"));
  EXPECT_EQ(run.counters.global_writes.instructions, 64 * 512 / 8 / 32);
}

}  // namespace
}  // namespace tilepilot::testing
