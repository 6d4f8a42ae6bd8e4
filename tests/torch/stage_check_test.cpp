// Which kernel of a program with wrong values is the first to go wrong.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "eval/judge.h"
#include "eval/stage_text.h"
#include "eval/worker/truth/stage_match.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Nodes in a row, of which the last makes the output.
Graph chain(int nodes) {
  Graph graph;
  for (int i = 0; i < nodes; ++i) {
    graph.values.emplace_back();
    GraphNode node;
    node.op = "aten::op" + std::to_string(i + 1);
    node.outputs = {i};
    graph.nodes.push_back(node);
  }
  graph.outputs = GraphArgument{ValueRef{nodes - 1}};
  return graph;
}

class StageMatches : public ::testing::Test {
 protected:
  StageMatches() {
    at::manual_seed(7);
    given_ = at::randn({20, 50});
    for (int i = 0; i < 3; ++i) values_.push_back(at::randn({20, 50}));
  }
  // Of launches that each wrote one tensor.
  std::vector<StageCheck> checks(const std::vector<at::Tensor>& written) const {
    std::vector<WrittenByLaunch> launches;
    for (size_t i = 0; i < written.size(); ++i)
      launches.push_back({"k" + std::to_string(i + 1), static_cast<int>(10 * (i + 1)), {written[i]}});
    StageMatch match(launches);
    match.add_value(StageMatch::kGiven, given_);
    for (size_t i = 0; i < values_.size(); ++i) match.add_value(static_cast<int>(i), values_[i]);
    return match.checks(chain(3));
  }
  std::string text(const std::vector<at::Tensor>& written) const { return stages_text(checks(written)); }
  // With other numbers in the last rows.
  static at::Tensor with_wrong_rows(const at::Tensor& value, int64_t rows) {
    at::Tensor changed = value.clone();
    changed.narrow(0, value.size(0) - rows, rows).add_(100);
    return changed;
  }

  at::Tensor given_;
  std::vector<at::Tensor> values_;
};

TEST_F(StageMatches, TellTheFirstKernelThatIsWrong) {
  EXPECT_EQ(text({values_[0], with_wrong_rows(values_[1], 5), at::randn({20, 50})}),
            "kernel `k1` (line 10) writes what `aten::op1` (node 1) gives; kernel `k2` (line 20) comes nearest to "
            "`aten::op2` (node 2): 25 % of its elements are wrong, only the last 5 rows, off by about 100");
  EXPECT_THAT(text({values_[1].mul(2), values_[2].mul(3)}),
              AllOf(HasSubstr("kernel `k1` (line 10) comes nearest to `aten::op2` (node 2): "),
                    HasSubstr("ratio about 2"), Not(HasSubstr("k2"))));
}

TEST_F(StageMatches, CompareAcrossShapesAndTypes) {
  const auto found = checks({values_[0].to(at::kHalf).reshape({1000}), values_[1].reshape({50, 20}).mul(2)});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].right);
  EXPECT_EQ(found[1].node, 2);
  // Of as many elements, in another order.
  EXPECT_THAT(checks({values_[0].t().contiguous(), at::randn({20, 50})}), IsEmpty());
}

TEST_F(StageMatches, SayNothingOfKernelsThatStandForNoNode) {
  EXPECT_THAT(checks({at::randn({20, 50}), at::randn({20, 50})}), IsEmpty());
  EXPECT_THAT(checks({at::randn({7})}), IsEmpty());
  EXPECT_THAT(checks({}), IsEmpty());
  // One kernel: the outputs tell as much.
  EXPECT_THAT(checks({with_wrong_rows(values_[2], 5)}), IsEmpty());
}

TEST_F(StageMatches, PassOverScratchAndCopies) {
  // A layout of its own, an input, zeros: none of them is wrong.
  EXPECT_EQ(text({values_[0].t().contiguous(), values_[1], given_.clone(), at::zeros({20, 50}),
                  with_wrong_rows(values_[2], 1)}),
            "kernel `k2` (line 20) writes what `aten::op2` (node 2) gives; kernel `k5` (line 50) comes nearest to "
            "`aten::op3` (node 3): 5 % of its elements are wrong, only the last row, off by about 100");
  EXPECT_EQ(text({values_[0], at::randn({20, 50})}),
            "kernel `k1` (line 10) writes what `aten::op1` (node 1) gives; kernel `k2` (line 20) writes no value of "
            "the model, element for element");
  // The last one left its output as it was.
  EXPECT_THAT(text({values_[0], at::zeros({20, 50})}), HasSubstr("kernel `k2` (line 20) writes no value"));
}

TEST_F(StageMatches, TellWhereKernelsStopTooEarly) {
  EXPECT_THAT(text({values_[0], values_[1]}), AllOf(HasSubstr("`k2` (line 20) writes what `aten::op2` (node 2)"),
                                                    HasSubstr("is the last one"), Not(HasSubstr("k1"))));
  // Right to the last: the fault is in what nobody records.
  EXPECT_THAT(checks({values_[0], values_[2]}), IsEmpty());
}

TEST_F(StageMatches, HoldNumbersThatAreNone) {
  values_[1].index_put_({at::tensor(3, at::kLong)}, at::full({50}, NAN));
  EXPECT_THAT(text({values_[1], with_wrong_rows(values_[2], 5)}), HasSubstr("`aten::op2` (node 2) gives"));
  EXPECT_THAT(checks({values_[0], at::full({20, 50}, NAN)}).back().right, false);
}

const char* const kProgram = R"(import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def rows_softmax(M, N, dtype="float32"):
    @T.prim_func
    def first(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=32) as row:
            x = T.alloc_fragment((1, N), dtype)
            most = T.alloc_fragment((1,), dtype)
            total = T.alloc_fragment((1,), dtype)
            T.copy(X[row, 0], x)
            T.reduce_max(x, most, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = T.exp(x[i, j] - most[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = FIRST
            T.copy(x, Y[row, 0])

    return first


@tilelang.jit(out_idx=[-1])
def rows_scale(M, N, dtype="float32"):
    @T.prim_func
    def second(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(M, threads=32) as row:
            for j in T.Parallel(N):
                Y[row, j] = SECOND

    return second


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features) * 30)
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        shares = rows_softmax(x.shape[0], x.shape[1])(x)
        return FORWARD
)";

std::string with_part(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

struct Parts {
  std::string first = "x[i, j] / total[i]", second = "T.max(X[row, j] * W[j] + B[j], 0.0)",
              forward = "rows_scale(x.shape[0], x.shape[1])(shares, self.weight, self.bias)";
};

std::string program_of(const Parts& parts) {
  return with_part(with_part(with_part(kProgram, "FIRST", parts.first), "SECOND", parts.second), "FORWARD",
                   parts.forward);
}

class StagesOfPrograms : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    JudgeOptions options;
    options.worker = std::string(TILEPILOT_BINARY_DIR) + "/tilepilot-worker";
    options.trials = 2;
    options.cache = TILEPILOT_KERNEL_CACHE;
    auto opened = open_judge(testing::exported("tests/torch/models/staged_rows.py", options.dtype), options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    judge_ = *std::move(opened);
  }
  static void TearDownTestSuite() { judge_.reset(); }
  static Verdict check(const Parts& parts) { return judge_->check({.source = program_of(parts), .time = false}); }

  static std::unique_ptr<Judge> judge_;
};
std::unique_ptr<Judge> StagesOfPrograms::judge_;

TEST_F(StagesOfPrograms, NobodyAsksOfARightOne) {
  const Verdict verdict = check({});
  EXPECT_EQ(verdict.outcome, Outcome::verified) << to_json(verdict).dump(1);
  EXPECT_THAT(verdict.stages, IsEmpty());
}

TEST_F(StagesOfPrograms, NameTheSecondKernel) {
  const Verdict verdict =
      check({.second = "T.max(X[row, j] * W[j] + T.if_then_else(j < 90, B[j], B[j] + 500.0), 0.0)"});
  EXPECT_EQ(verdict.outcome, Outcome::wrong_values) << to_json(verdict).dump(1);
  ASSERT_EQ(verdict.stages.size(), 2u) << to_json(verdict).dump(1);
  EXPECT_TRUE(verdict.stages[0].right);
  EXPECT_EQ(verdict.stages[0].op, "aten::softmax");
  EXPECT_EQ(verdict.stages[0].line, 11);
  EXPECT_FALSE(verdict.stages[1].right);
  EXPECT_EQ(verdict.stages[1].op, "aten::relu");
  EXPECT_EQ(verdict.stages[1].line, 36);
  EXPECT_THAT(verdict.stages[1].pattern, HasSubstr("only the last 6 columns"));
  EXPECT_THAT(verdict.seconds.at("stages"), ::testing::Lt(3));
  // It survives the way to a store and back.
  const Verdict read = verdict_from_json(nlohmann::json::parse(to_json(verdict).dump()));
  EXPECT_EQ(stages_text(read.stages), stages_text(verdict.stages));
}

TEST_F(StagesOfPrograms, NameTheFirstKernel) {
  const Verdict verdict = check({.first = "x[i, j] / total[i] * 2.0"});
  EXPECT_EQ(verdict.outcome, Outcome::wrong_values) << to_json(verdict).dump(1);
  EXPECT_THAT(stages_text(verdict.stages),
              ContainsRegex("^kernel `first` .line 11. comes nearest to `aten::softmax` .node [0-9]+, line 14 of the "
                            "model.: .* % of its elements are wrong, .*ratio about 2$"));
}

TEST_F(StagesOfPrograms, TellOfOneKernelWhereItStops) {
  const Verdict stops = check({.forward = "shares * self.weight"});
  EXPECT_EQ(stops.outcome, Outcome::wrong_values) << to_json(stops).dump(1);
  EXPECT_THAT(stages_text(stops.stages),
              AllOf(HasSubstr("`first` (line 11) writes what `aten::softmax`"), HasSubstr("is the last one")));
  const Verdict wrong =
      check({.first = "x[i, j] / total[i] + 1.0", .forward = "torch.relu(shares * self.weight + self.bias)"});
  EXPECT_EQ(wrong.outcome, Outcome::wrong_values) << to_json(wrong).dump(1);
  EXPECT_THAT(wrong.stages, IsEmpty());
}

// What the second kernel makes of them are other numbers, so that the output does not show it.
TEST_F(StagesOfPrograms, TellOfElementsThatAKernelLeavesUnwritten) {
  std::string program = program_of({});
  program = with_part(program, "T.copy(x, Y[row, 0])", "T.copy(x[0, 0], Y[row, 0])");
  const Verdict verdict = judge_->check({.source = program, .time = false});
  EXPECT_EQ(verdict.outcome, Outcome::wrong_values) << to_json(verdict).dump(1);
  EXPECT_THAT(verdict.notes,
              ::testing::Contains(AllOf(HasSubstr("kernel `first` (line 11) leaves"), HasSubstr("nobody wrote"))));
}

TEST_F(StagesOfPrograms, SayNothingOfKernelsThatStandForNoNode) {
  const Verdict verdict = check({.first = "T.sin(x[i, j] * 7.0)", .second = "T.cos(X[row, j]) * W[j] * B[j]"});
  EXPECT_EQ(verdict.outcome, Outcome::wrong_values) << to_json(verdict).dump(1);
  EXPECT_THAT(stages_text(verdict.stages), IsEmpty());
}

}  // namespace
}  // namespace tilepilot::eval
