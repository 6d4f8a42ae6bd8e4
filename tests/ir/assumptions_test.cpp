#include "compiler/passes/algebra/assumptions.h"

#include <gmock/gmock.h>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"

namespace tilepilot::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ir::Program program_of(const std::string& body) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const std::string text = "program f<n: int32>(x: int32[n]) { kernel b in n threads t in 32 { " + body + " } }";
  const auto program = ir::read_text(sources, sources.add("test.ir", text), diagnostics);
  EXPECT_TRUE(program) << text << "\n" << (program ? "" : diagnostics.items().front().message);
  return program ? *program : ir::Program();
}

std::vector<std::string> assumed(const std::string& body) {
  const ir::Program program = program_of(body);
  if (program.kernels.empty()) return {};
  const ir::Program result = collect_assumptions(program);
  EXPECT_FALSE(ir::contains<ir::Check>(result.kernels[0].body));
  std::vector<std::string> texts;
  for (const ir::Expr& condition : result.kernels[0].assumptions) texts.push_back(ir::to_text(condition));
  return texts;
}

TEST(Assumptions, HoldWhereTheirVariablesAreBound) {
  EXPECT_THAT(assumed("assume n % 32 == 0, \"\""), ElementsAre("n % 32 == 0"));
  EXPECT_THAT(assumed("let at: int32 = b + t assume at < n, \"\""), ElementsAre("b + t < n"));
  EXPECT_THAT(assumed("serial i in 4 { let at: int32 = b + i assume at < n, \"\" x[at] = 1 }"),
              ElementsAre("b + i < n"));
  EXPECT_THAT(assumed("if b > 1 { serial i in n { assume i < b, \"\" } }"), ElementsAre("i < b"));
}

TEST(Assumptions, AreToldWhereTheyAreDropped) {
  const auto dropped = [](const std::string& body) {
    std::vector<std::string> all;
    for (const DroppedAssumption& each : dropped_assumptions(program_of(body))) all.push_back(each.why);
    return all;
  };
  EXPECT_THAT(dropped("let at: int32 = x[b] assume at < n, \"\""), IsEmpty());  // a name for what is loaded
  EXPECT_THAT(dropped("assume x[b] < n, \"\""), ElementsAre(::testing::HasSubstr("loaded")));
  EXPECT_THAT(dropped("if b > 1 { assume b + 1 < n, \"\" }"), ElementsAre(::testing::HasSubstr("condition or loop")));
}

TEST(Assumptions, OnAConditionSayNothingOfTheOtherCase) {
  EXPECT_THAT(assumed("if b > 1 { assume b + 1 < n, \"\" }"), IsEmpty());
  EXPECT_THAT(assumed("serial i in n { assume b < n, \"\" }"), IsEmpty());
  EXPECT_THAT(assumed("serial i in 4 { if x[b] > i { break } assume b + i < n, \"\" }"), IsEmpty());
  EXPECT_THAT(assumed("serial i in 4 { serial j in 4 { if x[b] > j { break } } assume b + i < n, \"\" }"),
              ElementsAre("b + i < n"));
  EXPECT_THAT(assumed("if t < 16 { let at: int32 = b + t assume at < n, \"\" x[at] = 1 }"), IsEmpty());
  EXPECT_THAT(assumed("assume x[b] < n, \"\""), IsEmpty());
}

}  // namespace
}  // namespace tilepilot::passes
