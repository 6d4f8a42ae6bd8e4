// What becomes of kernels with thread variables, as text. That the programs still mean the same is tested where they
// run: tests/tile/threads_test.cpp.
#include "compiler/passes/threads/thread_regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "compiler/passes/algebra/simplify.h"

namespace tilepilot::ir {
namespace {

Program parse(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  auto program = read_text(sources, sources.add("program.ir", text), diagnostics);
  EXPECT_TRUE(program) << diagnostics.items().front().message;
  return program.value_or(Program{});
}

std::string with_kernel(const std::string& head, const std::string& body) {
  return "program f(x: float32[64], y: float32[64]) {\n  kernel bx in 2 " + head + " {\n" + body + "  }\n}\n";
}

void expect_becomes(const std::string& head, const std::string& before, const std::string& after) {
  const auto result = passes::thread_regions(parse(with_kernel("threads " + head + " in 32", before)));
  ASSERT_TRUE(result.ok()) << result.error().message;
  DiagnosticList diagnostics;
  EXPECT_TRUE(verify(*result, diagnostics)) << diagnostics.items().front().message;
  EXPECT_EQ(to_text(*result), with_kernel("threads 32", after));
}

std::string failure(const std::string& body) {
  const auto result = passes::thread_regions(parse(with_kernel("threads tx in 32", body)));
  return result.ok() ? "" : result.error().message;
}

TEST(ThreadRegions, ABarrierEndsARegion) {
  expect_becomes("tx", R"(    shared s: float32[32]
    s[tx] = x[tx]
    sync
    y[tx] = s[31 - tx]
)",
                 R"(    shared s: float32[32]
    parallel tx in 32 {
      s[tx] = x[tx]
    }
    parallel tx in 32 {
      y[tx] = s[31 - tx]
    }
)");
}

TEST(ThreadRegions, LocalBuffersGetAnElementForEachThread) {
  expect_becomes("tx", R"(    local a: float32[2]
    a[1] = x[tx]
    sync
    y[tx] = a[1]
)",
                 R"(    local a: float32[2, 32]
    parallel tx in 32 {
      a[1, tx] = x[tx]
    }
    parallel tx in 32 {
      y[tx] = a[1, tx]
    }
)");
}

// What is made of indices is computed again, what was loaded is kept.
TEST(ThreadRegions, LetsReachLaterRegions) {
  expect_becomes("tx", R"(    let i: int32 = tx + 1
    let v: float32 = x[i]
    sync
    y[i] = v
)",
                 R"(    local v: float32[32]
    parallel tx in 32 {
      let i: int32 = tx + 1
      let v_1: float32 = x[i]
      v[tx] = v_1
    }
    parallel tx in 32 {
      let i: int32 = tx + 1
      let v_1: float32 = v[tx]
      y[i] = v_1
    }
)");
}

TEST(ThreadRegions, LoopsAroundBarriersStayOutside) {
  expect_becomes("tx", R"(    shared s: float32[32]
    serial k in 3 {
      s[tx] = s[tx] + 1.0
      sync
      y[tx] = s[k]
    }
)",
                 R"(    shared s: float32[32]
    serial k in 3 {
      parallel tx in 32 {
        s[tx] = s[tx] + 1.0
      }
      parallel tx in 32 {
        y[tx] = s[k]
      }
    }
)");
}

// A variable that decides how often threads meet is the block's, its stores with it.
TEST(ThreadRegions, WhatDecidesWhereThreadsMeetIsShared) {
  expect_becomes("tx", R"(    local n: int32[1]
    n[0] = 16
    while n[0] > 0 {
      y[tx] = x[tx] + 1.0
      sync
      n[0] = n[0] // 2
    }
)",
                 R"(    local n: int32[1]
    n[0] = 16
    while n[0] > 0 {
      parallel tx in 32 {
        y[tx] = x[tx] + 1.0
      }
      n[0] = n[0] // 2
    }
)");
}

TEST(ThreadRegions, GuardsShortenTheLoop) {
  expect_becomes("tx", R"(    if tx < bx {
      y[tx] = x[tx]
    }
    sync
    if tx == 0 {
      y[tx] = 0.0
    }
)",
                 R"(    parallel tx in min(32, max(bx, 0)) {
      y[tx] = x[tx]
    }
    parallel tx in min(32, max(1, 0)) {
      y[tx] = 0.0
    }
)");
}

TEST(ThreadRegions, TileKernelsOnlyLoseBarriers) {
  const auto result = passes::thread_regions(parse(with_kernel("threads 32", "    y[0] = x[0]\n    sync\n")));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(to_text(*result), with_kernel("threads 32", "    y[0] = x[0]\n"));
}

TEST(ThreadRegions, WarpsThatGoTheirOwnWayBecomeRoles) {
  const auto result = passes::thread_regions(parse(with_kernel("threads tx in 64", R"(    shared s: float32[32]
    barrier full: uint64[1] arrivals [32]
    let side: int32 = tx // 32
    if side == 0 {
      s[tx] = x[tx]
      on full[0] arrive
    } else {
      on full[0] wait 0
      sync on 1 of 32
      y[tx] = s[63 - tx]
    }
    fill s = 0.0
)")));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(to_text(passes::simplify(*result)), with_kernel("threads 64", R"(    shared s: float32[32]
    barrier full: uint64[1] arrivals [32]
    concurrent {
      threads 32 {
        parallel tx in 32 {
          s[tx] = x[tx]
          on full arrive threads 1
        }
        sync
        fill s = 0.0
        sync
      }
      threads 32 {
        on full wait 0
        sync on 1 of 32
        parallel tx in 32 {
          y[tx + 32] = s[-tx + 31]
        }
        sync
        sync
      }
    }
)"));
}

TEST(ThreadRegions, fail_ThreadsMeetApart) {
  using ::testing::HasSubstr;
  EXPECT_THAT(failure("    if tx < 3 {\n      sync\n    }\n"), HasSubstr("this condition differs"));
  EXPECT_THAT(failure("    serial i in tx {\n      sync\n    }\n"), HasSubstr("how often this loop runs differs"));
  EXPECT_THAT(failure("    local n: int32[1]\n    n[0] = tx\n    while n[0] > 0 {\n      sync\n    }\n"),
              HasSubstr("differs between them"));
  // A thread that has left the loop does not come to the barrier.
  EXPECT_THAT(failure("    serial i in 4 {\n      if tx < i {\n        break\n      }\n      sync\n    }\n"),
              HasSubstr("this condition differs"));
}

}  // namespace
}  // namespace tilepilot::ir
