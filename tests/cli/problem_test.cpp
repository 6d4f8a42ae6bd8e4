// `problem show`, `--scale`, and what is told before memory is taken.
#include <gmock/gmock.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Problem : public CommandLine {
 protected:
  // A model of `forward`, whose input is `input`.
  std::string write(const std::string& input, const std::string& forward) {
    const auto path = folder_ / "model.py";
    std::ofstream(path) << "import torch\n"
                           "rows, width = 512, 64\n"
                           "class Model(torch.nn.Module):\n"
                           "    def __init__(self, width):\n"
                           "        super().__init__()\n"
                           "        self.layer = torch.nn.Linear(width, 48)\n"
                           "    def forward(self, x):\n"
                           "        return "
                        << forward
                        << "\n"
                           "def get_inputs():\n"
                           "    return ["
                        << input
                        << "]\n"
                           "def get_init_inputs():\n"
                           "    return [width]\n";
    return path.string();
  }
};

TEST_F(Problem, ShowTellsCostsShortcutsAndDegeneracies) {
  auto file = write("torch.rand(rows, width)",
                    "self.layer(x).sum(1, keepdim=True) - self.layer(x).sum(1, keepdim=True).mean(1, keepdim=True)");
  auto result = tilepilot({"problem", "show", file, "--json", "--scale", "1/4", "--seed", "3"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  json report = json::parse(result.out);
  EXPECT_EQ(report["scale"], "1/4");
  EXPECT_THAT(report["inputs"][0]["shape"].get<std::vector<int>>(), ElementsAre(128, 16));
  EXPECT_EQ(report["product_flops"], 2 * 2.0 * 128 * 16 * 48);
  EXPECT_LT(report["product_flops_after_shortcuts"].get<double>(), report["product_flops"].get<double>() / 10);
  EXPECT_TRUE(report["ran"]);
  EXPECT_TRUE(report["is_degenerate"]) << report.dump(1);
  EXPECT_THAT(report["notes"].get<std::vector<std::string>>(), Contains(HasSubstr("at scale 1/4: rows 512 -> 128")));
  EXPECT_GT(report["memory"]["host"].get<int64_t>(), 0);
}

TEST_F(Problem, ShowOnAGpuThatIsNotHere) {
  auto file = write("torch.rand(rows, width)", "torch.relu(self.layer(x))");
  auto result = tilepilot({"problem", "show", file, "--graph-only", "--target", "cuda:sm_90a"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("aten::linear, aten::relu"), HasSubstr("2 kernels"), HasSubstr("NVIDIA H200"),
                                HasSubstr("float32[512, 64]")));
}

TEST_F(Problem, WhatCannotFitIsToldInNumbers) {
  auto file = write("torch.rand(2**17, width)", "(x @ x.t()).unsqueeze(0).expand(40, -1, -1).relu().sum()");
  auto result = tilepilot({"generate", file, "--attempts", "1"});
  EXPECT_EQ(result.exit_code, 3) << all(result);
  EXPECT_THAT(result.err, AllOf(HasSubstr("judging this model needs about"), HasSubstr("GB of memory,"),
                                HasSubstr("`--scale 1/4`")));
}

TEST_F(Problem, FailScale) {
  auto file = write("torch.rand(rows, width)", "self.layer(x)");
  auto result = tilepilot({"problem", "show", file, "--scale", "3"});
  EXPECT_EQ(result.exit_code, 2) << all(result);
  EXPECT_THAT(result.err, HasSubstr("`3` is no scale"));
}

}  // namespace
}  // namespace tilepilot
