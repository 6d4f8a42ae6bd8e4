// The official client, in Python, against `tilepilot mcp`.
#include <fstream>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

class McpPython : public CommandLine {
 protected:
  // The Python of this build, or that of the local environment, where set-up puts the client; empty: neither has it.
  static std::string python_with_client() {
    std::string built;
    std::getline(std::ifstream(TILEPILOT_BINARY_DIR "/python"), built);
    for (const std::string& python : {built, std::string(TILEPILOT_SOURCE_DIR "/.venv/bin/python")}) {
      if (python.empty()) continue;
      auto tried = runtime::run_process({python, "-c", "from mcp import Client"}, {.time_limit_s = 60});
      if (tried.ok() && tried->exit_code == 0) return python;
    }
    return "";
  }
};

TEST_F(McpPython, TheOfficialClientIsServed) {
  const std::string python = python_with_client();
  if (python.empty()) GTEST_SKIP() << "no Python here has the package mcp: scripts/setup --tests installs it";
  auto ran = runtime::run_process({python, (tests() / "mcp_client.py").string(), TILEPILOT_BINARY_DIR "/tilepilot",
                                   tests().string(), store().string()},
                                  {.time_limit_s = 300, .working_directory = folder_.string()});
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->exit_code, 0) << ran->out << ran->err;
  EXPECT_THAT(ran->out, ::testing::HasSubstr("legacy: a program is verified"));
  EXPECT_THAT(ran->out, ::testing::HasSubstr("done\n"));
}

}  // namespace
}  // namespace tilepilot
