// `break` and `continue` in loops of all threads together: barriers and fences count what stands before a jump, too.
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

// What the barrier after `continue` guards comes next all the same.
TEST(Jumps, ContinueLeavesNoBarrierOut) {
  expect_interpreted(R"(program turns(a: float32[16, 64], b: float32[64], c: float32[16, 64]) {
  kernel bx in 1 threads 64 {
    shared s: float32[64]
    shared t: float32[64]
    fragment x: float32[64]
    fill x = 0.0
    serial k in 16 {
      copy a[k, 0 : 64] -> s
      parallel i in 64 {
        x[i] = x[i] + s[63 - i]
      }
      copy x -> t
      if k % 4 == 2 {
        continue
      }
      parallel i in 64 {
        c[k, i] = t[63 - i]
      }
    }
    copy x -> b
  }
})");
}

TEST(Jumps, BreakLeavesNoBarrierOut) {
  expect_interpreted(R"(program ends(a: float32[16, 64], b: float32[64], c: float32[16, 64]) {
  kernel bx in 1 threads 64 {
    shared s: float32[64]
    serial k in 16 {
      copy a[k, 0 : 64] -> s
      if k == 5 {
        break
      }
      parallel i in 64 {
        c[k, i] = s[63 - i]
      }
    }
    parallel i in 64 {
      b[i] = s[63 - i]
    }
  }
})");
}

// Matrix units read what threads wrote before they left the loop.
TEST(Jumps, BreakLeavesNoFenceOut) {
  expect_interpreted(R"(program product(a: float16[8, 64, 64], f: int32[8], b: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared t: float16[64, 64]
    fragment c: float32[64, 64]
    fill c = 0.0
    serial n in 8 {
      copy a[n, 0 : 64, 0 : 64] -> t
      if f[n] % 2 == 0 {
        break
      }
      gemm c += t @ t.T
    }
    gemm c += t @ t
    copy c -> b
  }
})");
}

}  // namespace
}  // namespace tilepilot::testing
