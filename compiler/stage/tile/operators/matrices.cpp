// What the tensor cores of a warp load and multiply, by each thread's registers: ldmatrix and mma.sync.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/matrix_operands.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr int64_t kRowBytes = 16;

Status require_whole_warps(const TileArguments& arguments, ProgramBuilder& builder) {
  builder.thread_index(0, arguments.span());  // each thread names its own registers
  int64_t threads = 1;
  for (const int64_t extent : builder.kernel().threads) threads *= extent;
  if (threads % ir::kLanesOfWarp == 0) return {};
  return make_error(DiagnosticKind::value_error, arguments.span(),
                    fmt::format("`{}` in a block of {} threads", arguments.function(), threads),
                    "whole warps take part: give the block a multiple of 32 threads");
}

// `count` elements from a place on, along the last axis.
ir::Region run_from(ir::Region place, int64_t count) {
  place.extent.assign(place.start.size(), 1);
  place.extent.back() = count;
  return place;
}

// T.ptx_ldmatrix(trans, num, source, destination)
Result<Value> load_matrix(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(require_whole_warps(arguments, builder));
  ir::LoadMatrix node;
  node.transposed = TRY(arguments.flag_or(0, false));
  node.count = TRY(arguments.integer(1));
  const ir::Region row = TRY(tile_operand(arguments, 2)).region, to = TRY(tile_operand(arguments, 3)).region;
  const ir::DType type = row.buffer->type;
  const auto wrong = [&](std::string what, std::string advice) {
    return make_error(DiagnosticKind::value_error, arguments.span(), std::move(what), std::move(advice));
  };
  if (node.count != 1 && node.count != 2 && node.count != 4)
    return wrong(fmt::format("`T.ptx_ldmatrix` of {} matrices", node.count), "it loads 1, 2 or 4");
  if (row.buffer->scope != ir::Scope::shared)
    return wrong(fmt::format("`T.ptx_ldmatrix` from `{}`, which is not in shared memory", row.buffer->name),
                 "copy it to a tile of `T.alloc_shared` first");
  if (to.buffer->scope != ir::Scope::local && to.buffer->scope != ir::Scope::fragment)
    return wrong(fmt::format("`T.ptx_ldmatrix` into `{}`, which is not in registers", to.buffer->name),
                 "allocate it by `T.alloc_local`");
  if (to.buffer->type != type || type.bits < 8 || type.bits > 32)
    return wrong(fmt::format("`T.ptx_ldmatrix` from {} to {}", ir::to_string(type), ir::to_string(to.buffer->type)),
                 "both sides have one type of 8, 16 or 32 bits");
  if (node.transposed && type.bits != 16)
    return wrong(fmt::format("`T.ptx_ldmatrix` transposes elements of {} bits", type.bits),
                 "it transposes elements of 16 bits alone");
  node.row = run_from(row, kRowBytes * 8 / type.bits);
  node.registers = run_from(to, node.count * 32 / type.bits);
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

// What PTX and upstream call the types of operands.
struct OperandName {
  std::string_view name;
  ir::DType type;
};
constexpr OperandName kOperandNames[] = {
    {"fp16", ir::kFloat16},    {"bf16", ir::kBFloat16},   {"tf32", ir::kFloat32}, {"fp32", ir::kFloat32},
    {"int8", ir::kInt8},       {"uint8", ir::kUInt8},     {"int32", ir::kInt32},  {"e4m3", ir::kFloat8E4M3},
    {"e5m2", ir::kFloat8E5M2}, {"float16", ir::kFloat16}, {"f16", ir::kFloat16},  {"f32", ir::kFloat32},
    {"s8", ir::kInt8},         {"u8", ir::kUInt8},        {"s32", ir::kInt32},    {"bfloat16", ir::kBFloat16},
    {"int8x4", ir::kInt8},     {"float32", ir::kFloat32},
};

// Argument `i` is the array, the next one the index of its first element.
Result<ir::Region> registers(const TileArguments& arguments, size_t i, size_t named, int64_t count) {
  ir::Region region = TRY(tile_operand(arguments, i)).region;
  const ir::Buffer& buffer = region.buffer;
  const std::string name = TRY(arguments.text(named));
  const auto* row = std::find_if(std::begin(kOperandNames), std::end(kOperandNames),
                                 [&](const OperandName& operand) { return operand.name == name; });
  const bool is_tf32 = buffer->type == ir::kTensorFloat32 && name == "tf32";
  if (row == std::end(kOperandNames) || (row->type != buffer->type && !is_tf32))
    return make_error(
        DiagnosticKind::type_error, arguments.span(named),
        fmt::format("`T.ptx_mma` of `{}`, which holds {}, as {}", buffer->name, ir::to_string(buffer->type), name),
        "name the type that the array has, as fp16, bf16, tf32, int8, uint8, e4m3 or e5m2");
  if (buffer->rank() != 1 || (buffer->scope != ir::Scope::local && buffer->scope != ir::Scope::fragment))
    return make_error(DiagnosticKind::value_error, arguments.span(i),
                      fmt::format("`T.ptx_mma` takes `{}`, which is no array of registers with one axis", buffer->name),
                      "allocate it by `T.alloc_local`");
  const ir::Expr offset = TRY(to_index(arguments[i + 1], "an index", arguments.span(i + 1)));
  region.start = {fold_binary(ir::BinaryOp::add, region.start[0],
                              fold_cast(offset, region.start[0]->type, arguments.span()), arguments.span())};
  return run_from(std::move(region), count);
}

// T.ptx_mma(dtype, shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index, multiplicand_b,
// b_index, accumulator, c_index, saturate)
Result<Value> mma(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(require_whole_warps(arguments, builder));
  const std::string shape = TRY(arguments.text(1));
  int64_t k = 0;
  for (const int64_t known : {4, 8, 16, 32})
    if (shape == fmt::format("m16n8k{}", known)) k = known;
  const std::string a_layout = TRY(arguments.text(2)), b_layout = TRY(arguments.text(3));
  if (k == 0 || a_layout != "row" || b_layout != "col")
    return make_error(DiagnosticKind::value_error, arguments.span(1),
                      fmt::format("`T.ptx_mma` of shape {}, {} by {}", shape, a_layout, b_layout),
                      "it multiplies m16n8k4, m16n8k8, m16n8k16 or m16n8k32, row by col; or use `T.gemm`");
  if (TRY(arguments.flag_or(13, false)))
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(13), "`T.ptx_mma` that saturates",
                      "clamp the sums afterwards");
  ir::Mma node;
  node.a = TRY(registers(arguments, 7, 4, k / 2));
  node.b = TRY(registers(arguments, 9, 5, k / 4));
  node.c = TRY(registers(arguments, 11, 6, 4));
  const ir::DType a = node.a.buffer->type, b = node.b.buffer->type, c = node.c.buffer->type;
  const int64_t row_bits = k * a.bits;
  if (a.bits != b.bits || a.is_float() != b.is_float() || a.is_float() != c.is_float() ||
      (row_bits != 128 && row_bits != 256))
    return make_error(DiagnosticKind::type_error, arguments.span(),
                      fmt::format("`T.ptx_mma` multiplies {} by {} into {}, {} of them a row", ir::to_string(a),
                                  ir::to_string(b), ir::to_string(c), k),
                      "a row of `a` has 16 or 32 bytes; floats are summed as floats, integers as integers");
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

}  // namespace

const std::vector<TileFunction>& matrix_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"ptx_ldmatrix", "trans, num, source, destination",
       "a warp loads 1, 2 or 4 matrices of 8 rows of 16 bytes into registers: each thread names one row", load_matrix},
      {"ptx_mma",
       "dtype, shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index, multiplicand_b, b_index, "
       "accumulator, c_index, saturate=",
       "a warp adds the product of two matrices in its registers to a third (mma.sync)", mma},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
