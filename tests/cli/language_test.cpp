// `tilepilot language`: the compiler's tables, in words.
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LanguageCommand : public CommandLine {};

TEST_F(LanguageCommand, TellsAConstructOrTheWholeCard) {
  const auto gemm = tilepilot({"language", "T.gemm"});
  EXPECT_EQ(gemm.exit_code, 0);
  EXPECT_THAT(gemm.out, AllOf(HasSubstr("`T.gemm("), Not(HasSubstr("`T.copy("))));
  const auto misspelt = nlohmann::json::parse(tilepilot({"language", "gemmm", "--json"}).out);
  EXPECT_EQ(misspelt["ok"], true);
  EXPECT_THAT(misspelt["text"].get<std::string>(), AllOf(HasSubstr("no `T.gemmm`"), HasSubstr("`T.gemm(")));
  // Cards differ: some of the language is for GPUs.
  const auto cpu = tilepilot({"language", "--target", "cpu"}), gpu = tilepilot({"language", "--target", "cuda:sm_90a"});
  EXPECT_THAT(cpu.out, HasSubstr("`T.copy("));
  EXPECT_NE(cpu.out, gpu.out);
  EXPECT_EQ(tilepilot({"language", "--target", "abacus"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"language", "--seed", "3"}).exit_code, 2);
}

}  // namespace
}  // namespace tilepilot
