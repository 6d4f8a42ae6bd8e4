// Iterations that load what they have just stored: they have it, so that neighbours load before and store after.
// Costs are the emulator's counts, results the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

Launched updating(const std::string& body, int length = 1024) {
  return launched(fmt::format(R"(program f(p: float32[1024], g: float16[1024], m: float32[{0}], v: float16[1024]) {{
  kernel bx in 2 threads 64 {{
    parallel i in 512 {{
      {1}
    }}
  }}
}})",
                              length, body));
}

constexpr const char* kSteps = R"(let at: int32 = bx * 512 + i
      m[at] = m[at] * 0.9 + float32(g[at])
      v[at] = v[at] + g[at] * g[at]
      p[at] = p[at] - m[at] * float32(v[at]))";

TEST(StoredValues, AreNotLoadedAgain) {
  const Launched run = updating(kSteps);
  // By four, of 1024.
  EXPECT_EQ(run.counters.global_reads.instructions, 4 * 8);
  EXPECT_EQ(run.counters.global_writes.instructions, 3 * 8);
}

TEST(StoredValues, UnderACondition) {
  const Launched run = updating(fmt::format("if bx * 512 + i < 1000 {{ {} }}", kSteps), 1000);
  EXPECT_EQ(run.counters.global_reads.instructions, 4 * 8);
}

// Outside of a tensor nothing is stored, and zero is loaded.
TEST(StoredValues, AreZeroOutside) {
  updating("m[bx * 512 + i] = 3.0 p[bx * 512 + i] = m[bx * 512 + i] + 1.0", 700);
  updating("m[bx * 512 + i - 5] = 3.0 p[bx * 512 + i] = m[bx * 512 + i - 5]");
}

// What another store may have changed is loaded.
TEST(StoredValues, OfOtherPlacesAreLoaded) {
  launched(R"(program f(p: float32[512], n: int32[64], m: float32[1024]) {
  kernel bx in 1 threads 64 {
    parallel i in 64 {
      n[i] = i
      m[n[i] * 4] = 1.0
      m[i * 4 + 1] = m[n[i] * 4] + 2.0
      p[i] = m[i * 4] + m[i * 4 + 1]
    }
  }
})");
}

// Stored halves are rounded.
TEST(StoredValues, AreRounded) {
  launched(R"(program f(x: float32[256], y: float16[256], z: float32[256]) {
  kernel bx in 1 threads 64 {
    parallel i in 256 {
      y[i] = float16(x[i] * 1.001)
      z[i] = float32(y[i]) - x[i]
    }
  }
})");
}

// Neighbours that are added to several tensors.
TEST(StoredValues, OfSumsAreVectors) {
  const Launched run = launched(R"(program f(x: float32[1024], a: float32[1024], b: float32[1024]) {
  kernel bx in 4 threads 64 {
    fragment f: float32[1024]
    copy x -> f
    parallel i in 1024 {
      atomic add a[i], f[i]
      atomic add b[i], f[i] * f[i]
    }
  }
})",
                                targets::gpu::Architecture::sm_90a);
  EXPECT_THAT(run.source, ::testing::HasSubstr("add_vector<16>(a"));
  EXPECT_THAT(run.source, ::testing::HasSubstr("add_vector<16>(b"));
}

}  // namespace
}  // namespace tilepilot::testing
