// Where barriers are put, as text. That the programs then compute what was meant: tests/tile/thread_sync_test.cpp.
#include "compiler/passes/threads/thread_sync.h"

#include <gtest/gtest.h>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"

namespace tilepilot::ir {
namespace {

std::string kernel_text(const std::string& body) {
  return "program f(x: float32[64], y: float32[64]) {\n  kernel bx in 2 threads tx in 64 {\n"
         "    shared s: float32[64]\n    shared t: float32[4, 64]\n" +
         body + "  }\n}\n";
}

std::string with_barriers(const std::string& body) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const auto program = read_text(sources, sources.add("program.ir", kernel_text(body)), diagnostics);
  EXPECT_TRUE(program) << diagnostics.items().front().message;
  if (!program) return "";
  const Program result = passes::thread_sync(*program);
  EXPECT_TRUE(verify(result, diagnostics)) << diagnostics.items().front().message;
  return to_text(result);
}

void expect_becomes(const std::string& before, const std::string& after) {
  EXPECT_EQ(with_barriers(before), kernel_text(after));
}
void expect_stays(const std::string& body) { expect_becomes(body, body); }

TEST(ThreadSync, BetweenAWriteAndAReadOfAnotherThread) {
  expect_becomes(R"(    s[tx] = x[tx]
    y[tx] = s[63 - tx]
)",
                 R"(    s[tx] = x[tx]
    sync
    y[tx] = s[63 - tx]
)");
}

TEST(ThreadSync, NotForAThreadsOwnElements) {
  expect_stays(R"(    s[tx] = x[tx]
    y[tx] = s[tx]
    let row: int32 = tx // 16
    let column: int32 = tx % 16
    t[row, column] = x[tx]
    y[tx] = t[tx // 16, tx % 16]
    sync
    serial j in 4 {
      t[j, tx] = x[tx]
    }
    y[tx] = t[bx, tx] + t[1, tx]
)");
}

// Rows and columns to which loops add multiples of what threads have between them, as operands of tensor cores lie.
TEST(ThreadSync, NotForElementsThatLoopsSetApart) {
  expect_stays(R"(    unrolled run in 4 {
      let row: int32 = tx % 32 // 8 // 2 + run % 2 * 2
      let column: int32 = tx % 16 * 2 + run // 2 * 32 + tx // 32
      t[row, column] = x[tx]
    }
)");
}

// A remainder of thread and loop together is any number below the divisor: here in columns that are a thread's own.
TEST(ThreadSync, NotForColumnsThatOthersLeaveAlone) {
  expect_stays(R"(    unrolled j in 4 {
      t[(j + tx // 8) % 4, tx] = x[tx]
    }
    y[tx] = t[bx, tx]
)");
  expect_becomes(R"(    unrolled j in 4 {
      s[tx // 8 * 4 + (j + tx) % 4] = x[tx] + s[tx]
    }
)",
                 R"(    unrolled j in 4 {
      s[tx // 8 * 4 + (j + tx) % 4] = x[tx] + s[tx]
      sync
    }
)");
}

TEST(ThreadSync, ForElementsThatLoopsBringTogether) {
  const std::string one_more = R"(    unrolled run in 4 {
      let row: int32 = tx % 32 // 8 // 2 + run % 2
      let column: int32 = tx % 16 * 2 + run // 2 * 32 + tx // 32
      t[row, column] = x[tx]
)";
  expect_becomes(one_more + "    }\n", one_more + "      sync\n    }\n");
}

TEST(ThreadSync, NotForElementsThatOnlyOneThreadTouches) {
  expect_stays(R"(    if tx == 0 {
      s[0] = x[0]
      serial i in 63 {
        s[0] = s[0] + s[i + 1]
      }
    }
    if tx == 0 {
      y[0] = s[0]
    }
)");
}

TEST(ThreadSync, NotWherePartsDoNotMeet) {
  expect_stays(R"(    if tx < 32 {
      s[tx] = x[tx]
    }
    if tx >= 32 {
      y[tx] = s[tx]
    }
)");
}

TEST(ThreadSync, NotWhereTheProgramHasOne) {
  expect_stays(R"(    s[tx] = x[tx]
    sync
    y[tx] = s[63 - tx]
    fill s = 0.0
    y[tx] = s[63 - tx]
)");
}

// Which threads wait for each other there, and whether any do, is the target's choice.
TEST(ThreadSync, AfterATileOperatorOnOthersToo) {
  expect_becomes(R"(    s[tx] = x[tx]
    fill t = 0.0
    copy x -> t[0, 0 : 64]
    y[tx] = s[63 - tx]
)",
                 R"(    s[tx] = x[tx]
    fill t = 0.0
    copy x -> t[0, 0 : 64]
    sync
    y[tx] = s[63 - tx]
)");
}

// What stands in the order of the program, with nothing between, is the program's own business there.
TEST(ThreadSync, ForGlobalMemoryAfterAnOperator) {
  expect_becomes(R"(    y[tx] = x[tx]
    fill t = 0.0
    s[tx] = y[63 - tx]
    y[tx] = s[tx]
    serial j in 4 {
      s[tx] = y[63 - tx]
      y[tx] = s[tx]
      fill t = 1.0
    }
)",
                 R"(    y[tx] = x[tx]
    fill t = 0.0
    sync
    s[tx] = y[63 - tx]
    y[tx] = s[tx]
    serial j in 4 {
      s[tx] = y[63 - tx]
      y[tx] = s[tx]
      fill t = 1.0
      sync
    }
)");
}

// The operator of the iteration between.
TEST(ThreadSync, ForGlobalMemoryOfTheNextIterationButOne) {
  expect_becomes(R"(    serial j in 8 {
      s[tx] = y[j * 64 + 63 - tx]
      fill t = 1.0
      y[(j + 2) * 64 + tx] = s[tx]
    }
)",
                 R"(    serial j in 8 {
      s[tx] = y[j * 64 + 63 - tx]
      fill t = 1.0
      y[(j + 2) * 64 + tx] = s[tx]
      sync
    }
)");
}

TEST(ThreadSync, AtTheEndOfAnIteration) {
  expect_becomes(R"(    serial i in 4 {
      if tx == 63 {
        s[0] = x[i]
      }
      y[tx] = s[0]
    }
)",
                 R"(    serial i in 4 {
      if tx == 63 {
        s[0] = x[i]
      }
      sync
      y[tx] = s[0]
      sync
    }
)");
}

// Each iteration has its own part of the tile; then all of it is read.
TEST(ThreadSync, AfterALoopThatFillsATile) {
  expect_becomes(R"(    serial i in 2 {
      s[i * 32 + tx % 32] = x[tx]
    }
    serial i in 8 {
      t[i // 2, tx] = s[i * 8]
    }
)",
                 R"(    serial i in 2 {
      s[i * 32 + tx % 32] = x[tx]
    }
    sync
    serial i in 8 {
      t[i // 2, tx] = s[i * 8]
    }
)");
  expect_stays(R"(    serial i in 4 {
      s[i * 64 + tx] = x[tx]
      y[tx] = s[i * 64 + tx]
    }
)");
}

TEST(ThreadSync, InTheBranchThatAllTake) {
  expect_becomes(R"(    if bx == 0 {
      s[tx] = x[tx]
      y[tx] = s[63 - tx]
    }
    s[tx] = 0.0
)",
                 R"(    if bx == 0 {
      s[tx] = x[tx]
      sync
      y[tx] = s[63 - tx]
    }
    sync
    s[tx] = 0.0
)");
}

// Threads of a warp that count on running in step.
TEST(ThreadSync, CutsAConditionThatThreadsAnswerDifferently) {
  expect_becomes(R"(    if tx < 32 {
      let v: float32 = s[tx + 32]
      s[tx] = s[tx] + v
      s[tx] = s[tx] + s[tx + 16] * v
    }
)",
                 R"(    local v: float32[1]
    let taken: bool = tx < 32
    if taken {
      v[0] = s[tx + 32]
      s[tx] = s[tx] + v[0]
    }
    sync
    if taken {
      s[tx] = s[tx] + s[tx + 16] * v[0]
    }
)");
}

TEST(ThreadSync, TakesALoopOutOfSuchACondition) {
  expect_becomes(R"(    if tx < 32 {
      serial k in 5 {
        s[tx] = s[tx] + s[tx + (16 >> k)]
      }
    }
)",
                 R"(    let taken: bool = tx < 32
    serial k in 5 {
      if taken {
        s[tx] = s[tx] + s[tx + (16 >> k)]
      }
      sync
    }
)");
}

TEST(ThreadSync, NotAmongAtomics) {
  expect_stays(R"(    atomic add s[0], 1.0
    atomic add s[tx // 2], 1.0
)");
}

}  // namespace
}  // namespace tilepilot::ir
