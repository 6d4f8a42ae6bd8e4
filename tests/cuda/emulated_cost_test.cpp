// What generated kernels cost: time in the emulator, so that tests on every change can afford it, and shared memory.
#include <gmock/gmock.h>

#include <ctime>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;

TEST(EmulatedCost, AProductOf256TakesSeconds) {
#ifdef TILEPILOT_SANITIZED
  GTEST_SKIP() << "times under the sanitizers say nothing";
#endif
  const ir::Program program = parse(R"(program gemm(a: float16[256, 256], b: float16[256, 256], c: float16[256, 256]) {
  kernel bx, by in 2, 2 threads 128 {
    shared a_tile: float16[128, 32]
    shared b_tile: float16[128, 32]
    fragment sums: float32[128, 128]
    fill sums = 0.0
    pipelined k in 8 stages 3 {
      copy a[by * 128 : +128, k * 32 : +32] -> a_tile
      copy b[bx * 128 : +128, k * 32 : +32] -> b_tile
      gemm sums += a_tile @ b_tile.T
    }
    copy sums -> c[by * 128 : +128, bx * 128 : +128]
  }
})");
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    EmulatedBatch batch(architecture);
    ASSERT_TRUE(batch.add(program).ok());
    batch.compile(true);
    if (HasFatalFailure()) return;
    const ir::testing::RandomArguments given(program, 1);
    const std::clock_t begin = std::clock();  // what others do on this machine does not count
    EXPECT_EQ(batch.run(0, to_launch(given.values())), "");
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    RecordProperty(architecture == Architecture::sm_80 ? "seconds_sm_80" : "seconds_sm_90a", std::to_string(seconds));
    EXPECT_LE(seconds, 3.0);
  }
}

// One after the other: the second tile takes the place of the first, whose last readers are waited for.
constexpr const char* kPhases = R"(program phases(a: float32[64, 64], b: float32[64, 64], c: float32[2, 64, 64]) {
  kernel bx in 1 threads 128 {
    shared first: float32[64, 64]
    shared second: float32[64, 64]
    copy a -> first
    parallel i, j in 64, 64 {
      c[0, i, j] = first[63 - i, j]
    }
    copy b -> second
    parallel i, j in 64, 64 {
      c[1, i, j] = second[63 - i, j]KEPT
    }
  }
})";

TEST(EmulatedCost, TilesThatAreNeverInUseTogetherShareMemory) {
  for (const bool together : {false, true}) {
    std::string text = kPhases;
    text.replace(text.find("KEPT"), 4, together ? " + first[i, j]" : "");
    const ir::Program program = parse(text);
    const auto code = targets::cuda::generate(program, Architecture::sm_80);
    ASSERT_TRUE(code.ok()) << code.error().message;
    EXPECT_EQ(code->launches.at(0).shared_bytes, (together ? 2 : 1) * 64 * 64 * 4);
    EmulatedBatch batch(Architecture::sm_80);
    ASSERT_TRUE(batch.add(program).ok());
    batch.compile();
    if (HasFatalFailure()) return;
    const ir::testing::RandomArguments expected(program, 1), actual(program, 1);
    ASSERT_FALSE(interpret::run(program, expected.values(), {}));
    EXPECT_EQ(batch.run(0, to_launch(actual.values())), "") << batch.source(0);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << batch.source(0);
  }
}

}  // namespace
}  // namespace tilepilot::testing
