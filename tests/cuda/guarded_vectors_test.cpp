// Parallel loops that do what they do under a condition, as programs check bounds: neighbours for which it is the same
// are still moved at once. Costs are the emulator's counts, results the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Launched guarded(const std::string& condition) {
  return launched(fmt::format(R"(program f(x: float32[1000], y: float32[1000]) {{
  kernel bx in 2 threads 128 {{
    parallel i in 512 {{
      let at: int32 = bx * 512 + i
      if {} {{
        y[at] = x[at] * 2.0
      }}
    }}
  }}
}})",
                              condition));
}

TEST(GuardedVectors, OfConditionsThatNeighboursShare) {
  for (const char* condition :
       {"at < 1000", "at <= 999", "1000 > at", "999 >= at", "at >= 8", "at > 7", "8 <= at", "at < 1000 and at >= 4",
        "at < 40 or at >= 60", "at // 8 % 3 < 2", "bx == 1", "at % 12 < 8"}) {
    SCOPED_TRACE(condition);
    const Launched run = guarded(condition);
    EXPECT_THAT(run.source, HasSubstr("copy_vector<16>"));
    EXPECT_LE(run.accesses(), 2 * 8);
  }
}

TEST(GuardedVectors, AreNoneWhereNeighboursDiffer) {
  for (const char* condition : {"at < 999", "at <= 1000", "at <= 998", "997 > at", "at >= 3", "at > 8", "at + 1 < 1000",
                                "at < 1000 and at >= 5", "at < 41 or at >= 60", "at % 3 < 2", "at % 8 < 3", "at != 8",
                                "i * 2 < 998", "1000 - at > 4"}) {
    SCOPED_TRACE(condition);
    EXPECT_THAT(guarded(condition).source, Not(HasSubstr("copy_vector<16>(&x_v")));
  }
}

// Where four neighbours share it and eight do not, threads have four.
TEST(GuardedVectors, OfFewerNeighbours) {
  const Launched run = launched(R"(program f(x: float16[8, 1004], y: float16[8, 1004]) {
  kernel bx in 2 threads 128 {
    parallel i, j in 8, 512 {
      if bx * 512 + j < 1004 {
        y[i, bx * 512 + j] = x[i, bx * 512 + j] + float16(1)
      }
    }
  }
})");
  EXPECT_THAT(run.source, HasSubstr("copy_vector<8>"));
  EXPECT_LE(run.accesses(), 2 * 8 * 8);
  EXPECT_LE(run.sectors(), 2 * 8 * 1004 * 2 / 32 * 9 / 8);
}

// Code for usual tensors relies on rows of multiples of 16 bytes, other code on nothing.
TEST(GuardedVectors, OfExtentsKnownAtLaunch) {
  for (const char* condition : {"bx * 512 + j < n", "n > bx * 512 + j", "bx * 512 + j < n - 4"}) {
    SCOPED_TRACE(condition);
    const std::string text = fmt::format(R"(program f<n: int32>(x: float32[4, n], y: float32[4, n]) {{
  kernel bx, by in (n + 511) // 512, 4 threads 128 {{
    parallel j in 512 {{
      if {} {{
        y[by, bx * 512 + j] = x[by, bx * 512 + j] * 2.0
      }}
    }}
  }}
}})",
                                         condition);
    EXPECT_THAT(launched(text).source, Not(HasSubstr("copy_vector")));
    EmulatedBatch usual(targets::gpu::Architecture::sm_90a);
    ASSERT_TRUE(usual.add(targets::gpu::for_usual_tensors(parse(text))).ok());
    usual.compile();
    EXPECT_THAT(usual.source(0), HasSubstr("copy_vector<16>(&x_v"));
  }
}

// What programs make of one index, with names for each step.
TEST(GuardedVectors, OfIndicesThatAreTakenApart) {
  const Launched run = launched(R"(program f(x: float32[2, 7, 14, 16], b: float32[7], y: float32[2, 7, 14, 16]) {
  kernel bx in 4 threads 256 {
    parallel t in 1024 {
      let at: int32 = bx * 1024 + t
      if at < 3136 {
        let w: int32 = at % 16
        let h: int32 = at // 16 % 14
        let c: int32 = at // 224 % 7
        let n: int32 = at // 1568
        y[n, c, h, w] = x[n, c, h, w] + b[c]
      }
    }
  }
})");
  EXPECT_EQ(run.counters.global_writes.instructions, 25);     // 98 one by one
  EXPECT_EQ(run.counters.global_writes.global_sectors, 392);  // 1568
}

// A name keeps what the loop changes afterwards.
TEST(GuardedVectors, OfIndicesThatAreReadBeforeTheyChange) {
  launched(R"(program f(p: int32[64], y: int32[64]) {
  kernel bx in 1 threads 32 {
    parallel t in 32 {
      if t < 20 {
        let at: int32 = p[t] % 64
        p[t] = 7
        if at >= 0 {
          p[t + 32] = at
        }
      }
    }
  }
})");
}

}  // namespace
}  // namespace tilepilot::testing
