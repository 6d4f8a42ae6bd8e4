// File tests: what cases/NAME.py prints is golden/NAME.txt, and the real Python prints the same; the error of
// cases/fail_NAME.py is golden/fail_NAME.txt.
#include "tests/golden.h"

#include <gtest/gtest.h>

#include "tests/stage/real_python.h"
#include "tests/stage/session.h"

namespace tilepilot::stage {
namespace {

std::string case_text(const std::string& name) {
  return testing::read_text(testing::tests_path("stage/cases/" + name + ".py"));
}

class StageCase : public ::testing::TestWithParam<std::string> {};

TEST_P(StageCase, MatchesGolden) {
  const std::string& name = GetParam();
  Session session;
  bool good = session.run(case_text(name), name + ".py");
  std::string shown = session.printed;
  if (!good) shown += render(session.sources, *session.error);
  EXPECT_EQ(good, name.rfind("fail_", 0) != 0) << shown;
  testing::expect_golden("stage/golden/" + name + ".txt", shown);
}

TEST_P(StageCase, PrintsWhatPythonPrints) {
  const std::string& name = GetParam();
  if (name.rfind("fail_", 0) == 0) return;
  auto printed = real_python_prints(testing::tests_path("stage/cases"), name + ".py");
  if (!printed) GTEST_SKIP() << "python3 (3.11 or newer) is not installed: nothing to compare with";
  EXPECT_EQ(*printed, testing::read_text(testing::tests_path("stage/golden/" + name + ".txt")));
}

INSTANTIATE_TEST_SUITE_P(Files, StageCase, ::testing::ValuesIn(testing::stems_in("stage/cases", ".py")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilepilot::stage
