#include "compiler/targets/cuda/wgmma.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilepilot::targets::cuda {

using gpu::Wgmma;

namespace {

struct OperandType {
  ir::DType type;
  const char *ptx, *element;
};
constexpr OperandType kWgmmaOperands[] = {
    {ir::kFloat16, "f16", "float16"},
    {ir::kBFloat16, "bf16", "bfloat16"},
    {ir::kTensorFloat32, "tf32", "tfloat32"},
    {ir::kFloat8E4M3, "e4m3", "float8_e4m3"},
    {ir::kFloat8E5M2, "e5m2", "float8_e5m2"},
    {ir::kInt8, "s8", "int8_t"},
    {ir::kUInt8, "u8", "uint8_t"},
    {ir::kFloat32, "f32", "float"},
    {ir::kInt32, "s32", "int32_t"},
};
const OperandType* row_of(ir::DType type) {
  const auto* row = std::find_if(std::begin(kWgmmaOperands), std::end(kWgmmaOperands),
                                 [&](const OperandType& operand) { return operand.type == type; });
  return row == std::end(kWgmmaOperands) ? nullptr : row;
}
const char* ptx_type(ir::DType type) { return row_of(type)->ptx; }

int64_t depth(const Wgmma& shape) { return 256 / shape.a.bits; }

// Words of c in a thread; sums of 16 bits share them.
int64_t sum_words(const Wgmma& shape) { return shape.n / 2 * shape.sum.bits / 32; }

// "{%0, %1, ...}"
std::string operand_list(int64_t first, int64_t count) {
  std::string list = "{";
  for (int64_t i = 0; i < count; ++i) list += fmt::format("{}%{}", i == 0 ? "" : ", ", first + i);
  return list + "}";
}

// `"+f"(c[0]), "+f"(c[1]), ...`, eight a line.
std::string constraints(const char* letter, const char* array, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += fmt::format("{}\"{}\"({}[{}])", i == 0 ? "" : i % 8 == 0 ? ",\n        " : ", ", letter, array, i);
  return text;
}

// What follows the operands: whether to add, signs, axes.
std::string immediates(const Wgmma& shape) {
  std::string text = "accumulates";
  if (shape.a.is_float()) text += ", 1, 1";
  if (shape.a.bits == 16) {
    if (!shape.a_in_registers) text += shape.a_transposed ? ", 1" : ", 0";
    text += shape.b_transposed ? ", 1" : ", 0";
  }
  return text;
}

}  // namespace

std::string wgmma_name(const Wgmma& shape) {
  return fmt::format("wgmma_m64n{}k{}_{}_{}_{}{}{}{}", shape.n, depth(shape), ptx_type(shape.sum), ptx_type(shape.a),
                     ptx_type(shape.b), shape.a_in_registers ? "_ra" : "", shape.a_transposed ? "_ta" : "",
                     shape.b_transposed ? "_tb" : "");
}

std::string wgmma_function(const Wgmma& shape) {
  const int64_t words = sum_words(shape), first = words;
  const int64_t a_operands = shape.a_in_registers ? 4 : 1, b = first + a_operands;
  const bool packs = shape.sum.bits == 16;
  const std::string a = shape.a_in_registers ? operand_list(first, 4) : fmt::format("%{}", first);
  std::string text =
      fmt::format("TP_INLINE void {}({}* {}, {}, uint64_t b, bool accumulate) {{\n", wgmma_name(shape),
                  row_of(shape.sum)->element, packs ? "sums" : "c",
                  shape.a_in_registers ? fmt::format("const {}* elements", row_of(shape.a)->element) : "uint64_t a");
  if (packs) text += "  word4* c = words_of(sums);\n";
  if (shape.a_in_registers) text += "  const word4* a = words_of(elements);\n";
  text += fmt::format(
      "  asm volatile(\n"
      "      \"{{ .reg .pred accumulates;\\n\"\n"
      "      \"setp.ne.b32 accumulates, %{}, 0;\\n\"\n"
      "      \"wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} \"\n"
      "      \"{}, \"\n"
      "      \"{}, %{}, {}; }}\"\n",
      b + 1, shape.n, depth(shape), ptx_type(shape.sum), ptx_type(shape.a), ptx_type(shape.b), operand_list(0, words),
      a, b, immediates(shape));
  text += fmt::format("      : {}\n", constraints(shape.sum == ir::kFloat32 ? "+f" : "+r", "c", words));
  text += fmt::format("      : {}, \"l\"(b), \"r\"(static_cast<int>(accumulate)));\n}}\n",
                      shape.a_in_registers ? constraints("r", "a", 4) : "\"l\"(a)");
  if (shape.a_in_registers && shape.a == ir::kTensorFloat32)  // for which float32 may stand
    text += fmt::format(
        "TP_INLINE void {0}(float* c, const float* elements, uint64_t b, bool accumulate) {{\n"
        "  {0}(c, reinterpret_cast<const tfloat32*>(elements), b, accumulate);\n}}\n",
        wgmma_name(shape));
  return text;
}

}  // namespace tilepilot::targets::cuda
