// Programs as language models write them (each a model in PyTorch and one that calls its own kernels, in the language's
// older form) are judged right. Their kernels compute in float16, so the models run in it as well.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

std::filesystem::path programs_folder() { return std::filesystem::path(TILEPILOT_SOURCE_DIR) / "tests/programs"; }

std::vector<std::string> programs() {
  std::vector<std::string> names;
  for (auto& entry : std::filesystem::directory_iterator(programs_folder()))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class ProgramCase : public CommandLine, public ::testing::WithParamInterface<std::string> {};

TEST_P(ProgramCase, IsVerified) {
  const auto folder = programs_folder() / GetParam();
  auto result = tilepilot({"--dtype", "fp16", "check", (folder / "kernel.py").string(), "-r",
                           (folder / "model.py").string(), "--no-timing"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, ::testing::HasSubstr("verified")) << all(result);
}

INSTANTIATE_TEST_SUITE_P(Files, ProgramCase, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilepilot
