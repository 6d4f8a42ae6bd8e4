// Checks of bounds that grids and what programs assume make needless.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string copying(const std::string& grid, const std::string& at, const std::string& first = "") {
  return "program copying<n: int32>(a: float32[n], o: float32[n]) {\n  kernel bx in " + grid + " threads t in 32 {\n" +
         first + "    o[" + at + "] = a[" + at + "] + 1.0\n  }\n}";
}

constexpr const char* kChecked = "< n)";

TEST(BoundsChecks, AreNotMadeOfWhatTheGridSays) {
  EXPECT_THAT(expect_interpreted(copying("n", "bx")), Not(HasSubstr(kChecked)));
  EXPECT_THAT(expect_interpreted(copying("n // 32", "bx * 32 + t")), Not(HasSubstr(kChecked)));
  EXPECT_THAT(expect_interpreted(copying("(n + 31) // 32", "bx * 32 + t")), HasSubstr(kChecked));
  EXPECT_THAT(expect_interpreted(copying("n // 31", "bx * 32 + t")), HasSubstr(kChecked));
}

TEST(BoundsChecks, AreNotMadeOfWhatTheProgramAssumes) {
  const auto assuming = [](const std::string& condition) {
    return "    let at: int32 = bx * 32 + t\n    assume " + condition + ", \"\"\n";
  };
  // A grid of no more blocks than there are elements for: the assumption holds.
  const std::string grid = "min(n // 32, 7)";
  EXPECT_THAT(expect_interpreted(copying(grid, "at", assuming("at < n"))), Not(HasSubstr(kChecked)));
  EXPECT_THAT(expect_interpreted(copying(grid, "at", assuming("at <= n"))), HasSubstr(kChecked));
  // Multiples: the last block of a grid that rounds up is full.
  const std::string rounds_up = "(n + 31) // 32";
  const auto multiple = [&](int of) { return "    assume n % " + std::to_string(of) + " == 0, \"\"\n"; };
  const auto source = [](const std::string& text) { return outcome(text, targets::gpu::Architecture::sm_90a).source; };
  EXPECT_THAT(source(copying(rounds_up, "bx * 32 + t", multiple(64))), Not(HasSubstr(kChecked)));
  EXPECT_THAT(source(copying(rounds_up, "bx * 32 + t", multiple(16))), HasSubstr(kChecked));
  // With a quotient by its name.
  EXPECT_THAT(expect_interpreted(copying(grid, "at",
                                         "    let w: int32 = t // 4\n    let at: int32 = bx * 32 + w * 4 + t % 4\n"
                                         "    assume at < n, \"\"\n")),
              Not(HasSubstr(kChecked)));
  // One that is made on a condition says nothing of the other case.
  EXPECT_THAT(expect_interpreted(copying("n", "at",
                                         "    let at: int32 = bx * 32 + t\n    if at < n {\n      assume at < n, \"\"\n"
                                         "    }\n")),
              HasSubstr(kChecked));
}

}  // namespace
}  // namespace tilepilot::testing
