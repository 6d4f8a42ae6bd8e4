// Models that are not plain functions of a few tensors: what `generate` makes of them.
#include <gmock/gmock.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/source/file.h"
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OddModels : public CommandLine {
 protected:
  // The author's first program is right.
  void expect_verified(const std::string& name) {
    auto result = tilepilot({"generate", model(name), "-o", "out.py", "--attempts", "1", "--trials", "2", "--json"});
    ASSERT_EQ(result.exit_code, 0) << all(result);
    const json verdict = json::parse(result.out)["verdict"];
    EXPECT_EQ(verdict["outcome"], "verified") << result.out;
    EXPECT_FALSE(verdict["given_inputs_only"]) << result.out;
  }
};

TEST_F(OddModels, KeepTheStructureOfInputsAndOutputs) {
  auto result = tilepilot({"generate", model("odd_structure"), "-o", "out.py", "--attempts", "1", "--trials", "2"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "out.py", program));
  EXPECT_THAT(program, AllOf(HasSubstr("def forward(self, batch, pair, scale)"), HasSubstr("batch[\"a\"]"),
                             HasSubstr("pair[1][0]"), HasSubstr("\"n\": 3")));
}

// The kernels are those of training; after `.eval()` the model's own operators run.
TEST_F(OddModels, FollowTheMode) {
  auto result = tilepilot({"generate", model("batch_norm"), "-o", "fast.py", "--attempts", "1", "--trials", "2"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(all(result), HasSubstr("training"));
  std::filesystem::copy(model("batch_norm"), folder_ / "slow.py");
  std::ofstream(folder_ / "script.py") << "import torch\n"
                                          "from fast import ModelNew\n"
                                          "from slow import Model\n"
                                          "ours, theirs = ModelNew(64), Model(64)\n"
                                          "x = torch.randn(256, 64) * 3 + 1\n"
                                          "for mode in (True, False):\n"
                                          "    ours.train(mode)\n"
                                          "    theirs.train(mode)\n"
                                          "    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-4)\n"
                                          "print(ours.training, ours.norm.running_mean.mean().item() > 0)\n";
  auto ran = tilepilot({"run", "script.py"});
  EXPECT_EQ(ran.exit_code, 0) << all(ran);
  EXPECT_EQ(ran.out, "False True\n");
}

// A recurrence, written out: its sums of products lie in kernels with the maps around them.
TEST_F(OddModels, SumProductsInKernels) {
  expect_verified("fast_weights");
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "out.py", program));
  EXPECT_THAT(program, AllOf(HasSubstr("T.reduce_sum("), Not(HasSubstr("bij,bi->bj")), HasSubstr("torch.matmul(")));
}

TEST_F(OddModels, DoManySmallOperatorsInOneKernel) {
  expect_verified("small_steps");
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "out.py", program));
  EXPECT_THAT(program, AllOf(HasSubstr("T.tanh("), Not(HasSubstr("torch.tanh"))));
}

// The kernels hold the numbers that were given; with other ones the model's own operators run.
TEST_F(OddModels, FollowNumbersAmongTheInputs) {
  auto result =
      tilepilot({"generate", model("times_a_number"), "-o", "fast.py", "--attempts", "1", "--trials", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json answer = json::parse(result.out);
  EXPECT_FALSE(answer["attempts"][0]["verdict"]["given_inputs_only"]) << result.out;
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "fast.py", program));
  EXPECT_THAT(program, HasSubstr("if factor != 2.5 or settings[\"offset\"] != 3 or not settings[\"shifts\"]:\n"
                                 "            return self.forward_as_written(x, factor, settings)"));
}

// A kernel writes them over those before, after what reads the old ones and before what reads the new ones. Counters
// are one operator's.
TEST_F(OddModels, KeepRunningStatisticsInTheirKernels) {
  expect_verified("running_statistics");
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "out.py", program));
  EXPECT_THAT(program, AllOf(HasSubstr("_value) * 0.3"), HasSubstr("torch._foreach_add_("),
                             HasSubstr("self.left.num_batches_tracked,")));
}

TEST_F(OddModels, ReadStatisticsBeforeTheyChange) { expect_verified("statistics_before"); }

TEST_F(OddModels, ReturnCopiesWhereTheModelDoes) { expect_verified("returned_copies"); }

TEST_F(OddModels, HoldNumbersThatAreNone) { expect_verified("not_a_number"); }

// What several calls read, once: some views copy.
TEST_F(OddModels, TakeSharedViewsOnce) {
  expect_verified("shared_views");
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "out.py", program));
  const std::string forward = program.substr(program.rfind("def forward("));
  EXPECT_NE(forward.find("transpose("), std::string::npos) << forward;
  EXPECT_EQ(forward.find("transpose("), forward.rfind("transpose(")) << forward;
  EXPECT_THAT(forward, AllOf(HasSubstr("both[0]"), HasSubstr("both[1]")));
}

// Values of a graph that are equal are one node of the author's; what changes one of them in place leaves the others.
TEST_F(OddModels, ChangeOneOfEqualValues) { expect_verified("equal_values"); }

// Tensors in attributes, buffers that are not saved, a literal of two axes, divisions by a number.
TEST_F(OddModels, HoldConstants) { expect_verified("constant_tables"); }

// What no kernel computes is one of PyTorch's operators, not the several that a kernel would be made of.
TEST_F(OddModels, LeaveSmallPartsToOneOperatorEach) {
  expect_verified("small_parts");
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "out.py", program));
  EXPECT_THAT(program, AllOf(HasSubstr("torch.layer_norm("), HasSubstr("F.gelu("), HasSubstr("self.linear.bias)"),
                             HasSubstr("tanh_softmax"), Not(HasSubstr("torch.rsqrt")), Not(HasSubstr("torch.erf"))));
}

TEST_F(OddModels, FailModelsThatEndTheProcess) {
  auto result = tilepilot({"generate", model("fail_ends_the_process"), "-o", "out.py"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("fail_ends_the_process.py:1"), HasSubstr("ended the process that exports it"),
                                Not(HasSubstr("--python"))));
}

TEST_F(OddModels, FailNumbersOfTensors) {
  auto result = tilepilot({"generate", model("fail_item"), "-o", "out.py"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("fail_item.py:7"), HasSubstr("makes a Python number of a tensor")));
}

}  // namespace
}  // namespace tilepilot
