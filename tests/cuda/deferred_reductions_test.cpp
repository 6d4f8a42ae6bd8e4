// Reductions that loops continue: threads exchange what they have once, after the loop.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

// Of `loop`, which reduces tiles of 16 x 64 in five steps, in registers of 64 threads; `r` has begun with -1.
std::string continued(const std::string& loop, const std::string& type = "float32") {
  return fmt::format(
      "program continued(x: {0}[80, 64], o: {0}[16]) {{\n  kernel bx in 1 threads 64 {{\n"
      "    fragment t: {0}[16, 64]\n    fragment r: {0}[16]\n    fill r = {1}\n    {2}\n    copy r -> o\n  }}\n}}",
      type, type.starts_with("int") ? "-1" : "-1.0", loop);
}

std::string steps(const std::string& reduction, const std::string& after = "") {
  return "serial k in 5 {\n      copy x[k * 16 : + 16, 0 : 64] -> t\n      " + reduction + "\n      " + after +
         "\n    }";
}

// Where the exchange stands: behind the end of the loop over `k`, or in it.
bool is_deferred(const std::string& source) {
  const size_t loop = source.find("for (int32_t k"), shuffle = source.find("shuffle_xor("),
               end = source.find("\n  }\n", loop);
  EXPECT_NE(loop, std::string::npos) << source;
  EXPECT_NE(shuffle, std::string::npos) << source;
  return shuffle > end;
}

TEST(DeferredReductions, OfRowsExchangeAfterTheLoop) {
  for (const char* op : {"sum", "max", "min"})
    EXPECT_TRUE(
        is_deferred(expect_interpreted(continued(steps(fmt::format("reduce {} t -> r axis 1 accumulate", op))))))
        << op;
}

TEST(DeferredReductions, OfOtherTypes) {
  EXPECT_TRUE(is_deferred(expect_interpreted(continued(steps("reduce max t -> r axis 1 accumulate"), "float16"))));
  EXPECT_TRUE(is_deferred(expect_interpreted(continued(steps("reduce max t -> r axis 1 accumulate"), "int32"))));
}

// Each step rounds: sums without that would be others.
TEST(DeferredReductions, LeaveSumsOfHalves) {
  EXPECT_FALSE(is_deferred(expect_interpreted(continued(steps("reduce sum t -> r axis 1 accumulate"), "float16"))));
}

TEST(DeferredReductions, OfColumns) {
  const std::string source = expect_interpreted(
      "program columns(x: float32[80, 8], o: float32[8]) {\n  kernel bx in 1 threads 64 {\n"
      "    fragment t: float32[16, 8]\n    fragment r: float32[8]\n    fill r = 0.0\n    serial k in 5 {\n"
      "      copy x[k * 16 : + 16, 0 : 8] -> t\n      reduce sum t -> r axis 0 accumulate\n    }\n"
      "    copy r -> o\n  }\n}");
  EXPECT_TRUE(is_deferred(source));
}

TEST(DeferredReductions, LeaveTheOutermostLoop) {
  const std::string source = expect_interpreted(
      continued("serial again in 3 {\n    " + steps("reduce sum t -> r axis 1 accumulate") + "\n    }"));
  EXPECT_LT(source.find("for (int32_t again"), source.find("shuffle_xor("));
  EXPECT_TRUE(is_deferred(source));
  EXPECT_GT(source.find("shuffle_xor("), source.find("\n  }\n", source.find("for (int32_t again")));
}

TEST(DeferredReductions, StayWhereTheLoopUsesTheResult) {
  EXPECT_FALSE(is_deferred(expect_interpreted(continued(
      steps("reduce sum t -> r axis 1 accumulate", "parallel i in 16 {\n        r[i] = r[i] * 0.5\n      }")))));
  EXPECT_FALSE(is_deferred(expect_interpreted(continued(steps("reduce sum t -> r axis 1")))));
  EXPECT_FALSE(is_deferred(expect_interpreted(
      continued(steps("reduce sum t -> r axis 1 accumulate", "reduce max t -> r axis 1 accumulate")))));
}

TEST(DeferredReductions, StayUnderTheirCondition) {
  expect_interpreted(continued(steps("if k != 2 {\n        reduce sum t -> r axis 1 accumulate\n      }")));
}

}  // namespace
}  // namespace tilepilot::testing
