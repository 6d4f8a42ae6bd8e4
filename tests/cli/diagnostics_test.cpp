#include "compiler/runtime/process.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot {
namespace {

using Diagnostics = testing::DiagnosticTest;

TEST_F(Diagnostics, BadUsage) {
  auto result = runtime::run_process({"/usr/bin/env", "TILEPILOT_STORE=" + (folder_ / "store.db").string(),
                                      TILEPILOT_BINARY_DIR "/tilepilot", "corpus", "search"},
                                     {.time_limit_s = 60, .working_directory = folder_.string()});
  ASSERT_TRUE(result.ok());
  expect_diagnostic("bad_usage", result->err);
}

}  // namespace
}  // namespace tilepilot
