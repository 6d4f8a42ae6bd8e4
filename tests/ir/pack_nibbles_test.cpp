// Who writes which byte: halves of one may belong to several blocks.
#include "compiler/passes/pack_nibbles.h"

#include <gmock/gmock.h>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"

namespace tilepilot::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string packed(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const auto program = ir::read_text(sources, sources.add("program.ir", text), diagnostics);
  EXPECT_TRUE(program);
  if (!program) return {};
  const auto result = pack_nibbles(*program);
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(ir::verify(*result, diagnostics));
  return ir::to_text(*result);
}

std::string blocks_of(int columns) {
  const std::string n = std::to_string(columns);
  return "program f(y: int4[4, 56]) { kernel b in " + std::to_string(56 / columns) +
         " threads 64 { fragment t: int4[4, " + n + "] fill t = 3 copy t -> y[0 : 4, b * " + n + " : +" + n + "] } }";
}

TEST(PackNibblesTest, BytesThatBlocksShareAreWrittenAsAWhole) {
  EXPECT_THAT(packed(blocks_of(7)), HasSubstr("atomic add"));
  EXPECT_THAT(packed(blocks_of(8)), Not(HasSubstr("atomic")));
}

TEST(PackNibblesTest, RolesBeginAfterTheBytesAreClear) {
  const std::string text = packed(
      "program f(y: float32[8]) { kernel b in 1 threads 256 { shared s: int4[8] shared v: uint8[4] view s concurrent {"
      " threads 128 { s[0] = 1 sync } threads 128 { sync y[0] = float32(v[0]) } } } }");
  const size_t clear = text.find("= 0"), roles = text.find("concurrent");
  EXPECT_LT(roles, clear) << text;
  EXPECT_LT(clear, text.find("sync")) << text;
}

}  // namespace
}  // namespace tilepilot::passes
