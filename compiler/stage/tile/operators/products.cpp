// Products of tiles.
#include <fmt/format.h>

#include "compiler/ir/text/spelling.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

struct Matrix {
  int64_t rows = 0, columns = 0;
};

// The last two axes, the others having extent 1.
Result<Matrix> matrix_of(const TileArguments& arguments, const ir::Region& region, bool transposed) {
  size_t rank = region.extent.size();
  bool flat = rank >= 2;
  for (size_t axis = 0; axis + 2 < rank; ++axis) flat = flat && region.extent[axis] == 1;
  if (!flat) {
    Error error = make_error(DiagnosticKind::shape_mismatch, arguments.span(),
                             fmt::format("an operand of `T.gemm` is no matrix: {}", describe(region)),
                             "the last two axes are the matrix; extents before them must be 1");
    error->notes.push_back(declaration_note(*region.buffer));
    return error;
  }
  Matrix matrix{region.extent[rank - 2], region.extent[rank - 1]};
  if (transposed) std::swap(matrix.rows, matrix.columns);
  return matrix;
}

std::string describe_operand(std::string_view role, const ir::Region& region, bool transposed) {
  size_t rank = region.extent.size();
  return fmt::format("{} `{}` is {}x{}{}", role, region.buffer->name, region.extent[rank - 2], region.extent[rank - 1],
                     transposed ? " transposed" : "");
}

Error gemm_error(const TileArguments& arguments, DiagnosticKind kind, std::string message, const ir::Gemm& gemm) {
  Error error = make_error(kind, arguments.span(), std::move(message));
  for (const ir::Region* region : {&gemm.a, &gemm.b, &gemm.c})
    error->notes.push_back(declaration_note(*region->buffer));
  return error;
}

// The hint that fits: a transpose that would make the inner extents meet.
std::string transpose_advice(const Matrix& a, const Matrix& b) {
  if (a.columns == b.columns) return "`transpose_B=True` would make them fit, if B is stored [N, K]";
  if (a.rows == b.rows) return "`transpose_A=True` would make them fit, if A is stored [K, M]";
  return "A is [M, K], B is [K, N], C is [M, N]; `transpose_A` and `transpose_B` swap the axes of A and B";
}

Status check_gemm_shapes(const TileArguments& arguments, const ir::Gemm& gemm) {
  Matrix a = TRY(matrix_of(arguments, gemm.a, gemm.transpose_a));
  Matrix b = TRY(matrix_of(arguments, gemm.b, gemm.transpose_b));
  Matrix c = TRY(matrix_of(arguments, gemm.c, false));
  std::string left = describe_operand("A", gemm.a, gemm.transpose_a);
  std::string right = describe_operand("B", gemm.b, gemm.transpose_b);
  if (a.columns != b.rows) {
    Error error = gemm_error(arguments, DiagnosticKind::shape_mismatch,
                             fmt::format("`T.gemm` cannot multiply: {}, {}; the inner extents are {} and {}", left,
                                         right, a.columns, b.rows),
                             gemm);
    error->hint = transpose_advice(a, b);
    return error;
  }
  if (c.rows == a.rows && c.columns == b.columns) return {};
  return gemm_error(arguments, DiagnosticKind::shape_mismatch,
                    fmt::format("the product of `T.gemm` does not fit: {}, {} give {}x{}, but C `{}` is {}x{}", left,
                                right, a.rows, b.columns, gemm.c.buffer->name, c.rows, c.columns),
                    gemm);
}

Status check_gemm_types(const TileArguments& arguments, const ir::Gemm& gemm) {
  ir::DType a = gemm.a.buffer->type, b = gemm.b.buffer->type, c = gemm.c.buffer->type;
  bool same_kind = (a.is_float() && c.is_float()) || (a.is_int() && c.is_int());
  if (a == b && same_kind && c.bits >= a.bits && !c.is_nibble()) return {};
  std::string message =
      a == b ? fmt::format("`T.gemm` cannot accumulate {} products in {}", ir::to_string(a), ir::to_string(c))
             : fmt::format("the operands of `T.gemm` have different types: A is {}, B is {}", ir::to_string(a),
                           ir::to_string(b));
  Error error = gemm_error(arguments, DiagnosticKind::dtype_mismatch, std::move(message), gemm);
  error->hint = a == b ? "accumulate in float32 (int32 for integers)" : "give both tiles one dtype; `T.copy` converts";
  return error;
}

Result<ir::WarpPolicy> warp_policy(const TileArguments& arguments, size_t i) {
  int64_t number = TRY(arguments.integer_or(i, 0));
  if (number >= 0 && number <= 2) return static_cast<ir::WarpPolicy>(number);
  return make_error(DiagnosticKind::value_error, arguments.span(i), fmt::format("{} is no warp policy", number),
                    "use `T.GemmWarpPolicy.Square`, `.FullRow` or `.FullCol`");
}

Result<ir::Precision> precision_of(const TileArguments& arguments, size_t i) {
  if (!arguments.has(i)) return ir::Precision::ieee;
  const std::string name = TRY(arguments.text(i));
  for (const ir::Precision precision : {ir::Precision::ieee, ir::Precision::tf32, ir::Precision::fp32})
    if (name == ir::to_string(precision)) return precision;
  return make_error(DiagnosticKind::value_error, arguments.span(i), fmt::format("`{}` is no precision", name),
                    "of float32 operands: \"ieee\", or by tensor cores \"fp32\" (no worse) or \"tf32\" (10 bits)");
}

// `clear_accum=(k == 0)`: known when the kernel runs.
Status clear_under(const TileArguments& arguments, const Value& condition, const ir::Region& accumulator) {
  ProgramBuilder& builder = *arguments.context().builder;
  const Span span = arguments.span(6);
  ir::If node;
  const ir::DType type = accumulator.buffer->type;
  const ir::Expr zero = fold_cast(TRY(to_expr(Value(int64_t{0}), span, type)), type, span);
  node.condition = TRY(to_condition(condition, span));
  const auto clear = [&]() -> Status { return builder.emit(ir::Fill{accumulator, zero}, span); };
  node.then = TRY(builder.nested(BlockKind::branch, {}, clear, span));
  return builder.emit(std::move(node), span);
}

// T.gemm(A, B, C, transpose_A=, transpose_B=, policy=, clear_accum=, k_pack=, ..., precision=)
Result<Value> emit_gemm(TileArguments& arguments, bool asynchronous, size_t precision) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::Gemm node;
  node.asynchronous = asynchronous;
  node.a = TRY(tile_region(arguments, 0));
  node.b = TRY(tile_region(arguments, 1));
  node.c = TRY(tile_region(arguments, 2));
  node.transpose_a = TRY(arguments.flag_or(3, false));
  node.transpose_b = TRY(arguments.flag_or(4, false));
  node.policy = TRY(warp_policy(arguments, 5));
  const bool clears_at_times = arguments.has(6) && arguments[6].get_if<TileExpr>();
  if (!clears_at_times) node.clear_accumulator = TRY(arguments.flag_or(6, false));
  node.precision = TRY(precision_of(arguments, precision));
  TRY(require_on_chip(arguments, node.a, "operand A"));
  TRY(require_on_chip(arguments, node.b, "operand B"));
  TRY(require_on_chip(arguments, node.c, "the accumulator C"));
  TRY(check_gemm_shapes(arguments, node));
  TRY(check_gemm_types(arguments, node));
  if (clears_at_times) TRY(clear_under(arguments, arguments[6], node.c));
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

// `wg_wait`: how many asynchronous products may be under way after it; below 0 nothing is waited for.
Result<Value> gemm(TileArguments& arguments) {
  const int64_t under_way = TRY(arguments.integer_or(8, 0));
  TRY(emit_gemm(arguments, under_way != 0, 11));
  if (under_way > 0)
    TRY(arguments.context().builder->emit(ir::Async{ir::AsyncOp::wait_gemms, under_way}, arguments.span()));
  return Value();
}
Result<Value> wgmma_gemm(TileArguments& arguments) { return emit_gemm(arguments, true, 7); }

}  // namespace

const std::vector<TileFunction>& gemm_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"gemm",
       "A, B, C, transpose_A=, transpose_B=, policy=, clear_accum=, k_pack?=1, wg_wait=, mbar?, annotations?, "
       "*, precision=",
       "C += A @ B on tiles; `transpose_A`, `transpose_B` for operands stored the other way round; `precision`: what "
       "products of float32 may use, as written (`\"ieee\"`), or tensor cores at the accuracy of float32 (`\"fp32\"`) "
       "or "
       "of tfloat32 (`\"tf32\"`); `wg_wait`: so many asynchronous gemms, this one too, may be under way after it, -1 "
       "for any number (see `T.wait_wgmma`)",
       gemm},
      {"wgmma_gemm", "A, B, C, transpose_A=, transpose_B=, policy=, clear_accum=, *, precision=",
       "a gemm that `T.wait_wgmma` waits for", wgmma_gemm},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
