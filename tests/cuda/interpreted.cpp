#include "tests/cuda/interpreted.h"

#include <random>

#include "compiler/ir/text/text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/targets/cuda/explain.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {

using ir::testing::RandomArguments;
using targets::gpu::Architecture;

std::string explained(const std::string& text, Architecture architecture) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const auto program = ir::read_text(sources, sources.add("program.ir", text), diagnostics);
  EXPECT_TRUE(program.has_value()) << text;
  return program ? *targets::cuda::explanation(*program, architecture, sources) : "";
}

Outcome outcome(const std::string& text, Architecture architecture) {
  const ir::Program program = parse(text);
  const auto explicit_program = passes::explicit_threads(program);
  Outcome result;
  EmulatedBatch batch(architecture);
  const auto added = batch.add(program);
  if (!added.ok() || !explicit_program.ok()) {
    result.wrong = added.ok() ? explicit_program.error().message : added.error().message;
    return result;
  }
  result.source = batch.source(0);
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return result;
  const RandomArguments expected(program, 1), actual(program, 1);
  interpret::Options options;
  options.functions = &prelude_functions();
  options.print = [&](const std::string& line) { result.expected_print += line; };
  const auto fault = interpret::run(*explicit_program, expected.values(), options);
  result.wrong = batch.run(0, to_launch(actual.values()));
  result.printed = batch.printed();
  if (fault) {
    EXPECT_NE(result.wrong, "") << "only the interpreter says: " << fault->message;
    EXPECT_NE(fault->message.find(result.wrong), std::string::npos) << fault->message;
    return result;
  }
  if (result.wrong.empty()) result.wrong = first_difference(expected, actual);
  return result;
}

void make_whole(const RandomArguments& arguments) {
  std::mt19937 random(1);
  for (const interpret::Argument& argument : arguments.values()) {
    const auto* view = std::get_if<interpret::View>(&argument);
    if (view == nullptr || !view->type.is_float()) continue;
    const interpret::Memory memory{view->type, view->shape, view->strides, static_cast<std::byte*>(view->data),
                                   nullptr,    true};
    interpret::each(view->shape, [&](const interpret::Indices& at) {
      memory.write(*memory.place(at), interpret::Element::real(view->type, static_cast<double>(random() % 5) - 2));
    });
  }
}

void expect_agreement(EmulatedBatch& batch, size_t number, const ir::Program& reference, const std::string& name) {
  const RandomArguments expected(reference, 1), actual(reference, 1);
  interpret::Options options;
  options.functions = &prelude_functions();
  const auto explicit_program = passes::explicit_threads(reference);
  ASSERT_TRUE(explicit_program.ok()) << name << ": " << explicit_program.error().message;
  const auto fault = interpret::run(*explicit_program, expected.values(), options);
  ASSERT_FALSE(fault) << name << ": " << fault->message;
  EXPECT_EQ(batch.run(number, to_launch(actual.values())), "") << name << "\n" << batch.source(number);
  EXPECT_EQ(first_difference(expected, actual), "") << name << "\n" << batch.source(number);
}

std::string expect_interpreted(const std::string& text, const std::vector<Architecture>& architectures) {
  Outcome result;
  for (const Architecture architecture : architectures) {
    result = outcome(text, architecture);
    EXPECT_EQ(result.wrong, "") << result.source;
  }
  return result.source;
}

}  // namespace tilepilot::testing
