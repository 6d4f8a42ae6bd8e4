// File tests: cases/NAME.py against golden/NAME.tree (its tree with spans), cases/fail_NAME.py against
// golden/fail_NAME.txt (its diagnostics).
#include "tests/golden.h"
#include "tests/syntax/parsed.h"

namespace tilepilot::syntax {
namespace {

class SyntaxCase : public ::testing::TestWithParam<std::string> {};

TEST_P(SyntaxCase, MatchesGolden) {
  const std::string& name = GetParam();
  Parsed parsed(testing::read_text(testing::tests_path("syntax/cases/" + name + ".py")), name + ".py");
  std::string messages = render(parsed.sources, parsed.diagnostics);
  if (name.rfind("fail_", 0) == 0) {
    EXPECT_EQ(parsed.module, nullptr);
    return testing::expect_golden("syntax/golden/" + name + ".txt", messages);
  }
  ASSERT_NE(parsed.module, nullptr) << messages;
  testing::expect_golden("syntax/golden/" + name + ".tree", dump_tree(*parsed.module, {&parsed.sources}));
}

TEST_P(SyntaxCase, PrintedSourceHasTheSameTree) {
  const std::string& name = GetParam();
  if (name.rfind("fail_", 0) == 0) return;
  Parsed parsed(testing::read_text(testing::tests_path("syntax/cases/" + name + ".py")));
  ASSERT_NE(parsed.module, nullptr);
  std::string source = to_source(*parsed.module);
  Parsed again(source);
  ASSERT_NE(again.module, nullptr) << source << render(again.sources, again.diagnostics);
  EXPECT_EQ(dump_tree(*again.module), dump_tree(*parsed.module)) << source;
  EXPECT_EQ(to_source(*again.module), source);
}

INSTANTIATE_TEST_SUITE_P(Files, SyntaxCase, ::testing::ValuesIn(testing::stems_in("syntax/cases", ".py")),
                         [](const auto& info) { return info.param; });

TEST(TokenDump, MatchesGolden) {
  SourceMap sources;
  int32_t file =
      sources.add("tokens.py", "def f(x):  # comment\n\tif x >= 0x1F: return f'a{x}' \\\n\t\t'b'\n\ny = 1_0.5e3 ?\n");
  testing::expect_golden("syntax/golden/tokens.txt", dump_tokens(sources, file));
}

}  // namespace
}  // namespace tilepilot::syntax
