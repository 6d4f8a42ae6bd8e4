// File tests: cases/KIND.py (or KIND-VARIANT.py, or .ir) has diagnostics of that kind, rendered as in
// golden/KIND.txt.
#include "tests/diagnostics/case.h"

#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (std::string_view extension : {".py", ".ir"}) {
    for (const std::string& stem : stems_in("diagnostics/cases", extension))
      names.push_back(stem + std::string(extension));
  }
  return names;
}

class DiagnosticCase : public ::testing::TestWithParam<std::string> {};

TEST_P(DiagnosticCase, MatchesGolden) {
  std::string stem = GetParam().substr(0, GetParam().rfind('.'));
  std::string kind = stem.substr(0, stem.find('-'));
  std::string text = diagnostics_of_case(GetParam());
  EXPECT_NE(text.find("[" + kind + "]"), std::string::npos) << text;
  expect_golden("diagnostics/golden/" + stem + ".txt", text);
}

INSTANTIATE_TEST_SUITE_P(Files, DiagnosticCase, ::testing::ValuesIn(case_names()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace tilepilot::testing
