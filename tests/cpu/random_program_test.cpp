// Random programs compute to the last bit what the interpreter does.
#include "tests/ir/random_program.h"
#include "kernel_fixture.h"
#include "prelude_functions.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using ir::testing::RandomArguments;

class RandomProgramTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomProgramTest, AgreesWithTheInterpreter) {
  const ir::Program program = ir::testing::RandomProgram(GetParam()).program();
  const RandomArguments expected(program, GetParam()), actual(program, GetParam());
  interpret::Options options;
  options.functions = &prelude_functions();
  const auto fault = interpret::run(program, expected.values(), options);
  ASSERT_FALSE(fault) << fault->message << "\n" << ir::to_text(program);
  const auto kernel = compile(program);
  ASSERT_NE(kernel, nullptr) << ir::to_text(program);
  const runtime::ParallelFor in_order = [](int64_t count, const auto& body) { body(0, count); };
  const Status status = kernel->launch(to_launch(actual.values()), in_order, {});
  ASSERT_TRUE(status.ok()) << render(status.error());
  ASSERT_EQ(first_difference(expected, actual), "") << ir::to_text(program) << kernel->source();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgramTest, ::testing::Range(0u, 48u));

}  // namespace
}  // namespace tilepilot::testing
