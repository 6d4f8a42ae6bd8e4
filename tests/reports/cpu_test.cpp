// Reported programs through the CPU backend and through the reference interpreter.
#include "tests/reports/reports.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class Reported : public Run, public ::testing::WithParamInterface<Report> {
 protected:
  Reported() : Run(checked_backend()) {}
};

TEST_P(Reported, GiveTheRightNumbers) {
  const Report& report = GetParam();
  load(report.program);
  if (HasFatalFailure()) return;
  expect_near(call(report.call(), report.inputs), report.tolerance,
              [&](int64_t i) { return report.expected(report.inputs, i); });
}

std::string report_name(const ::testing::TestParamInfo<Report>& info) {
  return info.param.name + "_" + std::to_string(info.param.thread);
}
INSTANTIATE_TEST_SUITE_P(Copies, Reported, ::testing::ValuesIn(reports_of_copies()), report_name);
INSTANTIATE_TEST_SUITE_P(Operators, Reported, ::testing::ValuesIn(reports_of_operators()), report_name);
INSTANTIATE_TEST_SUITE_P(Order, Reported, ::testing::ValuesIn(reports_of_order()), report_name);
INSTANTIATE_TEST_SUITE_P(Pipelines, Reported, ::testing::ValuesIn(reports_of_pipelines()), report_name);
INSTANTIATE_TEST_SUITE_P(Threads, Reported, ::testing::ValuesIn(reports_of_threads()), report_name);
INSTANTIATE_TEST_SUITE_P(Values, Reported, ::testing::ValuesIn(reports_of_values()), report_name);

}  // namespace
}  // namespace tilepilot::stage
