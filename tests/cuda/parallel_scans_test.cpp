// Scans of few rows: all threads take part.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string scanning(const std::string& shape, const std::string& scope, const std::string& scan) {
  return fmt::format(
      "program scans(a: float32[{0}], o: float32[{0}]) {{\n  kernel bx in 1 threads 128 {{\n    {1} x: float32[{0}]\n"
      "    copy a -> x\n    {2}\n    copy x -> o\n  }}\n}}",
      shape, scope, scan);
}

TEST(ParallelScans, AgreeWithTheInterpreter) {
  const struct {
    const char *shape, *scope, *scan;
  } cases[] = {
      {"4, 512", "shared", "scan sum x -> x axis 1 reverse"}, {"1, 1000", "fragment", "scan sum x -> x axis 1"},
      {"3, 37", "shared", "scan max x -> x axis 1"},          {"3, 37", "fragment", "scan max x -> x axis 1 reverse"},
      {"37, 3", "shared", "scan sum x -> x axis 0"},          {"128, 16", "fragment", "scan sum x -> x axis 1"},
      {"2, 5", "fragment", "scan sum x -> x axis 1"},
  };
  for (const auto& [shape, scope, scan] : cases)
    expect_interpreted(scanning(shape, scope, scan), {targets::gpu::Architecture::sm_90a});
  expect_interpreted(scanning("1000", "shared", "scan sum x -> x axis 0 reverse"));
}

TEST(ParallelScans, GiveEachThreadAPart) {
  const std::string few = expect_interpreted(scanning("4, 512", "shared", "scan sum x -> x axis 1"));
  EXPECT_THAT(few, HasSubstr("x_scan"));
  EXPECT_THAT(few, HasSubstr("k < 16"));
  const std::string many = expect_interpreted(scanning("128, 16", "shared", "scan sum x -> x axis 1"));
  EXPECT_THAT(many, Not(HasSubstr("x_scan")));
}

}  // namespace
}  // namespace tilepilot::testing
