#include <cmath>

#include "compiler/ir/visit.h"
#include "interpreter.h"
#include "kernel_fixture.h"
#include "tests/ir/random_program.h"

namespace tilepilot::testing {
namespace {

std::vector<Array> tensors_for(const ir::Program& program, int64_t symbol, uint32_t seed) {
  std::vector<Array> tensors;
  for (const auto& parameter : program.parameters) {
    const auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (buffer == nullptr) continue;
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : (*buffer)->shape) shape.push_back(ir::constant_int(extent).value_or(symbol));
    // Strided tensors get room for twice their elements.
    if (!(*buffer)->strides.empty()) shape.back() *= 2;
    tensors.emplace_back((*buffer)->type, shape);
    randomize(tensors.back(), seed++);
  }
  return tensors;
}

std::vector<runtime::Argument> arguments_for(const ir::Program& program, std::vector<Array>& tensors) {
  std::vector<runtime::Argument> arguments;
  size_t next = 0;
  for (const auto& parameter : program.parameters) {
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) {
      runtime::TensorView view = tensors[next++].view();
      if (!(*buffer)->strides.empty()) {
        view.shape.back() /= 2;
        for (size_t axis = 0; axis < view.strides.size(); ++axis)
          view.strides[axis] = *ir::constant_int((*buffer)->strides[axis]);
      }
      arguments.emplace_back(view);
    } else if (std::get<ir::Var>(parameter)->type.is_float()) {
      arguments.emplace_back(0.75);
    } else {
      arguments.emplace_back(int64_t{5});
    }
  }
  return arguments;
}

// Sums of floats depend on their order, which is the target's choice: they become maxima, so that all else can be
// compared to the last bit.
class WithoutFloatSums : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* reduce = std::get_if<ir::Reduce>(&stmt->node);
    if (reduce == nullptr || !reduce->destination.buffer->type.is_float()) return rewrite_children(stmt);
    ir::Reduce exact = *reduce;
    if (exact.op == ir::ReduceOp::sum) exact.op = ir::ReduceOp::max;
    if (exact.op == ir::ReduceOp::abs_sum) exact.op = ir::ReduceOp::abs_max;
    return ir::make_stmt(exact, stmt->span);
  }
};

bool same(const Element& a, const Element& b) {
  if (!a.type.is_float()) return a.whole == b.whole;
  if (std::isnan(a.number) || std::isnan(b.number)) return std::isnan(a.number) == std::isnan(b.number);
  return a.number == b.number;
}

std::string text_of(const Element& element) {
  return element.type.is_float() ? std::to_string(element.number) : std::to_string(element.whole);
}

class RandomProgramTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomProgramTest, AgreesWithTheInterpreter) {
  const ir::Program program = WithoutFloatSums().rewrite(ir::testing::RandomProgram(GetParam()).program());
  constexpr int64_t kSymbol = 7;
  std::vector<Array> expected = tensors_for(program, kSymbol, GetParam());
  std::vector<Array> actual = tensors_for(program, kSymbol, GetParam());
  const auto expected_arguments = arguments_for(program, expected);
  Interpreter interpreter(program, expected_arguments);
  interpreter.run();
  if (interpreter.met_undefined()) GTEST_SKIP() << "a cast overflows";
  const auto kernel = compile(program);
  ASSERT_NE(kernel, nullptr);
  const runtime::ParallelFor in_order = [](int64_t count, const auto& body) { body(0, count); };
  const Status status = kernel->launch(arguments_for(program, actual), in_order, {});
  ASSERT_TRUE(status.ok()) << render(status.error());
  for (size_t t = 0; t < expected.size(); ++t)
    for (int64_t i = 0; i < expected[t].size(); ++i) {
      const Element want = Element::load(expected[t].bytes.data(), expected[t].type, i);
      const Element got = Element::load(actual[t].bytes.data(), actual[t].type, i);
      ASSERT_TRUE(same(want, got)) << "tensor " << t << ", element " << i << ": expected " << text_of(want) << ", got "
                                   << text_of(got) << "\n"
                                   << ir::to_text(program) << kernel->source();
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgramTest, ::testing::Range(0u, 48u));

}  // namespace
}  // namespace tilepilot::testing
