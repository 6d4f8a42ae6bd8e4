// Parallel loops that do all of an iteration under a condition: rows that are left out keep no vector from the others.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

// A loop over a tile of 32 x 64 float16 `s`, which is A's, and `f`, the same in registers.
std::string program(const std::string& loop) {
  return "program rows(a: float16[64, 64], n: int32[4], m: int32[64], o: float16[64, 64], p: float32[64, 64]) {\n"
         "  kernel bx in 2 threads 128 {\n    shared s: float16[32, 64]\n    fragment f: float32[32, 64]\n"
         "    copy a[bx * 32 : +32, 0 : +64] -> s\n    parallel i, j in 32, 64 {\n      f[i, j] = float32(s[i, j])\n   "
         " }\n"
         "    parallel i, j in 32, 64 {\n" +
         loop + "    }\n  }\n}";
}

TEST(GuardedRows, AreStoredAsVectors) {
  const std::string rows =
      program("      if bx * 32 + i < n[0] + 20 {\n        o[bx * 32 + i, j] = s[i, j]\n      }\n");
  EXPECT_THAT(explained(rows), HasSubstr("copy s -> o: s by 16 bytes, o by 16 bytes"));
  EXPECT_THAT(expect_interpreted(rows), HasSubstr("copy_vector<16>(o"));
  // Several conditions, values with names, several stores; what says which rows is read for each row.
  const std::string nested = program(
      "      if m[bx * 32 + i] > 0 {\n        if i + n[1] < 30 {\n          let x: float32 = f[i, j] + 1.0\n"
      "          o[bx * 32 + i, j] = float16(x * x)\n          p[bx * 32 + i, j] = x\n        }\n      }\n");
  EXPECT_THAT(explained(nested), HasSubstr("p by 16 bytes"));
  expect_interpreted(nested);
  // Rows that may lie outside of the tensor all the same.
  const std::string outside =
      program("      if i < n[2] + 16 {\n        o[bx * 32 + i + n[3], j] = s[i, j]\n      }\n");
  EXPECT_THAT(explained(outside), HasSubstr("o by 16 bytes"));
  expect_interpreted(outside);
}

TEST(GuardedRows, AreAddedAsVectors) {
  const std::string sums =
      program("      if bx * 32 + i < n[0] + 20 {\n        atomic add p[bx * 32 + i, j], f[i, j]\n      }\n");
  EXPECT_THAT(explained(sums), HasSubstr("p by 16 bytes"));
  expect_interpreted(sums, {Architecture::sm_90a});
}

// Rows that are left out are filled otherwise.
TEST(GuardedRows, StoreOtherValues) {
  const std::string two_ways = program(
      "      if i < n[0] + 9 {\n        o[bx * 32 + i, j] = s[i, j]\n      } else {\n        o[bx * 32 + i, j] = 0.0\n "
      "     "
      "}\n");
  EXPECT_THAT(explained(two_ways), HasSubstr("o by 16 bytes"));
  expect_interpreted(two_ways);
}

TEST(GuardedRows, AreNoVectorsWhereElementsDiffer) {
  const std::string columns = program("      if j < n[0] + 20 {\n        o[bx * 32 + i, j] = s[i, j]\n      }\n");
  EXPECT_THAT(explained(columns), Not(HasSubstr("o by")));
  expect_interpreted(columns);
  // The loop writes what the condition reads: one iteration after the other.
  const std::string written =
      program("      if p[bx * 32 + i, j] < 1.0 {\n        p[bx * 32 + i, j] = f[i, j]\n      }\n");
  EXPECT_THAT(explained(written), Not(HasSubstr("p by")));
  expect_interpreted(written);
}

}  // namespace
}  // namespace tilepilot::testing
