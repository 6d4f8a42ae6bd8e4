// File tests: cases/NAME.py staged to IR, after its warnings, against golden/NAME.tir; cases/fail_NAME.py against
// golden/fail_NAME.txt (its diagnostics). A first line `# call: f(1)` is the call that stages the program.
#include "compiler/diagnostics/render.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "tests/golden.h"

namespace tilepilot::stage {
namespace {

struct Staged {
  SourceMap sources;
  driver::CompileResult result;

  explicit Staged(const std::string& name) {
    driver::CompileRequest request;
    request.name = name + ".py";
    request.text = testing::read_text(testing::tests_path("tile/cases/" + request.name));
    constexpr std::string_view kMark = "# call: ";
    if (request.text.rfind(kMark, 0) == 0)
      request.call = request.text.substr(kMark.size(), request.text.find('\n') - kMark.size());
    result = driver::compile(sources, request);
  }
  std::string messages() const { return render(sources, result.diagnostics); }
};

class TileCase : public ::testing::TestWithParam<std::string> {};

TEST_P(TileCase, MatchesGolden) {
  Staged staged(GetParam());
  if (GetParam().rfind("fail_", 0) == 0) {
    EXPECT_TRUE(staged.result.diagnostics.has_errors());
    return testing::expect_golden("tile/golden/" + GetParam() + ".txt", staged.messages());
  }
  ASSERT_FALSE(staged.result.diagnostics.has_errors()) << staged.messages();
  std::string text = staged.messages();
  for (const ir::Program& program : staged.result.programs) text += ir::to_text(program) + "\n";
  testing::expect_golden("tile/golden/" + GetParam() + ".tir", text);
}

TEST_P(TileCase, StagedProgramsKeepTheRulesOfTheIr) {
  Staged staged(GetParam());
  for (const ir::Program& program : staged.result.programs) {
    DiagnosticList violations;
    EXPECT_TRUE(ir::verify(program, violations)) << render(staged.sources, violations) << ir::to_text(program);
    SourceMap sources;
    auto again = ir::read_text(sources, sources.add("program.tir", ir::to_text(program)), violations);
    ASSERT_TRUE(again.has_value()) << render(sources, violations);
    EXPECT_TRUE(ir::structurally_equal(program, *again)) << ir::to_text(program);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TileCase, ::testing::ValuesIn(testing::stems_in("tile/cases", ".py")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilepilot::stage
