// Loads that begin before the threads of a block meet, and those that must not.
#include <gtest/gtest.h>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;

// Rows by their sums and by weights; `first` stands before the sums.
std::string weighted(const std::string& first, const std::string& weights) {
  return R"(program weighted(x: float32[8, 1024], w: float32[1024], y: float32[8, 1024]) {
  kernel bx in 8 threads 128 {
    fragment row: float32[1024]
    fragment total: float32[1]
    copy x[bx, 0 : 1024] -> row
    )" + first +
         R"(
    reduce sum row -> total axis 0
    parallel i in 1024 {
      row[i] = row[i] * total[0] * )" +
         weights + R"(
    }
    copy row -> y[bx, 0 : 1024]
  }
})";
}

struct EarlyCase {
  const char *first, *weights, *loaded;
  bool early;
};
constexpr EarlyCase kCases[] = {
    {"", "w[i]", ", w + ", true},
    {"sync", "w[i]", ", w + ", true},
    // Written by the kernel, or after something that other blocks see.
    {"parallel i in 1024 { y[bx, i] = 1.0 }", "y[bx, i]", ", y + ", false},
    {"parallel i in 1024 { y[bx, i] = 1.0 }", "w[i]", ", w + ", false},
};

TEST(EarlyLoads, BeginBeforeTheThreadsMeet) {
  EmulatedBatch batch(Architecture::sm_80);
  std::vector<ir::Program> programs;
  for (const EarlyCase& c : kCases) {
    programs.push_back(parse(weighted(c.first, c.weights)));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << added.error().message;
    const std::string& source = batch.source(*added);
    const size_t load = source.find(c.loaded), sum = source.find("shuffle_xor"), store = source.find("(y + ");
    ASSERT_NE(load, std::string::npos) << source;
    EXPECT_LT(c.early ? load : store, c.early ? sum : load) << source;
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) {
    const ir::testing::RandomArguments expected(programs[k], 1), actual(programs[k], 1);
    interpret::Options options;
    options.functions = &prelude_functions();
    ASSERT_FALSE(interpret::run(programs[k], expected.values(), options));
    EXPECT_EQ(batch.run(k, to_launch(actual.values())), "") << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << batch.source(k);
  }
}

}  // namespace
}  // namespace tilepilot::testing
