#include "eval/graph/reference.h"
#include "eval/judge.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot::eval {
namespace {

using Diagnostics = testing::DiagnosticTest;

TEST_F(Diagnostics, ReferenceInvalid) {
  write("reference.json", R"({"format": "tilepilot-reference", "version": 999})");
  expect_diagnostic("reference_invalid", load_reference(folder_));
}

TEST_F(Diagnostics, WorkerUnavailable) {
  JudgeOptions options;
  options.worker = folder_ / "tilepilot-worker";
  expect_diagnostic("worker_unavailable", open_judge(folder_, options));
}

}  // namespace
}  // namespace tilepilot::eval
