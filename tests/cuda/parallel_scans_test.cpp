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
  for (const char* scope : {"shared", "fragment"}) {
    for (const char* shape : {"4, 512", "1, 1000", "3, 37", "128, 16", "2, 5"}) {
      for (const char* scan : {"scan sum x -> x axis 1", "scan sum x -> x axis 1 reverse", "scan max x -> x axis 1",
                               "scan sum x -> x axis 0"})
        expect_interpreted(scanning(shape, scope, scan), {targets::gpu::Architecture::sm_90a});
    }
  }
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
