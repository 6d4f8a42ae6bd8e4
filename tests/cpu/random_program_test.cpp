// Random programs compute to the last bit what the interpreter does. Many are compiled as one C++ file, since compiling
// costs the same for one kernel as for several. TILEPILOT_ROUNDS asks for another number of programs,
// TILEPILOT_FIRST_SEED for others, TILEPILOT_OPTIMISE for another level than kernels have: without optimising a program
// takes half the time.
#include <fmt/format.h>

#include <cstdlib>

#include "compiler/passes/pipeline.h"
#include "compiler/runtime/arguments.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"
#include "prelude_functions.h"
#include "tests/ir/iteration_programs.h"
#include "tests/ir/random_arguments.h"
#include "tests/ir/random_program.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

using ir::testing::RandomArguments;

struct Candidate {
  uint32_t seed;
  ir::Program program;
  targets::cpu::GeneratedCode code;
};

// Its functions are named apart from other candidates'.
std::string renamed(const Candidate& candidate) {
  std::string text = candidate.code.source;
  const std::string name = "tp_launch_";
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + name.size()))
    text.insert(at + name.size(), fmt::format("{}_", candidate.seed));
  return fmt::format("namespace candidate_{} {{\n{}}}\n", candidate.seed, text);
}

class RandomProgramsTest : public ::testing::Test {
 protected:
  std::vector<Candidate> batch_;
  int compared_ = 0, refused_ = 0, endless_ = 0;

  void add(uint32_t seed) {
    add(seed, ir::testing::RandomProgram(seed, {4, 3, seed % 3 != 0, false, true, seed % 2 == 1}).program());
  }

  void add(uint32_t seed, const ir::Program& program) {
    const auto lowered = passes::run_pipeline(program);
    const bool fits = lowered.ok();
    refused_ += !fits;
    if (!fits) return;
    auto code = targets::cpu::generate(*lowered);
    ASSERT_TRUE(code.ok()) << "seed " << seed << ": " << render(code.error()) << "\n" << ir::to_text(program);
    batch_.push_back({seed, program, *std::move(code)});
  }

  void compare_batch() {
    std::string source = targets::cpu::prelude();
    for (const Candidate& candidate : batch_) source += renamed(candidate);
    std::vector<std::string> flags{"-ffp-contract=off"};
    if (const char* level = std::getenv("TILEPILOT_OPTIMISE")) flags.emplace_back(level);
    runtime::Toolchain toolchain({"", {}, flags});
    DiagnosticList warnings;
    const auto library = toolchain.load(source, warnings);
    ASSERT_TRUE(library.ok()) << "seeds from " << batch_.front().seed << ": " << render(library.error());
    for (const Candidate& candidate : batch_) compare(candidate, **library);
    batch_.clear();
  }

  void compare(const Candidate& candidate, const runtime::SharedLibrary& library) {
    const RandomArguments expected(candidate.program, candidate.seed), actual(candidate.program, candidate.seed);
    interpret::Options options;
    options.functions = &prelude_functions();
    options.steps = 1'000'000;
    const auto fault = interpret::run(ir::testing::with_held_as_own(candidate.program), expected.values(), options);
    const bool endless = fault && fault->kind == interpret::FaultKind::budget_exceeded;
    endless_ += endless;
    if (endless) return;
    ASSERT_FALSE(fault) << "seed " << candidate.seed << ": " << fault->message << ir::to_text(candidate.program);
    launch(candidate, library, to_launch(actual.values()));
    EXPECT_EQ(first_difference(expected, actual), "") << "seed " << candidate.seed << "\n"
                                                      << ir::to_text(candidate.program) << candidate.code.source;
    ++compared_;
  }

  static void launch(const Candidate& candidate, const runtime::SharedLibrary& library,
                     const std::vector<runtime::Argument>& arguments) {
    auto bound = runtime::bind_arguments(candidate.program, arguments, {});
    ASSERT_TRUE(bound.ok()) << render(bound.error());
    std::vector<std::vector<std::byte>> workspaces;
    for (const ir::Buffer& buffer : candidate.program.workspaces) {
      int64_t bytes = buffer->type.bytes();
      for (const ir::Expr& extent : buffer->shape) bytes *= runtime::evaluate(extent, bound->values);
      bound->buffers.push_back(workspaces.emplace_back(static_cast<size_t>(bytes)).data());
    }
    using Launch = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*, targets::cpu::LaunchEvents*);
    for (size_t k = 0; k < candidate.program.kernels.size(); ++k) {
      int64_t blocks = 1;
      for (const ir::Expr& extent : candidate.code.grids[k])
        blocks *= std::max<int64_t>(0, runtime::evaluate(extent, bound->values));
      std::vector<std::byte> scratch(static_cast<size_t>(candidate.code.scratch_bytes[k] + 64));
      const auto misaligned = reinterpret_cast<uintptr_t>(scratch.data()) % 64;
      void* symbol = library.symbol(fmt::format("tp_launch_{}_{}", candidate.seed, k));
      ASSERT_NE(symbol, nullptr);
      targets::cpu::LaunchEvents events;
      reinterpret_cast<Launch>(symbol)(bound->buffers.data(), bound->scalars.data(), 0, blocks,
                                       scratch.data() + (64 - misaligned), &events);
    }
  }
};

TEST_F(RandomProgramsTest, AgreeWithTheInterpreter) {
  const int count = from_environment("TILEPILOT_ROUNDS", rounds(60));
  const int first = from_environment("TILEPILOT_FIRST_SEED", 0);
  for (int k = 0; k < count && !HasFatalFailure(); ++k) {
    add(uint32_t(first + k));
    if (batch_.size() == 20 || (k + 1 == count && !batch_.empty())) compare_batch();
  }
  fmt::print("{} programs: {} compared, {} too long, {} refused by a pass\n", count, compared_, endless_, refused_);
  EXPECT_GT(compared_, count * 3 / 4);
}

// What iterations keep for themselves, hand on to the next one, or update together.
TEST_F(RandomProgramsTest, OfIterationsThatShareElementsAgreeToo) {
  std::vector<std::string> texts = ir::testing::programs_with_variables();
  for (const auto& more : {ir::testing::programs_with_sequences(), ir::testing::programs_with_updates()})
    texts.insert(texts.end(), more.begin(), more.end());
  for (size_t k = 0; k < texts.size() && !HasFatalFailure(); ++k) add(uint32_t(k), parse(texts[k]));
  compare_batch();
  EXPECT_EQ(compared_, int(texts.size()));
}

}  // namespace
}  // namespace tilepilot::testing
