#include "tests/cuda/launched.h"

#include "compiler/targets/cuda/explain.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {

Launched launched(const std::string& text, targets::gpu::Architecture architecture) {
  const ir::Program program = parse(text);
  Launched result;
  EmulatedBatch batch(architecture);
  const auto added = batch.add(program);
  EXPECT_TRUE(added.ok()) << (added.ok() ? "" : added.error().message);
  batch.compile();
  if (!added.ok() || ::testing::Test::HasFatalFailure()) return result;
  const ir::testing::RandomArguments expected(program, 1), actual(program, 1);
  interpret::Options options;
  options.functions = &prelude_functions();
  const auto fault = interpret::run(program, expected.values(), options);
  EXPECT_FALSE(fault);
  std::string wrong = batch.run(0, to_launch(actual.values()));
  if (wrong.empty()) wrong = first_difference(expected, actual);
  EXPECT_EQ(wrong, "") << batch.source(0);
  result.counters = batch.counters();
  result.source = batch.source(0);
  SourceMap sources;
  sources.add("kernel.ir", text);
  const auto explained = targets::cuda::explanation(program, architecture, sources);
  if (explained.ok()) result.explanation = *explained;
  return result;
}

}  // namespace tilepilot::testing
