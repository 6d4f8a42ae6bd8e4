// Programs that hold kernels and are judged right: those that language models would write (each a model in PyTorch and
// one that calls its own kernels, in the language's older form; they compute in float16, so the models run in it as
// well), and the seeds, since what the corpus hands to authors must have passed the judge.
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

struct JudgedProgram {
  std::string name;
  fs::path kernel, model;
  std::string dtype;
};

std::vector<std::vector<JudgedProgram>> in_groups(std::vector<JudgedProgram> programs, size_t count) {
  std::sort(programs.begin(), programs.end(), [](auto& a, auto& b) { return a.name < b.name; });
  std::vector<std::vector<JudgedProgram>> groups(count);
  for (size_t k = 0; k < programs.size(); ++k) groups[k % count].push_back(std::move(programs[k]));
  return groups;
}

std::vector<std::vector<JudgedProgram>> programs() {
  std::vector<JudgedProgram> all;
  for (auto& entry : fs::directory_iterator(TILEPILOT_SOURCE_DIR "/tests/programs")) {
    if (!entry.is_directory()) continue;
    all.push_back({entry.path().filename(), entry.path() / "kernel.py", entry.path() / "model.py", "fp16"});
  }
  return in_groups(std::move(all), 4);
}

// A seed holds the model too: up to its first kernel, without the imports that only kernels need, PyTorch runs it.
std::vector<std::vector<JudgedProgram>> seeds() {
  std::vector<JudgedProgram> all;
  for (auto& entry : fs::directory_iterator(TILEPILOT_SOURCE_DIR "/seeds")) {
    if (entry.path().extension() == ".py") all.push_back({entry.path().stem(), entry.path(), "", "fp32"});
  }
  return in_groups(std::move(all), 2);
}

fs::path model_of_seed(const fs::path& seed, const fs::path& model) {
  std::ifstream from(seed);
  std::ofstream to(model);
  for (std::string line; std::getline(from, line) && line.rfind("@tilelang", 0) != 0;)
    if (line.rfind("import tilelang", 0) != 0) to << line << "\n";
  return model;
}

void expect_verified(const JudgedProgram& program, const fs::path& reference) {
  JudgeOptions options;
  options.worker = TILEPILOT_BINARY_DIR "/tilepilot-worker";
  options.cache = TILEPILOT_KERNEL_CACHE;
  options.dtype = program.dtype;
  options.trials = 3;
  auto judge = open_judge(reference, options);
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  std::stringstream source;
  source << std::ifstream(program.kernel).rdbuf();
  auto verdict = (*judge)->check({.source = source.str(), .name = "kernel.py", .time = false});
  // These normalise by the batch, as the model does, and leave its running statistics alone.
  const bool forgets = program.name == "conv2d_batchnorm_scale" || program.name == "dense_block_concat";
  EXPECT_EQ(verdict.outcome, forgets ? Outcome::wrong_values : Outcome::verified) << to_json(verdict).dump(2);
  // What others learn from is right on other inputs, too.
  const bool is_seed = program.model.empty();
  EXPECT_FALSE(is_seed && verdict.given_inputs_only) << to_json(verdict).dump(2);
  if (forgets) { EXPECT_NE(verdict.detail.find("running_mean"), std::string::npos) << verdict.detail; }
}

class Programs : public ::testing::TestWithParam<std::vector<JudgedProgram>> {};

// Python starts once for several models.
TEST_P(Programs, AreVerified) {
  const auto folder = testing::scratch("programs");
  std::vector<std::string> arguments = {TILEPILOT_SOURCE_DIR "/scripts/export_reference.py"};
  for (const JudgedProgram& program : GetParam()) {
    const fs::path model =
        program.model.empty() ? model_of_seed(program.kernel, folder / (program.name + ".py")) : program.model;
    arguments.insert(arguments.end(), {model.string(), program.dtype, (folder / program.name).string()});
  }
  auto run = testing::run_python("tests/torch/export_models.py", arguments);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (const JudgedProgram& program : GetParam()) {
    SCOPED_TRACE(program.name);
    expect_verified(program, folder / program.name / "reference");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Programs, ::testing::ValuesIn(programs()));
INSTANTIATE_TEST_SUITE_P(Seeds, Programs, ::testing::ValuesIn(seeds()));

}  // namespace
}  // namespace tilepilot::eval
