// Random programs, those with threads among them: the interpreter finds no race, and every pass keeps their meaning.
#include <fmt/ranges.h>

#include <set>

#include "compiler/ir/visit.h"
#include "compiler/passes/pipeline.h"
#include "same_meaning.h"
#include "tests/ir/random_program.h"
#include "tests/rounds.h"

namespace tilepilot::ir::testing {
namespace {

// Of what ends within so few steps as under the sanitizers.
constexpr int kFinished = steps(2000) == 2000 ? 200 : 1, kCompared = steps(2000) == 2000 ? 600 : 2;

Program random_program(int seed) {
  return with_held_as_own(
      RandomProgram(uint32_t(seed), {4, 3, seed % 3 != 0, false, seed % 2 == 1, seed % 4 > 1}).program());
}

TEST(RandomProgramTest, OrderDoesNotShow) {
  int finished = 0;
  for (int seed = 0; seed < rounds(300); ++seed) {
    const Program program = random_program(seed);
    const RandomArguments arguments(program, uint32_t(seed));
    interpret::Options options;
    options.steps = steps(2'000'000);
    const auto fault = interpret::run_twice(program, arguments.values(), options);
    if (fault && fault->kind == interpret::FaultKind::budget_exceeded) continue;
    ASSERT_FALSE(fault) << "seed " << seed << ": " << to_string(fault->kind) << ": " << fault->message << "\n"
                        << to_text(program);
    ++finished;
  }
  EXPECT_GT(finished, kFinished);
}

TEST(PipelineMeaningTest, EveryPassKeepsIt) {
  int compared = 0, refused = 0;
  std::set<std::string> reasons;
  for (int seed = 0; seed < rounds(300); ++seed) {
    Program program = random_program(seed);
    const Original original(program, uint32_t(seed), steps(2'000'000));
    for (const passes::Pass& pass : passes::pipeline()) {
      auto next = pass.run(program);
      if (!next.ok()) {
        ++refused;
        reasons.insert(next.error().message);
        break;
      }
      if (same_nodes(program, *next)) continue;
      DiagnosticList diagnostics;
      ASSERT_TRUE(verify(*next, diagnostics))
          << "seed " << seed << ", " << pass.name << ": " << diagnostics.items().front().message << "\n"
          << to_text(*next);
      const Meaning meaning = original.compare(*next);
      ASSERT_NE(meaning, Meaning::different) << "seed " << seed << ", " << pass.name << "\n"
                                             << to_text(program) << to_text(*next);
      compared += meaning == Meaning::same;
      program = *std::move(next);
    }
  }
  EXPECT_GT(compared, kCompared);
  EXPECT_LT(refused, rounds(30)) << fmt::format("{}", fmt::join(reasons, "\n"));
}

}  // namespace
}  // namespace tilepilot::ir::testing
