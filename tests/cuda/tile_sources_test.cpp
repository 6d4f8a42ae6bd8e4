// Reductions and scans of tiles that a pipelined loop loads.
#include <fmt/format.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

std::string pipelined(int stages, const std::string& result, const std::string& operation) {
  return fmt::format(
      "program parts(a: float32[16, 32], b: float32[4, {1}]) {{\n  kernel bx in 1 threads 32 {{\n"
      "    shared s: float32[4, 32]\n    fragment r: float32[{1}]\n    pipelined k in 4 stages {0} {{\n"
      "      copy a[k * 4 : +4, 0 : 32] -> s\n      {2}\n      copy r -> b[k, 0 : {1}]\n    }}\n  }}\n}}",
      stages, result, operation);
}

TEST(TileSources, OfReductionsMayBeSlots) {
  for (const int stages : {0, 1, 2, 3}) {
    expect_interpreted(pipelined(stages, "32", "reduce sum s -> r axis 0"));
    expect_interpreted(pipelined(stages, "4", "reduce max s -> r axis 1"));
  }
}

TEST(TileSources, OfScansMayBeSlots) {
  for (const std::string scope : {"shared", "fragment"})
    for (const int axis : {0, 1})
      expect_interpreted(
          fmt::format("program parts(a: float32[16, 32], b: float32[16, 32]) {{\n  kernel bx in 1 threads 32 {{\n"
                      "    shared s: float32[4, 32]\n    {} r: float32[4, 32]\n    pipelined k in 4 stages 2 {{\n"
                      "      copy a[k * 4 : +4, 0 : 32] -> s\n      scan sum s -> r axis {}\n"
                      "      copy r -> b[k * 4 : +4, 0 : 32]\n    }}\n  }}\n}}",
                      scope, axis));
}

// The fragment holds nothing before.
TEST(TileSources, OfScansIntoFragments) {
  expect_interpreted(
      "program sums(a: float32[4, 32], b: float32[4, 32]) {\n  kernel bx in 1 threads 32 {\n"
      "    shared s: float32[4, 32]\n    fragment r: float32[4, 32]\n    copy a -> s\n"
      "    scan sum s -> r axis 1 reverse\n    copy r -> b\n  }\n}");
}

}  // namespace
}  // namespace tilepilot::testing
