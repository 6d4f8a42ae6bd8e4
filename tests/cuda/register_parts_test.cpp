// What stays in registers, is computed in its own type, and lies in shared memory so that lanes do not wait: the
// generated code, its values beside the interpreter's, and the conflicts that the emulator counts.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// An operand of a GEMM whose columns are summed up, `part` of them at a time.
std::string sums_of_operand(int64_t part) {
  return fmt::format(R"(program f(x: float16[64, 64], w: float16[64, 32], c: float32[64, 32], s: float32[64, {0}]) {{
  kernel bx in 1 threads 128 {{
    shared x_tile: float16[64, 64]
    shared w_tile: float16[64, 32]
    fragment held: float16[64, 64]
    fragment sums: float32[64, 32]
    fragment parts: float32[64, {0}]
    copy x -> x_tile
    copy w -> w_tile
    copy x_tile -> held
    fill sums = 0.0
    fill parts = 0.0
    serial k in {1} {{
      parallel i, j in 64, {0} {{
        parts[i, j] = parts[i, j] + float32(held[i, k * {0} + j])
      }}
    }}
    gemm sums += held @ w_tile
    copy sums -> c
    copy parts -> s
  }}
}})",
                     part, 64 / part);
}

TEST(PartsOfFragments, OfAnOperandAreFoundInRegisters) {
  EXPECT_THAT(expect_interpreted(sums_of_operand(8)), Not(HasSubstr("held_tile")));
  EXPECT_THAT(expect_interpreted(sums_of_operand(16)), Not(HasSubstr("held_tile")));
}

// Four columns are with two lanes of each four: other threads would have to know, so the loop stays a loop.
TEST(PartsOfFragments, GoThroughSharedMemoryWhereLanesHoldThemDifferently) {
  EXPECT_THAT(expect_interpreted(sums_of_operand(4)), AllOf(HasSubstr("held_tile"), HasSubstr("k < 16")));
}

TEST(SmallFloats, AreAddedAndMultipliedByTheirOwnInstructions) {
  const auto text = [](const char* type) {
    return fmt::format(R"(program f(x: {0}[256], y: {0}[256], o: {0}[256], p: float32[256]) {{
  kernel bx in 2 threads 128 {{
    parallel i in 128 {{
      o[bx * 128 + i] = (x[bx * 128 + i] - y[bx * 128 + i]) * x[bx * 128 + i] + {0}(0.375)
      p[bx * 128 + i] = float32(x[bx * 128 + i] * y[bx * 128 + i]) + 1.0
    }}
  }}
}})",
                       type);
  };
  for (const char* type : {"float16", "bfloat16"})
    EXPECT_THAT(expect_interpreted(text(type), {Architecture::sm_90a}),
                AllOf(HasSubstr(fmt::format("add_{}(multiply_{}(subtract_{}(", type, type, type)),
                      HasSubstr(fmt::format("to_float(multiply_{}(", type))));
  EXPECT_THAT(expect_interpreted(text("float16"), {Architecture::sm_80}), HasSubstr("add_float16("));
  // Instructions for bfloat16 came with sm_90.
  EXPECT_THAT(expect_interpreted(text("bfloat16"), {Architecture::sm_80}), Not(HasSubstr("add_bfloat16(")));
}

int64_t conflicts_of(const std::string& text, Architecture architecture) {
  EmulatedBatch batch(architecture);
  const ir::Program program = parse(text);
  EXPECT_TRUE(batch.add(program).ok());
  batch.compile();
  const ir::testing::RandomArguments arguments(program, 1);
  EXPECT_EQ(batch.run(0, to_launch(arguments.values())), "");
  return batch.counters().shared_reads.bank_conflicts + batch.counters().shared_writes.bank_conflicts;
}

// A tile of which eight rows are read at the same place, as operands of tensor cores are held.
std::string operand_from_tile(const char* memory) {
  return fmt::format(R"(program f(x: float16[64, 64], w: tfloat32[64, 32], c: float32[64, 32]) {{
  kernel bx in 1 threads 128 {{
    shared x_tile: float16[64, 64]
    shared w_tile: tfloat32[64, 32]
    fragment held: tfloat32[64, 64]
    fragment sums: float32[64, 32]
    {}
    copy x -> x_tile
    copy w -> w_tile
    fill sums = 0.0
    parallel i, j in 64, 64 {{
      held[i, j] = tfloat32(x_tile[i, j])
    }}
    gemm sums += held @ w_tile
    copy sums -> c
  }}
}})",
                     memory);
}

TEST(BankChoice, SwizzlesATileOfWhichEightRowsAreReadAtOnePlace) {
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    expect_interpreted(operand_from_tile(""), {architecture});
    // A second name of the memory is for its order: it stays row by row.
    const int64_t in_rows = conflicts_of(operand_from_tile("shared y: float16[4096] view x_tile"), architecture);
    EXPECT_LT(8 * conflicts_of(operand_from_tile(""), architecture), in_rows);
  }
}

}  // namespace
}  // namespace tilepilot::testing
