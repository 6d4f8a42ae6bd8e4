// transpose and im2col: tiles whose elements change places, as parallel loops over the destination.
#include <fmt/format.h>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/kernel/loops.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// Runs `body` for every point of a box of constant extents, all in parallel.
Status for_each(const TileArguments& arguments, const std::vector<int64_t>& extents,
                const std::function<Status(const std::vector<Value>& point)>& body) {
  std::vector<LoopRange> ranges;
  for (int64_t extent : extents)
    ranges.push_back({ir::int_imm(0, ir::kInt32, arguments.span()), ir::int_imm(extent, ir::kInt32, arguments.span())});
  LoopObject loop(arguments.context(), std::string(arguments.function()), ir::LoopKind::parallel, std::move(ranges));
  auto with_point = [&](const Value& variables) -> Status {
    auto* items = sequence_items(variables);
    return body(items ? *items : std::vector<Value>{variables});
  };
  return loop.run(arguments.context().interpreter, with_point, arguments.span());
}

// The element of a region at a point of its box.
Result<std::vector<ir::Expr>> element_at(const ir::Region& region, const std::vector<Value>& point, Span span) {
  std::vector<ir::Expr> indices;
  for (size_t axis = 0; axis < point.size(); ++axis) {
    ir::Expr offset = fold_cast(TRY(to_index(point[axis], "an index", span)), region.start[axis]->type, span);
    indices.push_back(fold_binary(ir::BinaryOp::add, region.start[axis], std::move(offset), span));
  }
  return indices;
}

// T.transpose(src, dst): the last two axes change places.
Result<Value> transpose(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments.context(), "`T.transpose`", arguments.span()));
  const ir::Region source = TRY(tile_region(arguments, 0)), destination = TRY(tile_region(arguments, 1));
  std::vector<int64_t> swapped = source.extent;
  const size_t rank = swapped.size();
  if (rank >= 2) std::swap(swapped[rank - 1], swapped[rank - 2]);
  if (rank < 2 || swapped != destination.extent) {
    Error error =
        make_error(DiagnosticKind::shape_mismatch, arguments.span(),
                   fmt::format("`T.transpose` of {} does not fit {}", describe(source), describe(destination)),
                   "the last two extents change places, the others are equal");
    error->notes.push_back(declaration_note(*source.buffer));
    error->notes.push_back(declaration_note(*destination.buffer));
    return error;
  }
  TRY(for_each(arguments, source.extent, [&](std::vector<Value> point) -> Status {
    std::vector<ir::Expr> from = TRY(element_at(source, point, arguments.span()));
    ir::Expr element = ir::load(source.buffer, std::move(from), arguments.span());
    std::swap(point[rank - 1], point[rank - 2]);
    std::vector<ir::Expr> at = TRY(element_at(destination, point, arguments.span()));
    ir::Expr value = fold_cast(std::move(element), destination.buffer->type, arguments.span());
    return builder.emit(ir::Store{destination.buffer, std::move(at), std::move(value)}, arguments.span());
  }));
  return Value();
}

// The columns of a convolution: element (m, k) of the whole matrix is that of the image which the kernel's position k
// reads at the output's position m. Arithmetic is Python's, on values of either time.
class ImageColumns {
 public:
  ImageColumns(const TileArguments& arguments, const BufferObject& image)
      : arguments_(arguments), image_(image), interpreter_(arguments.context().interpreter), span_(arguments.span()) {}

  Status read_shape() {
    for (size_t i = 0; i < 4; ++i) {
      ir::Expr extent = image_.buffer->shape[i];
      auto constant = ir::constant_int(extent);
      shape_[i] = constant ? Value(*constant) : make_expr(arguments_.context(), extent);
    }
    kernel_ = TRY(arguments_.integer(4));
    stride_ = TRY(arguments_.integer(5));
    dilation_ = TRY(arguments_.integer(6));
    padding_ = TRY(arguments_.integer(7));
    if (kernel_ < 1 || stride_ < 1 || dilation_ < 1 || padding_ < 0)
      return make_error(DiagnosticKind::value_error, span_,
                        "`kernel`, `stride` and `dilation` of `T.im2col` must be positive, `pad` not negative");
    rows_ = TRY(steps_over(shape_[1]));
    columns_ = TRY(steps_over(shape_[2]));
    return {};
  }

  Result<ir::Expr> element(const Value& m, const Value& k) const {
    Value image = TRY(op(BinaryOp::floor_div, m, TRY(op(BinaryOp::mul, rows_, columns_))));
    Value place = TRY(op(BinaryOp::mod, m, TRY(op(BinaryOp::mul, rows_, columns_))));
    Value channels = shape_[3], tap = TRY(op(BinaryOp::floor_div, k, channels));
    Value row = TRY(position(BinaryOp::floor_div, place, columns_, tap));
    Value column = TRY(position(BinaryOp::mod, place, columns_, tap));
    Value channel = TRY(op(BinaryOp::mod, k, channels));
    std::vector<ir::Expr> indices;
    for (const Value& index : {image, row, column, channel}) indices.push_back(TRY(to_index(index, "an index", span_)));
    const ir::Expr in_rows = TRY(within(row, shape_[1])), in_columns = TRY(within(column, shape_[2]));
    ir::Expr inside = fold_binary(ir::BinaryOp::logical_and, in_rows, in_columns, span_);
    ir::DType type = image_.buffer->type;
    ir::Expr zero = type.is_float() ? ir::float_imm(0, type, span_) : ir::int_imm(0, type, span_);
    return fold_select(std::move(inside), ir::load(image_.buffer, std::move(indices), span_), std::move(zero), span_);
  }

 private:
  Result<Value> op(BinaryOp op, const Value& left, const Value& right) const {
    return interpreter_.binary(op, left, right, span_);
  }
  // How many positions the kernel takes along an extent.
  Result<Value> steps_over(const Value& extent) const {
    int64_t reach = (kernel_ - 1) * dilation_ + 1;
    Value last = TRY(op(BinaryOp::add, extent, Value(2 * padding_ - reach)));
    return op(BinaryOp::add, TRY(op(BinaryOp::floor_div, last, Value(stride_))), Value(1));
  }
  // Along the rows (`part` divides) or the columns (`part` takes what is left over).
  Result<Value> position(BinaryOp part, const Value& place, const Value& columns, const Value& tap) const {
    const Value step = TRY(op(part, place, columns)), inner = TRY(op(part, tap, Value(kernel_)));
    const Value from = TRY(op(BinaryOp::mul, step, Value(stride_)));
    const Value beyond = TRY(op(BinaryOp::mul, inner, Value(dilation_)));
    const Value sum = TRY(op(BinaryOp::add, from, beyond));
    return op(BinaryOp::sub, sum, Value(padding_));
  }
  Result<ir::Expr> within(const Value& index, const Value& extent) const {
    ir::Expr low = TRY(to_condition(TRY(interpreter_.compare(CompareOp::ge, index, Value(0), span_)), span_));
    ir::Expr high = TRY(to_condition(TRY(interpreter_.compare(CompareOp::lt, index, extent, span_)), span_));
    return fold_binary(ir::BinaryOp::logical_and, std::move(low), std::move(high), span_);
  }

  const TileArguments& arguments_;
  const BufferObject& image_;
  Interpreter& interpreter_;
  Span span_;
  Value shape_[4];        // image, row, column, channel
  Value rows_, columns_;  // of the output
  int64_t kernel_ = 1, stride_ = 1, dilation_ = 1, padding_ = 0;
};

// T.im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad): the tile (nhw_step, c_step) of that matrix.
Result<Value> im2col(TileArguments& arguments) {
  Span span = arguments.span();
  ProgramBuilder& builder = *TRY(require_kernel(arguments.context(), "`T.im2col`", span));
  auto* image = arguments[0].get_if<BufferObject>();
  if (!image || image->buffer->rank() != 4)
    return make_error(DiagnosticKind::type_error, arguments.span(0), "`img` of `T.im2col` must be a whole image",
                      "a buffer of 4 axes: image, row, column, channel");
  const ir::Region tile = TRY(tile_region(arguments, 1));
  if (tile.extent.size() != 2)
    return make_error(DiagnosticKind::shape_mismatch, arguments.span(1),
                      fmt::format("`col` of `T.im2col` has {} axes", tile.extent.size()), "it is a tile of 2 axes");
  ImageColumns columns(arguments, *image);
  TRY(columns.read_shape());
  Interpreter& python = arguments.context().interpreter;
  auto global = [&](const Value& step, int64_t extent, const Value& local) -> Result<Value> {
    return python.binary(BinaryOp::add, TRY(python.binary(BinaryOp::mul, step, Value(extent), span)), local, span);
  };
  TRY(for_each(arguments, tile.extent, [&](const std::vector<Value>& point) -> Status {
    Value m = TRY(global(arguments[2], tile.extent[0], point[0])),
          k = TRY(global(arguments[3], tile.extent[1], point[1]));
    ir::Expr value = fold_cast(TRY(columns.element(m, k)), tile.buffer->type, span);
    std::vector<ir::Expr> at = TRY(element_at(tile, point, span));
    return builder.emit(ir::Store{tile.buffer, std::move(at), std::move(value)}, span);
  }));
  return Value();
}

}  // namespace

const std::vector<TileFunction>& rearranging_functions() {
  static constexpr std::string_view kColumns =
      "img, col, nhw_step, c_step, kernel, stride, dilation, pad, eviction_policy?, annotations?";
  static constexpr std::string_view kSummary = "a tile of the matrix that makes a convolution a product of matrices";
  static const std::vector<TileFunction> kFunctions = {
      {"transpose", "src, dst, annotations?", "copies a tile with its last two axes exchanged", transpose},
      {"im2col", kColumns, kSummary, im2col},
      {"c2d_im2col", kColumns, kSummary, im2col},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
