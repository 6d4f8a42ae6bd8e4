// What a process says that faults outside kernels. Those of kernels: tests/cli/crash_test.cpp.
#include "eval/worker/crash_report.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tilepilot::eval {
namespace {

TEST(CrashReportDeathTest, NamesTheStatement) {
  SourceMap sources;
  const int32_t file = sources.add("script.py", "import torch\n\nprint(torch.ones(3))\n");
  const auto fault = [&](int32_t in_file, int signal) {
    CrashReport report(sources);
    report.statement()->file = in_file;
    report.statement()->offset = 14;
    raise(signal);
  };
  EXPECT_EXIT(fault(file, SIGSEGV), ::testing::ExitedWithCode(1),
              "^script.py:3:1: error: the script's process crashed: segmentation fault \\[crashed\\]\n$");
  EXPECT_EXIT(fault(file, SIGFPE), ::testing::ExitedWithCode(1), "^script.py:3:1: error: .*: arithmetic fault");
  EXPECT_EXIT(fault(-1, SIGBUS), ::testing::ExitedWithCode(1), "^error: the script's process crashed: bus error");
}

TEST(CrashReportDeathTest, LeavesSignalsAsTheyWere) {
  SourceMap sources;
  const auto fault = [&] {
    { const CrashReport report(sources); }
    raise(SIGSEGV);
  };
  EXPECT_EXIT(fault(), ::testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace tilepilot::eval
