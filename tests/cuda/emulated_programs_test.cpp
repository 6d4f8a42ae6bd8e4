// Generated CUDA code in the emulator computes what the interpreter does, and is free of races, reads of what has no
// value, and barriers that not all threads reach: typical kernels, and random programs.
#include <fmt/format.h>

#include <cstdlib>

#include "compiler/runtime/arguments.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "compiler/targets/gpu/layout/infer.h"
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
using targets::gpu::Architecture;

constexpr int kBatch = 20;  // programs of one text

// The target that a seed's program is generated for: the same in whichever run it turns up.
Architecture architecture_of(uint32_t seed) {
  return seed / kBatch % 2 == 0 ? Architecture::sm_80 : Architecture::sm_90a;
}

// That which a launch gets, where extents are known at launch alone.
ir::Program version_for_random_arguments(const ir::Program& program, uint32_t seed) {
  const RandomArguments arguments(program, seed);
  const auto bound = runtime::bind_arguments(program, to_launch(arguments.values()), {});
  if (!bound.ok()) return program;
  return targets::gpu::with_facts(program, targets::gpu::FactFinder(program).find(bound->buffers, bound->values));
}

// The program with layouts asked for: shared tiles with padded rows, fragments dealt out element by element, or by two
// elements. Some can be had, some cannot.
ir::Program with_random_layouts(ir::Program program, uint32_t seed) {
  std::mt19937 random(seed);
  for (ir::Kernel& kernel : program.kernels) {
    const int64_t threads = targets::gpu::thread_count(kernel);
    for (const ir::Buffer& tile : kernel.allocations) {
      const bool is_held = tile->scope == ir::Scope::fragment;
      if ((!is_held && tile->scope != ir::Scope::shared) || random() % 2 == 0) continue;
      ir::RequestedLayout request{tile, {}, 1, nullptr, ir::int_imm(0), {}};
      const auto padding = static_cast<int64_t>(random() % 9);
      for (const ir::Expr& extent : tile->shape) {
        request.vars.push_back(ir::make_var("i", ir::kInt32));
        const ir::Expr row = ir::binary(ir::BinaryOp::mul, request.position,
                                        ir::int_imm(*ir::constant_int(extent) + (is_held ? 0 : padding)));
        request.position = ir::binary(ir::BinaryOp::add, row, ir::var_ref(request.vars.back()));
      }
      if (is_held) {
        const auto share = ir::int_imm(static_cast<int64_t>(1 + random() % 2));
        const ir::Expr group = ir::binary(ir::BinaryOp::floor_div, request.position, share);
        request.thread = ir::binary(ir::BinaryOp::floor_mod, group, ir::int_imm(threads));
        request.position = nullptr;
      }
      kernel.layouts.push_back(std::move(request));
    }
  }
  return program;
}

struct Tested {
  int compared = 0, refused = 0, endless = 0;
};

class EmulatedPrograms : public ::testing::Test {
 protected:
  Tested tested_;

  struct Kind {
    bool approximate_last = false, iterations = false, held = false;
  };
  void compare(const std::vector<uint32_t>& seeds, Architecture architecture, Kind kind) {
    EmulatedBatch batch(architecture);
    std::vector<std::pair<uint32_t, ir::Program>> programs;
    for (const uint32_t seed : seeds) {
      const ir::testing::RandomOptions options{
          4, 3, seed % 3 != 0, kind.approximate_last, kind.iterations, kind.held && seed % 2 == 1};
      ir::Program program = ir::testing::RandomProgram(seed, options).program();
      if (seed % 4 == 1) program = with_random_layouts(std::move(program), seed);
      const auto added = batch.add(seed % 2 == 0 ? program : version_for_random_arguments(program, seed));
      if (added.ok())
        programs.emplace_back(seed, program);
      else if (std::getenv("TILEPILOT_TELL") != nullptr)
        fmt::print("{}: {}\n", seed, added.error().message);
      tested_.refused += !added.ok();
    }
    batch.compile(false, std::getenv("TILEPILOT_ROUNDS") == nullptr);  // of thousands that takes hours
    if (HasFatalFailure()) return;
    for (size_t k = 0; k < programs.size(); ++k) compare(batch, k, programs[k].first, programs[k].second);
  }

 private:
  void compare(EmulatedBatch& batch, size_t number, uint32_t seed, const ir::Program& program) {
    const RandomArguments expected(program, seed), actual(program, seed);
    interpret::Options options;
    options.functions = &prelude_functions();
    options.steps = 200'000;
    const auto fault = interpret::run(ir::testing::with_held_as_own(program), expected.values(), options);
    if (fault) {
      EXPECT_EQ(fault->kind, interpret::FaultKind::budget_exceeded) << "seed " << seed << ": " << fault->message;
      ++tested_.endless;
      return;
    }
    std::string wrong = batch.run(number, to_launch(actual.values()));
    if (wrong.empty()) wrong = first_difference(expected, actual);
    EXPECT_EQ(wrong, "") << "seed " << seed << "\n" << ir::to_text(program) << batch.source(number);
    ++tested_.compared;
  }
};

TEST_F(EmulatedPrograms, AgreeWithTheInterpreter) {
  const int count = from_environment("TILEPILOT_ROUNDS", rounds(20));
  const int first = from_environment("TILEPILOT_FIRST_SEED", 0);
  std::vector<uint32_t> seeds;
  for (int k = 0; k < count && !HasFatalFailure(); ++k) {
    seeds.push_back(static_cast<uint32_t>(first + k));
    if (k + 1 < count && seeds.back() / kBatch == (seeds.back() + 1) / kBatch) continue;
    compare(seeds, architecture_of(seeds.back()), {.iterations = true, .held = true});
    seeds.clear();
  }
  fmt::print("{} programs: {} compared, {} too long, {} refused\n", count, tested_.compared, tested_.endless,
             tested_.refused);
}

// Seeds whose programs once were compiled wrongly, for either target.
TEST_F(EmulatedPrograms, ThatOnceDidNot) {
  const std::vector<uint32_t> seeds{2, 67, 100, 70096, 300056, 300234, 301016, 403625, 403668, 722369, 900272};
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) compare(seeds, architecture, {});
}

// As GPUs are asked for, see gpu_programs_test.cpp.
TEST_F(EmulatedPrograms, ThatApproximateLastAgreeToo) {
  std::vector<uint32_t> seeds;
  for (int k = 0; k < rounds(20); ++k) seeds.push_back(static_cast<uint32_t>(k));
  compare(seeds, Architecture::sm_80, {.approximate_last = true});
  EXPECT_GT(tested_.compared, 0);
}

}  // namespace
}  // namespace tilepilot::testing
