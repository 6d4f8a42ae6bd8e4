// Programs as language models write them (each a model in PyTorch and one that calls its own kernels, in the language's
// older form) are judged right. Their kernels compute in float16, so the models run in it as well.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "eval/judge.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

namespace fs = std::filesystem;

// Python starts once for several models.
std::vector<std::vector<fs::path>> groups_of_programs() {
  constexpr size_t kGroups = 8;
  std::vector<fs::path> all;
  for (auto& entry : fs::directory_iterator(TILEPILOT_SOURCE_DIR "/tests/programs"))
    if (entry.is_directory()) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  std::vector<std::vector<fs::path>> groups(kGroups);
  for (size_t k = 0; k < all.size(); ++k) groups[k % kGroups].push_back(all[k]);
  return groups;
}

void expect_verified(const fs::path& program, const fs::path& reference) {
  JudgeOptions options;
  options.worker = TILEPILOT_BINARY_DIR "/tilepilot-worker";
  options.cache = TILEPILOT_BINARY_DIR "/kernel_cache";
  options.dtype = "fp16";
  options.trials = 3;
  options.threads = 2;
  auto judge = open_judge(reference, options);
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  std::stringstream source;
  source << std::ifstream(program / "kernel.py").rdbuf();
  auto verdict = (*judge)->check({.source = source.str(), .name = "kernel.py", .time = false});
  EXPECT_EQ(verdict.outcome, Outcome::verified) << to_json(verdict).dump(2);
}

class Programs : public ::testing::TestWithParam<std::vector<fs::path>> {};

TEST_P(Programs, AreVerified) {
  const auto folder = testing::scratch("programs");
  std::vector<std::string> arguments = {TILEPILOT_SOURCE_DIR "/scripts/export_reference.py"};
  for (auto& program : GetParam())
    arguments.insert(arguments.end(),
                     {(program / "model.py").string(), "fp16", (folder / program.filename()).string()});
  auto run = testing::run_python("tests/torch/export_models.py", arguments);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (auto& program : GetParam()) {
    SCOPED_TRACE(program.filename().string());
    expect_verified(program, folder / program.filename() / "reference");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Programs, ::testing::ValuesIn(groups_of_programs()));

}  // namespace
}  // namespace tilepilot::eval
