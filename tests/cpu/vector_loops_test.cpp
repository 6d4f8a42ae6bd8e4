// Loops that become vector code although their iterations share a variable, an element or a condition.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string kernel_with(const std::string& body) {
  return "program f(x: float32[20, 64], w: float32[9], l: int32[64], y: float32[20, 64], s: float32[20], n: int32[4]) {"
         "\n  kernel bx in 20 threads 32 {\n    local acc: float32[1]\n    local part: float32[3]\n    fragment all: "
         "float32[1]\n    fragment some: float32[4]\n" +
         body + "  }\n}\n";
}

struct VectorCase {
  const char* name;
  const char* body;
  std::vector<const char*> parts;  // of the generated code
};

std::string code_of(const VectorCase& given) {
  const auto lowered = passes::run_pipeline(parse(kernel_with(given.body)));
  EXPECT_TRUE(lowered.ok());
  auto code = targets::cpu::generate(*lowered);
  EXPECT_TRUE(code.ok());
  EXPECT_TRUE(code->scalar_code.at(0).empty());
  return code->source;
}

const VectorCase kVectorCases[] = {
    {"VariableOfAnIteration",
     "    parallel j in 56 {\n      acc[0] = 0.0\n      serial k in 9 { acc[0] = acc[0] + x[bx, j + k] * w[k] }\n      "
     "y[bx, j] = acc[0]\n    }\n",
     {"#pragma omp simd", "own_acc"}},
    {"VariableThatAConditionChanges",
     "    parallel j in 60 {\n      acc[0] = x[bx, j]\n      serial k in 4 {\n        if x[bx, j + k] > acc[0] { "
     "acc[0] "
     "= x[bx, j + k] }\n      }\n      y[bx, j] = acc[0]\n    }\n",
     {"#pragma omp simd", "own_acc"}},
    {"ArrayOfAnIteration",
     "    parallel j in 60 {\n      serial k in 3 { part[k] = x[bx, j + k] * w[k] }\n      y[bx, j] = part[0] + "
     "part[1] "
     "* part[2]\n    }\n",
     {"#pragma omp simd", "own_part"}},
    {"ArrayWithoutALoop",
     "    parallel j in 64 {\n      part[0] = x[bx, j]\n      part[2] = part[0] * 2.0\n      y[bx, j] = part[0] + "
     "part[2]\n    }\n",
     {"#pragma omp simd", "float part[3];"}},
    {"ConditionThatLoads",
     "    parallel j in 64 {\n      y[bx, j] = select(j != bx and l[j] == l[bx], x[bx, j], 0.0)\n    }\n",
     {"#pragma omp simd", "(j != bx) & (l[j] == l[bx])"}},
    {"SomeConditionThatLoads",
     "    parallel j in 64 {\n      y[bx, j] = select(j == bx or l[j] != l[bx] or l[0] == j, x[bx, j], 0.0)\n    }\n",
     {"#pragma omp simd", "(j == bx) | (l[j] != l[bx]) | (l[0] == int32_t(j))"}},
    {"Sum",
     "    all[0] = 3.0\n    parallel j in 64 { all[0] = all[0] + x[bx, j] * w[1] }\n    s[bx] = all[0]\n",
     {"#pragma omp simd reduction(+: all_all)"}},
    {"DifferenceBehindAGuard",
     "    all[0] = 3.0\n    parallel j in 64 {\n      if l[j] > 0 { all[0] = all[0] - x[bx, j] }\n    }\n    s[bx] = "
     "all[0]\n",
     {"#pragma omp simd reduction(+: all_all)"}},
    {"SumInATensor", "    parallel j in 64 { s[bx] = s[bx] + x[bx, j] }\n", {"#pragma omp simd reduction(+: s_all)"}},
    {"Extremes",
     "    all[0] = 0.0\n    some[2] = 0.0\n    parallel j in 64 {\n      all[0] = max(all[0], x[bx, j])\n      some[2] "
     "= "
     "min(x[bx, j], some[2])\n    }\n    s[bx] = all[0] + some[2] * 16.0\n",
     {"reduction(max: all_all) reduction(min: some_all)"}},
    {"AtomicSum",
     "    all[0] = 1.0\n    parallel j in 64 { atomic add all[0], x[bx, j] }\n    s[bx] = all[0]\n",
     {"#pragma omp simd reduction(+: all_all)", "plain_update<add_update>"}},
    {"AtomicSumOfAllBlocks",
     "    parallel j in 64 { atomic add n[1], l[j] }\n",
     {"#pragma omp simd reduction(+: n_all)", "atomic_update<add_update>"}},
    {"SumsOfRows",
     "    fill some = 0.0\n    parallel i, j in 4, 64 { some[i] = some[i] + x[i, j] }\n    s[bx] = some[0] + some[3]\n",
     {"#pragma omp simd reduction(+: some_all)"}},
    {"VariableThatGathers",
     "    acc[0] = 2.0\n    parallel j in 64 {\n      y[bx, j] = x[bx, j] * 2.0\n      acc[0] = acc[0] + x[bx, j]\n    "
     "}\n    s[bx] = acc[0]\n",
     {"#pragma omp simd reduction(+: acc_all)"}},
    {"SumOfAVectorizedLoop",
     "    acc[0] = 2.0\n    vectorized j in 64 { acc[0] = acc[0] + x[bx, j] }\n    s[bx] = acc[0]\n",
     {"#pragma omp simd reduction(+: acc_all)"}},
    {"GuardInAVectorizedLoop",
     "    serial k in 4 {\n      vectorized j in 64 {\n        if j >= k { y[bx, j] = y[bx, j] + x[bx, j - k] }\n      "
     "}\n    }\n",
     {"#pragma omp simd"}},
};

class VectorLoops : public ::testing::TestWithParam<VectorCase> {};

TEST_P(VectorLoops, AreVectorCode) {
  const std::string code = code_of(GetParam());
  for (const char* part : GetParam().parts) EXPECT_THAT(code, HasSubstr(part));
}

TEST_P(VectorLoops, ComputeWhatTheInterpreterDoes) { expect_interpreted_result(kernel_with(GetParam().body), {}); }

INSTANTIATE_TEST_SUITE_P(Kernels, VectorLoops, ::testing::ValuesIn(kVectorCases),
                         [](const auto& test) { return test.param.name; });

// What must stay as it is.
const VectorCase kCasesInOrder[] = {
    {"LoadThatNeedsItsGuard",
     "    parallel j in 64 {\n      y[bx, j] = select(j > 0 and l[j - 1] == l[bx], x[bx, j], 0.0)\n    }\n",
     {"j > 0 && "}},
    {"RunningSum",
     "    acc[0] = 0.0\n    parallel j in 64 {\n      acc[0] = acc[0] + x[bx, j]\n      y[bx, j] = acc[0]\n    }\n",
     {"acc[0] = acc[0] + x["}},
    {"RecurrenceInAVectorizedLoop",
     "    vectorized j in 63 { y[bx, j + 1] = y[bx, j] + x[bx, j] }\n",
     {"for (int64_t j = 0"}},
    {"SumInOrder", "    serial j in 64 { s[bx] = s[bx] + x[bx, j] }\n", {"s[bx] = s[bx] + x["}},
    {"MaximumBehindAGuard",
     "    all[0] = 0.0\n    parallel j in 64 {\n      if l[j] > 0 { all[0] = max(all[0], x[bx, j]) }\n    }\n    s[bx] "
     "= "
     "all[0]\n",
     {"all[0] = max_of"}},
    {"ElementThatIsReadMeanwhile",
     "    all[0] = 0.0\n    parallel j in 64 {\n      all[0] = all[0] + x[bx, j]\n      y[bx, j] = all[0]\n    }\n",
     {"all[0] = all[0] + x["}},
};

class OtherLoops : public ::testing::TestWithParam<VectorCase> {};

TEST_P(OtherLoops, AreDoneInOrder) {
  const std::string text = kernel_with(GetParam().body);
  const auto lowered = passes::run_pipeline(parse(text));
  ASSERT_TRUE(lowered.ok());
  auto code = targets::cpu::generate(*lowered);
  ASSERT_TRUE(code.ok());
  EXPECT_THAT(code->source, Not(HasSubstr("reduction(")));
  for (const char* part : GetParam().parts) EXPECT_THAT(code->source, HasSubstr(part));
  expect_interpreted_result(text, {});
}

INSTANTIATE_TEST_SUITE_P(Kernels, OtherLoops, ::testing::ValuesIn(kCasesInOrder),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tilepilot::testing
