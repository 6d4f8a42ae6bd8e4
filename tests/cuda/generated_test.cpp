// Typical kernels as IR text: the CUDA code that comes of them is kept as golden files, compiles for both targets where
// NVRTC is found, and computes in the emulator what the interpreter does.
#include <fmt/format.h>

#include <cmath>

#include "compiler/ir/text/text.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

using interpret::Element;
using targets::gpu::Architecture;

constexpr std::pair<Architecture, const char*> kTargets[] = {{Architecture::sm_80, "sm_80"},
                                                             {Architecture::sm_90a, "sm_90a"}};

class GeneratedTest : public ::testing::TestWithParam<std::string> {
 protected:
  ir::Program program() const { return parse(read_text(tests_path("cpu/cases/" + GetParam() + ".ir"))); }
};

TEST_P(GeneratedTest, CompilesForBothTargets) {
  SKIP_WITHOUT_NVRTC();
  for (const auto& [architecture, name] : kTargets) {
    const auto code = targets::cuda::generate(program(), architecture);
    ASSERT_TRUE(code.ok()) << render(code.error());
    DiagnosticList warnings;
    const auto module = nvrtc().compile(targets::cuda::prelude() + code->source, name, warnings);
    EXPECT_TRUE(module.ok()) << render(module.error()) << code->source;
  }
}

// Sums may be taken in another order.
bool is_close(const Element& want, const Element& got) {
  if (!want.type.is_float()) return want.whole == got.whole;
  if (std::isnan(want.number) || want.number == got.number) return std::isnan(want.number) == std::isnan(got.number);
  const double tolerance = want.type.bits == 32 ? 2e-5 : want.type.bits == 64 ? 1e-13 : 2e-2;
  return std::fabs(want.number - got.number) <= tolerance * std::max(1.0, std::fabs(want.number));
}

struct Call {
  std::vector<Array> tensors;
  std::vector<runtime::Argument> arguments;

  explicit Call(const ir::Program& program) {
    for (const auto& parameter : program.parameters) {
      const auto* buffer = std::get_if<ir::Buffer>(&parameter);
      if (buffer == nullptr) continue;
      std::vector<int64_t> shape;
      for (const ir::Expr& extent : (*buffer)->shape) shape.push_back(ir::constant_int(extent).value_or(3));
      tensors.emplace_back((*buffer)->type, shape);
      randomize(tensors.back(), static_cast<uint32_t>(tensors.size()));
    }
    size_t next = 0;
    for (const auto& parameter : program.parameters)
      arguments.push_back(std::holds_alternative<ir::Buffer>(parameter) ? runtime::Argument(tensors[next++].view())
                                                                        : runtime::Argument(1e-3));
  }
  int64_t elements() const {
    int64_t count = 0;
    for (const Array& tensor : tensors) count += tensor.size();
    return count;
  }
};

TEST_P(GeneratedTest, ComputesWhatTheInterpreterDoes) {
  const ir::Program program = this->program();
  Call expected(program);
  if (expected.elements() > 300'000)
    GTEST_SKIP() << "interpreting " << expected.elements() << " elements takes minutes";
  const auto fault =
      interpret::run(program, to_interpret(expected.arguments), {&interpret::library_functions(), 0, 2'000'000'000});
  ASSERT_FALSE(fault) << fault->message;
  for (const auto& [architecture, name] : kTargets) {
    Call actual(program);
    EmulatedBatch batch(architecture);
    const auto added = batch.add(program);
    ASSERT_TRUE(added.ok()) << render(added.error());
    batch.compile(true);
    ASSERT_EQ(batch.run(0, actual.arguments), "") << name << batch.source(0);
    for (size_t t = 0; t < expected.tensors.size(); ++t)
      for (int64_t i = 0; i < expected.tensors[t].size(); ++i) {
        const ir::DType type = expected.tensors[t].type;
        const Element want = Element::load(expected.tensors[t].bytes.data() + i * type.bytes(), type);
        const Element got = Element::load(actual.tensors[t].bytes.data() + i * type.bytes(), type);
        ASSERT_TRUE(is_close(want, got)) << name << ", tensor " << t << ", element " << i << ": " << want.number << "/"
                                         << want.whole << ", got " << got.number << "/" << got.whole;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, GeneratedTest, ::testing::ValuesIn(stems_in("cpu/cases", ".ir")),
                         [](const auto& info) { return info.param; });

// Of some, the code itself.
class GeneratedCodeTest : public ::testing::TestWithParam<std::string> {};
TEST_P(GeneratedCodeTest, IsGolden) {
  const ir::Program program = parse(read_text(tests_path("cpu/cases/" + GetParam() + ".ir")));
  for (const auto& [architecture, name] : kTargets) {
    const auto code = targets::cuda::generate(program, architecture);
    ASSERT_TRUE(code.ok()) << render(code.error());
    expect_golden(fmt::format("cuda/golden/{}_{}.txt", GetParam(), name), code->source);
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, GeneratedCodeTest, ::testing::Values("attention", "gemm_half", "softmax_rows"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilepilot::testing
