// Every seed holds a model and the program that replaces it: what the corpus hands to authors has passed the judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> names;
  for (auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TILEPILOT_SOURCE_DIR) / "seeds"))
    if (entry.path().extension() == ".py") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class SeedCase : public CommandLine, public ::testing::WithParamInterface<std::string> {
 protected:
  // A seed up to its first kernel, without the imports that only kernels need: PyTorch runs that.
  std::string model_of(const std::filesystem::path& seed) const {
    const auto model = folder_ / "model.py";
    std::ifstream from(seed);
    std::ofstream to(model);
    for (std::string line; std::getline(from, line) && line.rfind("@tilelang", 0) != 0;)
      if (line.rfind("import tilelang", 0) != 0) to << line << "\n";
    return model.string();
  }
};

TEST_P(SeedCase, PassesTheJudge) {
  const auto seed = std::filesystem::path(TILEPILOT_SOURCE_DIR) / "seeds" / (GetParam() + ".py");
  auto result = tilepilot({"check", seed.string(), "-r", model_of(seed), "--no-timing"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, ::testing::HasSubstr("verified")) << all(result);
}

INSTANTIATE_TEST_SUITE_P(Files, SeedCase, ::testing::ValuesIn(seeds()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilepilot
