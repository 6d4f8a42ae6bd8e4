// Every kind of diagnostic is shown by a golden file, and no golden file shows a kind that does not exist.
#include "compiler/diagnostics/diagnostic.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

std::string kind_of(const std::string& stem) { return stem.substr(0, stem.find('-')); }

TEST(Registry, HasAGoldenFileForEveryKind) {
  std::vector<std::string> stems = stems_in("diagnostics/golden", ".txt");
  for (const DiagnosticKindInfo& row : diagnostic_kinds()) {
    bool shown =
        std::any_of(stems.begin(), stems.end(), [&](const std::string& stem) { return kind_of(stem) == row.name; });
    EXPECT_TRUE(shown) << "no golden file for `" << row.name << "`: add tests/diagnostics/cases/" << row.name << ".py";
  }
}

TEST(Registry, KnowsEveryGoldenFile) {
  for (const std::string& stem : stems_in("diagnostics/golden", ".txt")) {
    const auto& kinds = diagnostic_kinds();
    bool known = std::any_of(kinds.begin(), kinds.end(), [&](const auto& row) { return row.name == kind_of(stem); });
    EXPECT_TRUE(known) << stem;
    std::string text = read_text(tests_path("diagnostics/golden/" + stem + ".txt"));
    EXPECT_NE(text.find("[" + kind_of(stem) + "]"), std::string::npos) << stem << " does not show its kind";
  }
}

}  // namespace
}  // namespace tilepilot::testing
