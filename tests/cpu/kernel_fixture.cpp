#include "kernel_fixture.h"

#include <random>

#include "compiler/ir/visit.h"
#include "tests/rounds.h"

namespace tilepilot::testing {

Array::Array(ir::DType element, std::vector<int64_t> extents) : type(element), shape(std::move(extents)) {
  bytes.resize(static_cast<size_t>(size() * type.bytes()));
}

int64_t Array::size() const { return interpret::count(shape); }

runtime::TensorView Array::view() { return {bytes.data(), type, shape, interpret::contiguous(shape)}; }

ir::Program parse(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const int32_t file = sources.add("test.ir", text);
  auto program = ir::read_text(sources, file, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.items())
    ADD_FAILURE() << diagnostic.message << " at " << sources.text(diagnostic.span) << "\n" << text;
  return program ? *program : ir::Program{};
}

runtime::KernelBackend& backend() {
  static const auto shared = runtime::cpu_backend({"", TILEPILOT_KERNEL_CACHE, {"-ffp-contract=off"}});
  return *shared;
}

std::string render(const Diagnostic& diagnostic) {
  std::string text = std::string(info(diagnostic.kind).name) + ": " + diagnostic.message;
  for (const Note& note : diagnostic.notes) text += "\n" + note.message;
  return text;
}

std::shared_ptr<runtime::CompiledKernel> compile(const ir::Program& program) {
  DiagnosticList warnings;
  auto kernel = backend().compile(program, warnings);
  if (!kernel.ok()) {
    ADD_FAILURE() << render(kernel.error());
    return nullptr;
  }
  return *kernel;
}

void run(const ir::Program& program, const std::vector<runtime::Argument>& arguments) {
  const auto kernel = compile(program);
  if (kernel == nullptr) return;
  static const runtime::ParallelFor pool = runtime::thread_pool(2);
  const Status status = kernel->launch(arguments, pool, {});
  if (!status.ok()) ADD_FAILURE() << render(status.error());
}

std::vector<interpret::Argument> to_interpret(const std::vector<runtime::Argument>& arguments) {
  std::vector<interpret::Argument> result;
  const auto view = [](const runtime::TensorView& v) { return interpret::View{v.data, v.type, v.shape, v.strides}; };
  const auto scalar = [](auto value) { return value; };
  for (const runtime::Argument& argument : arguments)
    std::visit([&](const auto& a) { result.emplace_back(ir::overloaded{view, scalar}(a)); }, argument);
  return result;
}

std::vector<runtime::Argument> to_launch(const std::vector<interpret::Argument>& arguments) {
  std::vector<runtime::Argument> result;
  const auto view = [](const interpret::View& v) { return runtime::TensorView{v.data, v.type, v.shape, v.strides}; };
  const auto scalar = [](auto value) { return value; };
  for (const interpret::Argument& argument : arguments)
    std::visit([&](const auto& a) { result.emplace_back(ir::overloaded{view, scalar}(a)); }, argument);
  return result;
}

void randomize(Array& array, uint32_t seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < array.size(); ++i) {
    const double unit = static_cast<double>(random()) / 4294967296.0;
    const auto element = array.type.is_float()
                             ? interpret::Element::real(array.type, 4 * unit - 2)
                             : interpret::Element::integer(array.type, static_cast<int64_t>(unit * 9) - 4);
    element.store(array.bytes.data() + i * array.type.bytes());
  }
}

namespace {

void fill_whole(Array& array, uint32_t seed) {
  randomize(array, seed);
  if (!array.type.is_float()) return;
  for (int64_t i = 0; i < array.size(); ++i) {
    const auto value = static_cast<double>((i * 7 + seed * 3 + i / 5) % 5 - 2);
    interpret::Element::real(array.type, value).store(array.bytes.data() + i * array.type.bytes());
  }
}

}  // namespace

void expect_interpreted_result(const std::string& text, const std::vector<int64_t>& scalars) {
  const ir::Program program = parse(text);
  std::vector<Array> expected;
  for (const auto& parameter : program.parameters) {
    const auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (buffer == nullptr) continue;
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : (*buffer)->shape) shape.push_back(ir::constant_int(extent).value_or(0));
    expected.emplace_back((*buffer)->type, shape);
    fill_whole(expected.back(), static_cast<uint32_t>(expected.size()));
  }
  std::vector<Array> actual = expected;
  const auto bind = [&](std::vector<Array>& tensors) {
    std::vector<runtime::Argument> arguments;
    for (Array& tensor : tensors) arguments.emplace_back(tensor.view());
    for (const int64_t scalar : scalars) arguments.emplace_back(scalar);
    return arguments;
  };
  const auto fault =
      interpret::run(program, to_interpret(bind(expected)), {&interpret::library_functions(), 0, steps(100'000'000)});
  run(program, bind(actual));
  const bool is_sanitized = steps(400) != 400;
  if (is_sanitized && fault && fault->kind == interpret::FaultKind::budget_exceeded)
    GTEST_SKIP() << "interpreting so much takes the sanitizers minutes";
  ASSERT_FALSE(fault) << fault->message;
  for (size_t t = 0; t < expected.size(); ++t) EXPECT_EQ(expected[t].bytes, actual[t].bytes) << "tensor " << t;
}

}  // namespace tilepilot::testing
