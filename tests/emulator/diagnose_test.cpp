// What a user sees of defects.
#include "compiler/emulator/report/diagnose.h"

#include "tests/emulator/kernels.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot::emulator::testing {
namespace {

class EmulatedDefect : public tilepilot::testing::DiagnosticTest {};

TEST_F(EmulatedDefect, IsTold) {
  std::vector<float> a(1024), b(1024), c(1024);
  const Report report = run_kernel(plain_gemm().with("  sync_threads();  // used", ""),
                                   {.threads = 256, .shared_bytes = 2048, .scalars = {32}},
                                   Buffers().add("A", a).add("B", b).add("C", c));
  ASSERT_FALSE(report.defects.empty());
  expect_diagnostic("emulated_defect", render(sources_, *error_of(report, "matmul", {})));
}

}  // namespace
}  // namespace tilepilot::emulator::testing
