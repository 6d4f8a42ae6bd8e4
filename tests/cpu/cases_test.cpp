// Each case is a typical kernel as IR text: its generated code is kept as a golden file, and what it computes is
// compared with the interpreter's results.
#include <cmath>

#include "compiler/ir/verify/verify.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"
#include "tests/golden.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

class CaseTest : public ::testing::TestWithParam<std::string> {
 protected:
  ir::Program program() const { return parse(read_text(tests_path("cpu/cases/" + GetParam() + ".ir"))); }
};

std::vector<Array> random_tensors(const ir::Program& program, int64_t symbol) {
  std::vector<Array> tensors;
  for (const auto& parameter : program.parameters) {
    const auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (buffer == nullptr) continue;
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : (*buffer)->shape) shape.push_back(ir::constant_int(extent).value_or(symbol));
    tensors.emplace_back((*buffer)->type, shape);
    randomize(tensors.back(), static_cast<uint32_t>(tensors.size()));
  }
  return tensors;
}

std::vector<runtime::Argument> bind(const ir::Program& program, std::vector<Array>& tensors) {
  std::vector<runtime::Argument> arguments;
  size_t next = 0;
  for (const auto& parameter : program.parameters) {
    if (std::holds_alternative<ir::Buffer>(parameter))
      arguments.emplace_back(tensors[next++].view());
    else
      arguments.emplace_back(1e-3);
  }
  return arguments;
}

const interpret::Options kPatient{&interpret::library_functions(), 0, 2'000'000'000};

// Sums may be taken in another order: a few units in the last place of their largest operand.
double tolerance(ir::DType type) {
  return type.bits == 64 ? 1e-13 : type.bits == 32 ? 2e-5 : type == ir::kFloat16 ? 4e-3 : 3e-2;
}

using interpret::Element;

Element element_of(const Array& array, int64_t i) {
  return Element::load(array.bytes.data() + i * array.type.bytes(), array.type);
}

bool close(const Element& want, const Element& got) {
  if (!want.type.is_float()) return want.whole == got.whole;
  if (std::isnan(want.number)) return std::isnan(got.number);
  if (want.number == got.number) return true;
  return std::fabs(want.number - got.number) <= tolerance(want.type) * std::max(1.0, std::fabs(want.number));
}

TEST_P(CaseTest, GeneratedCode) {
  const auto code = targets::cpu::generate(program());
  ASSERT_TRUE(code.ok()) << render(code.error());
  expect_golden("cpu/golden/" + GetParam() + ".txt", code->source);
}

TEST_P(CaseTest, ComputesWhatTheInterpreterDoes) {
#ifdef TILEPILOT_SANITIZED
  const bool large = GetParam().starts_with("streamed") || GetParam() == "gemm_weights";
  if (large) GTEST_SKIP() << "interpreting millions of elements takes the sanitizers minutes";
#endif
  const ir::Program program = this->program();
  DiagnosticList diagnostics;
  ASSERT_TRUE(ir::verify(program, diagnostics)) << diagnostics.items()[0].message;
  for (const int64_t symbol : {3, rounds(600)}) {
    if (symbol != 3 && (program.symbols.empty() || GetParam() == "gemm_batched")) continue;
    std::vector<Array> expected = random_tensors(program, symbol), actual = random_tensors(program, symbol);
    const bool large = std::any_of(expected.begin(), expected.end(), [](const Array& a) { return a.size() > 100'000; });
    const auto interpret = large || rounds(2) == 1 ? interpret::run : interpret::run_twice;
    const auto fault = interpret(program, to_interpret(bind(program, expected)), kPatient);
    ASSERT_FALSE(fault) << fault->message;
    run(program, bind(program, actual));
    for (size_t t = 0; t < expected.size(); ++t)
      for (int64_t i = 0; i < expected[t].size(); ++i) {
        const Element want = element_of(expected[t], i), got = element_of(actual[t], i);
        ASSERT_TRUE(close(want, got)) << "tensor " << t << ", element " << i << ": expected " << want.number << "/"
                                      << want.whole << ", got " << got.number << "/" << got.whole;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CaseTest, ::testing::ValuesIn(stems_in("cpu/cases", ".ir")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilepilot::testing
