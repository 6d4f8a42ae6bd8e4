// Generated CUDA code in the emulator computes what the interpreter does, and is free of races, reads of what has no
// value, and barriers that not all threads reach: typical kernels, and random programs.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/golden.h"
#include "tests/ir/random_arguments.h"
#include "tests/ir/random_program.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

using ir::testing::RandomArguments;
using targets::cuda::Architecture;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

TEST(EmulatedPrograms, AgreeWithTheInterpreter) {
  const int count = from_environment("TILEPILOT_ROUNDS", rounds(20));
  const int first = from_environment("TILEPILOT_FIRST_SEED", 0);
  int compared = 0, refused = 0, endless = 0;
  for (int start = 0; start < count; start += 20) {
    EmulatedBatch batch(start / 20 % 2 == 0 ? Architecture::sm_80 : Architecture::sm_90a);
    std::vector<std::pair<uint32_t, ir::Program>> programs;
    for (int k = start; k < std::min(start + 20, count); ++k) {
      const auto seed = static_cast<uint32_t>(first + k);
      const ir::Program program = ir::testing::RandomProgram(seed, {4, 3, seed % 3 != 0}).program();
      const auto added = batch.add(program);
      if (added.ok())
        programs.emplace_back(seed, program);
      else if (std::getenv("TILEPILOT_TELL") != nullptr)
        fmt::print("{}: {}\n", seed, added.error().message);
      refused += !added.ok();
    }
    batch.compile();
    if (::testing::Test::HasFatalFailure()) return;
    for (size_t k = 0; k < programs.size(); ++k) {
      const auto& [seed, program] = programs[k];
      const RandomArguments expected(program, seed), actual(program, seed);
      interpret::Options options;
      options.functions = &prelude_functions();
      options.steps = 200'000;
      const auto fault = interpret::run(program, expected.values(), options);
      if (fault) {
        endless += fault->kind == interpret::FaultKind::budget_exceeded;
        continue;
      }
      const std::string wrong = batch.run(k, to_launch(actual.values()));
      EXPECT_EQ(wrong, "") << "seed " << seed << "\n" << ir::to_text(program) << batch.source(k);
      if (!wrong.empty()) continue;
      EXPECT_EQ(first_difference(expected, actual), "") << "seed " << seed << "\n"
                                                        << ir::to_text(program) << batch.source(k);
      ++compared;
    }
  }
  fmt::print("{} programs: {} compared, {} too long, {} refused\n", count, compared, endless, refused);
}

}  // namespace
}  // namespace tilepilot::testing
