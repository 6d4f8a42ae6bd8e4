// The programs that the builtin author writes for the examples, against golden files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "agent/builtin/builtin_author.h"
#include "compiler/syntax/parser.h"
#include "tests/golden.h"

namespace tilepilot::agent {
namespace {

std::filesystem::path folder() { return tilepilot::testing::tests_path("agent"); }

std::vector<std::string> reference_names() {
  std::vector<std::string> names;
  for (auto& entry : std::filesystem::directory_iterator(folder() / "references"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class BuiltinPrograms : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    // The planner needs no weights, so they are not stored; the loader wants the file to be there.
    // Other tests of the same model run at the same time.
    auto copy = std::filesystem::path(::testing::TempDir()) / fmt::format("builtin_{}_{}", GetParam(), getpid());
    std::filesystem::create_directories(copy);
    std::filesystem::copy(folder() / "references" / GetParam() / "reference.json", copy / "reference.json",
                          std::filesystem::copy_options::overwrite_existing);
    std::ofstream(copy / "weights.safetensors");
    auto loaded = eval::load_reference(copy);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    reference_ = std::move(*loaded);
    std::filesystem::remove_all(copy);
  }
  std::string first_program(const std::string& target = "cpu") {
    auto candidate = builtin_author(reference_, {.target = target})->next({});
    if (!candidate.ok()) return "error: " + candidate.error().message;
    return *candidate ? (*candidate)->source : "nothing to propose";
  }
  void expect_second(const std::string& target, const std::string& suffix) {
    auto author = builtin_author(reference_, {.target = target});
    auto first = author->next({});
    ASSERT_TRUE(first.ok() && *first);
    Attempt attempt{**first, {}};
    attempt.verdict.outcome = eval::Outcome::verified;
    auto second = author->next({attempt});
    ASSERT_TRUE(second.ok()) << second.error().message;
    if (!*second || (*second)->source.find("T.gemm") == std::string::npos) return;
    tilepilot::testing::expect_golden("agent/golden/" + GetParam() + suffix, (*second)->source);
  }

  eval::Reference reference_;
};

TEST_P(BuiltinPrograms, MatchGolden) {
  tilepilot::testing::expect_golden("agent/golden/" + GetParam() + ".py", first_program());
}

TEST_P(BuiltinPrograms, ForAGpuMatchGolden) {
  tilepilot::testing::expect_golden("agent/golden/" + GetParam() + ".gpu.py", first_program("cuda:sm_90a"));
}

// What comes second when the first works: products inside kernels, on a processor where they are shallow enough.
TEST_P(BuiltinPrograms, SecondMatchesGolden) { expect_second("cpu", ".products.py"); }
TEST_P(BuiltinPrograms, SecondForAGpuMatchesGolden) { expect_second("cuda:sm_90a", ".gpu.products.py"); }

TEST_P(BuiltinPrograms, Parse) {
  SourceMap sources;
  DiagnosticList diagnostics;
  int32_t file = sources.add("candidate.py", first_program());
  EXPECT_TRUE(syntax::parse(sources, file, diagnostics));
  EXPECT_FALSE(diagnostics.has_errors());
}

TEST_P(BuiltinPrograms, AreDeterministic) { EXPECT_EQ(first_program(), first_program()); }

// A kernel that fails is left to PyTorch; when none is left there is nothing more to propose.
TEST_P(BuiltinPrograms, GiveUpFailingKernelsOneByOne) {
  auto author = builtin_author(reference_, {.candidates = 100});
  std::vector<Attempt> history;
  std::set<std::string> seen;
  for (;;) {
    auto candidate = author->next(history);
    ASSERT_TRUE(candidate.ok()) << candidate.error().message;
    if (!*candidate) break;
    EXPECT_TRUE(seen.insert((*candidate)->source).second) << "proposed twice";
    history.push_back({**candidate, {}});
    history.back().verdict.outcome = eval::Outcome::wrong_values;
    ASSERT_LT(history.size(), 20u);
  }
  EXPECT_GE(history.size(), 1u);
}

TEST_P(BuiltinPrograms, VaryWhatWorksAFewTimes) {
  auto author = builtin_author(reference_);
  std::vector<Attempt> history;
  while (history.size() < 20) {
    auto candidate = author->next(history);
    ASSERT_TRUE(candidate.ok()) << candidate.error().message;
    if (!*candidate) break;
    history.push_back({**candidate, {}});
    history.back().verdict.outcome = eval::Outcome::verified;
  }
  EXPECT_LE(history.size(), 5u);
}

// A reference of one product, without anything to fuse with it.
eval::Reference bare_product() {
  eval::Reference reference;
  reference.model_path = "product.py";
  reference.model_source =
      "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def forward(self, a, b):\n        return a "
      "@ b\n";
  using Kind = eval::GraphValue::Kind;
  reference.forward.values = {
      {.kind = Kind::input, .name = "a", .dtype = "float32", .shape = {256, 128}, .strides = {128, 1}},
      {.kind = Kind::input, .name = "b", .dtype = "float32", .shape = {128, 512}, .strides = {512, 1}},
      {.kind = Kind::node, .name = "y", .dtype = "float32", .shape = {256, 512}, .strides = {512, 1}}};
  reference.forward.inputs = {0, 1};
  reference.forward.nodes = {
      {.op = "aten::matmul", .args = {{eval::ValueRef{0}}, {eval::ValueRef{1}}}, .kwargs = {}, .outputs = {2}}};
  reference.forward.outputs = {eval::ValueRef{2}};
  return reference;
}

TEST(BuiltinAuthor, ComputesABareProduct) {
  auto candidate = builtin_author(bare_product())->next({});
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  ASSERT_TRUE(*candidate);
  EXPECT_NE((*candidate)->source.find("T.gemm"), std::string::npos);
}

TEST(BuiltinAuthor, ComputesABareBatchedProduct) {
  eval::Reference reference = bare_product();
  for (auto& value : reference.forward.values) {
    value.strides.insert(value.strides.begin(), value.shape[0] * value.shape[1]);
    value.shape.insert(value.shape.begin(), 4);
  }
  reference.forward.nodes[0].op = "aten::bmm";
  auto candidate = builtin_author(reference)->next({});
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  ASSERT_TRUE(*candidate);
  EXPECT_NE((*candidate)->source.find("a: T.Tensor((B, M, K), dtype)"), std::string::npos) << (*candidate)->source;
}

INSTANTIATE_TEST_SUITE_P(Examples, BuiltinPrograms, ::testing::ValuesIn(reference_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilepilot::agent
