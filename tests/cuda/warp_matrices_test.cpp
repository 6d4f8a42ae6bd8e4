// What a warp loads by ldmatrix and multiplies by mma.sync, its operands in the threads' registers: values against the
// interpreter and the CPU, and what instructions the generated code has.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/targets/cuda/codegen.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A product of 16 x (2 k) by (2 k) x 16 by each of two warps: two steps along k, two instructions along the columns.
struct WarpProduct {
  std::string a, b, c;
  int64_t k;
  bool transposed_a = false, transposed_b = false;

  // Lanes name rows of the four matrices, which lie `down` (of the result) and `along` k from each other.
  static std::string tile(const std::string& name, bool transposed, const std::string& down, const std::string& along,
                          int64_t row) {
    return transposed
               ? fmt::format("{0}[s * 16 + {2} * 8 + lane % 8, {1} * 8 : +8]", name, down, along)
               : fmt::format("{0}[{1} * 8 + lane % 8, s * {4} + {2} * {3} : +{3}]", name, down, along, row, 2 * row);
  }

  std::string text() const {
    const int64_t row = k / 2, depth = 2 * k;
    const auto shape = [&](bool transposed) {
      return transposed ? fmt::format("{}, 16", depth) : fmt::format("16, {}", depth);
    };
    return fmt::format(
        R"(program product(a: {a}[{shape_a}], b: {b}[{shape_b}], o: {c}[2, 16, 16]) {{
  kernel bx in 1 threads tx in 64 {{
    shared of_a: {a}[{shape_a}]
    shared of_b: {b}[{shape_b}]
    local x: {a}[{size}]
    local y: {b}[{size}]
    local sums: {c}[8]
    copy a[0 : +{rows_a}, 0 : +{columns_a}] -> of_a
    copy b[0 : +{rows_b}, 0 : +{columns_b}] -> of_b
    let lane: int32 = tx % 32
    serial i in 8 {{
      sums[i] = {c}(tx // 32)
    }}
    serial s in 2 {{
      load_matrix 4 {from_a} -> x[0 : +{size}]{mark_a}
      load_matrix 4 {from_b} -> y[0 : +{size}]{mark_b}
      unrolled h in 2 {{
        mma x[0 : +{size}], y[h * {half} : +{half}] -> sums[h * 4 : +4]
      }}
    }}
    unrolled i in 8 {{
      o[tx // 32, lane // 4 + i % 4 // 2 * 8, lane % 4 * 2 + i % 2 + i // 4 * 8] = sums[i]
    }}
  }}
}})",
        fmt::arg("a", a), fmt::arg("b", b), fmt::arg("c", c), fmt::arg("shape_a", shape(transposed_a)),
        fmt::arg("shape_b", shape(transposed_b)), fmt::arg("size", k / 2), fmt::arg("half", k / 4),
        fmt::arg("rows_a", transposed_a ? depth : 16), fmt::arg("columns_a", transposed_a ? 16 : depth),
        fmt::arg("rows_b", transposed_b ? depth : 16), fmt::arg("columns_b", transposed_b ? 16 : depth),
        fmt::arg("from_a", tile("of_a", transposed_a, "(lane // 8 % 2)", "(lane // 16)", row)),
        fmt::arg("from_b", tile("of_b", transposed_b, "(lane // 16)", "(lane // 8 % 2)", row)),
        fmt::arg("mark_a", transposed_a ? " transposed" : ""), fmt::arg("mark_b", transposed_b ? " transposed" : ""));
  }
};

TEST(WarpMatrices, MultiplyEachTypeOnBothMachines) {
  for (const WarpProduct& product : std::vector<WarpProduct>{{"float16", "float16", "float32", 16},
                                                             {"float16", "float16", "float16", 16},
                                                             {"bfloat16", "bfloat16", "float32", 16},
                                                             {"float16", "float16", "float32", 16, true, false},
                                                             {"bfloat16", "bfloat16", "float32", 16, true, true},
                                                             {"int8", "int8", "int32", 32},
                                                             {"uint8", "int8", "int32", 32},
                                                             {"float32", "float32", "float32", 8}}) {
    const std::string source = expect_interpreted(product.text());
    EXPECT_THAT(source, AllOf(HasSubstr(product.transposed_a ? "ldmatrix_transposed<4>" : "ldmatrix<4>"),
                              HasSubstr(fmt::format("mma_m16n8k{}(", product.k))))
        << source;
  }
  for (const char* type : {"float8_e4m3fn", "float8_e5m2"})
    expect_interpreted(WarpProduct{type, type, "float32", 32}.text(), {Architecture::sm_90a});
  expect_interpreted(WarpProduct{"float8_e4m3fn", "float8_e5m2", "float32", 32}.text(), {Architecture::sm_90a});
}

TEST(WarpMatrices, HaveNoInstructionForSomeTypes) {
  for (const WarpProduct& product : std::vector<WarpProduct>{{"float8_e4m3fn", "float8_e4m3fn", "float32", 32},
                                                             {"float16", "bfloat16", "float32", 16}}) {
    const auto code = targets::cuda::generate(parse(product.text()), Architecture::sm_80, {});
    ASSERT_FALSE(code.ok());
    EXPECT_THAT(code.error().message, HasSubstr("sm_80 has no mma.sync of"));
  }
}

// On the CPU threads give each other what the instructions would.
TEST(WarpMatrices, AreOnTheCpuWhatTheInterpreterHas) {
  for (const WarpProduct& product : std::vector<WarpProduct>{{"float16", "float16", "float32", 16, true, false},
                                                             {"int8", "uint8", "int32", 32},
                                                             {"float32", "float32", "float32", 8}})
    expect_interpreted_result(product.text(), {});
}

// A thread that stands apart from its warp.
TEST(WarpMatrices, WaitForTheWholeWarp) {
  std::string text = WarpProduct{"float16", "float16", "float32", 16}.text();
  const std::string loop = "    serial s in 2 {";
  text.insert(text.find(loop), "    if lane < 16 {\n  ");
  const size_t end = text.find("    unrolled i in 8");
  text.insert(end, "    }\n");
  EXPECT_NE(outcome(text, Architecture::sm_90a).wrong, "");
}

}  // namespace
}  // namespace tilepilot::testing
