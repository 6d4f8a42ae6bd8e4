// scripts/conformance: a table of how far each script of a folder comes.
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST_F(CommandLine, ConformanceSaysHowFarScriptsCome) {
  const std::string source = TILEPILOT_SOURCE_DIR;
  auto result = runtime::run_process({"python3", source + "/scripts/conformance", source + "/tests/cli/conformance",
                                      "--program", TILEPILOT_BINARY_DIR "/tilepilot"},
                                     {.time_limit_s = 120, .working_directory = folder_.string()});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_THAT(result->out,
              AllOf(ContainsRegex("adds.py \\| yes \\| 1 \\| 1 \\| 1 \\| yes \\|"),
                    ContainsRegex("is_cut_off.py \\| no \\| 0 \\| 0 \\| 0 \\| no \\|.*syntax_error"),
                    ContainsRegex("subtracts_wrongly.py \\| yes \\| 1 \\| 1 \\| 1 \\| no \\|.*assertion_failed"),
                    HasSubstr("3 scripts: 2 staged a program, 1 passed; 0 skipped")))
      << all(*result);
}

}  // namespace
}  // namespace tilepilot
