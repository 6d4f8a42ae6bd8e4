// Layouts that programs name instead of writing them down: swizzles of shared tiles, and fragments.
#include <fmt/format.h>

#include "compiler/ir/search.h"
#include "compiler/layout/shared_layout.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/buffers/layouts.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/fold.h"

namespace tilepilot::stage {
namespace {

using layout::SharedLayout;
using layout::SwizzleSpan;

ir::Expr of(ir::BinaryOp op, ir::Expr left, int64_t right, Span span) {
  return fold_binary(op, std::move(left), ir::int_imm(right), span);
}

// The row-major number of an element.
ir::Expr number_of(const LayoutObject& object, const layout::Shape& shape, Span span) {
  ir::Expr number = ir::int_imm(0);
  for (size_t axis = 0; axis < shape.size(); ++axis)
    number = fold_binary(ir::BinaryOp::add, of(ir::BinaryOp::mul, number, shape[axis], span),
                         ir::var_ref(object.vars[axis]), span);
  return number;
}

// Where the layout has an element. A swizzled tile is cut into panels as wide as the swizzle spans, in whose rows
// pieces of 16 bytes trade places by the row's number (compiler/layout/swizzle.h).
ir::Expr offset_of(const SharedLayout& memory, const LayoutObject& object, Span span) {
  using enum ir::BinaryOp;
  const layout::Shape& shape = memory.shape();
  const auto index = [&](size_t axis) { return ir::var_ref(object.vars[axis], span); };
  if (memory.span() == SwizzleSpan::none) {
    ir::Expr offset = ir::int_imm(0);
    const auto strides = layout::row_major_strides(shape);
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] > 1)
        offset = fold_binary(add, offset, of(mul, index(axis), memory.offset(strides[axis]), span), span);
    return offset;
  }
  const size_t last = shape.size() - 1;
  const int64_t bytes = int64_t(memory.span()), width = bytes * 8 / memory.element_bits();
  const int64_t rows = last > 0 ? shape[last - 1] : 1, panel = (rows + 7) / 8 * 8 * width;
  const ir::Expr row = last > 0 ? index(last - 1) : ir::int_imm(0);
  const ir::Expr turn =
      of(mul, of(floor_div, of(floor_mod, row, 8, span), 128 / bytes, span), 128 / memory.element_bits(), span);
  ir::Expr offset = fold_binary(bit_xor, of(floor_mod, index(last), width, span), turn, span);
  offset = fold_binary(add, of(mul, row, width, span), offset, span);
  offset = fold_binary(add, of(mul, of(floor_div, index(last), width, span), panel, span), offset, span);
  int64_t step = shape[last] / width * panel;
  for (size_t axis = last > 0 ? last - 1 : 0; axis-- > 0; step *= shape[axis])
    offset = fold_binary(add, of(mul, index(axis), step, span), offset, span);
  return offset;
}

struct Tile {
  const ir::BufferData* buffer;
  layout::Shape shape;
};

Result<Tile> to_tile(const TileArguments& arguments) {
  const ir::Region region = TRY(tile_region(arguments, 0));
  Tile tile{region.buffer.get(), {}};
  for (const ir::Expr& extent : tile.buffer->shape) {
    const auto size = ir::constant_int(extent);
    if (!size)
      return make_error(DiagnosticKind::non_constant_shape, arguments.span(),
                        fmt::format("`{}` has no constant shape", tile.buffer->name));
    tile.shape.push_back(*size);
  }
  return tile;
}

using Choose = Result<SharedLayout> (*)(const Tile& tile, Span span);

template <Choose choose>
Result<Value> shared_layout(TileArguments& arguments) {
  const Tile tile = TRY(to_tile(arguments));
  auto object = layout_of(arguments.context(), *tile.buffer);
  const SharedLayout memory = TRY(choose(tile, arguments.span()));
  object->index = {offset_of(memory, *object, arguments.span())};
  return Value(std::move(object));
}

int64_t bits_of(const Tile& tile) { return tile.buffer->type.bytes() * 8; }

Result<SharedLayout> row_major(const Tile& tile, Span) { return SharedLayout::linear(tile.shape, bits_of(tile)); }

Result<SharedLayout> conflict_free(const Tile& tile, Span) {
  return layout::conflict_free_layout(tile.shape, bits_of(tile));
}

template <SwizzleSpan kSpan>
Result<SharedLayout> swizzled(const Tile& tile, Span span) {
  std::string why;
  if (auto memory = SharedLayout::swizzled(tile.shape, bits_of(tile), kSpan, &why)) return *std::move(memory);
  return make_error(DiagnosticKind::value_error, span,
                    fmt::format("`{}` cannot be swizzled within {} bytes: {}", tile.buffer->name, int64_t(kSpan), why),
                    "`make_swizzled_layout` takes the widest swizzle that fits");
}

// 8 rows of 4 threads, two neighbours each; transposed, along columns.
template <bool kTransposed>
Result<Value> fragment_8x8(TileArguments& arguments) {
  auto object = std::make_shared<LayoutObject>(arguments.context(), std::vector<ir::Expr>(2, ir::int_imm(8)));
  for (const char* name : {"i0", "i1"}) object->vars.push_back(ir::make_var(name, ir::kInt32));
  const Span span = arguments.span();
  const ir::Expr row = ir::var_ref(object->vars[kTransposed ? 1 : 0]),
                 column = ir::var_ref(object->vars[kTransposed ? 0 : 1]);
  object->thread = {fold_binary(ir::BinaryOp::add, of(ir::BinaryOp::mul, row, 4, span),
                                of(ir::BinaryOp::floor_div, column, 2, span), span)};
  object->index = {of(ir::BinaryOp::floor_mod, column, 2, span)};
  return Value(std::move(object));
}

// All of it in each of `threads` threads.
Result<Value> replicated_fragment(TileArguments& arguments) {
  const Tile tile = TRY(to_tile(arguments));
  auto object = layout_of(arguments.context(), *tile.buffer);
  object->replicas = TRY(arguments.integer(1));
  TRY(check_replicas(object->replicas, arguments.span()));
  if (object->replicas > 1) object->replica = ir::make_var("replica", ir::kInt32);
  object->thread = {object->replica ? ir::var_ref(object->replica) : ir::int_imm(0)};
  object->index = {number_of(*object, tile.shape, arguments.span())};
  return Value(std::move(object));
}

}  // namespace

const std::vector<TileFunction>& named_layouts() {
  static const std::vector<TileFunction> kFunctions = {
      {"make_linear_layout", "buffer", "row by row", shared_layout<row_major>},
      {"make_swizzled_layout", "buffer, k_major=, allow_pad=",
       "swizzled, or padded, so that neither rows nor columns have bank conflicts", shared_layout<conflict_free>},
      {"make_wgmma_swizzled_layout", "buffer, continuity=, k_major=", "the same", shared_layout<conflict_free>},
      {"make_volta_swizzled_layout", "buffer, is_a=, k_inner=", "the same", shared_layout<conflict_free>},
      {"make_full_bank_swizzled_layout", "buffer", "swizzled within 128 bytes",
       shared_layout<swizzled<SwizzleSpan::bytes_128>>},
      {"make_half_bank_swizzled_layout", "buffer", "swizzled within 64 bytes",
       shared_layout<swizzled<SwizzleSpan::bytes_64>>},
      {"make_quarter_bank_swizzled_layout", "buffer", "swizzled within 32 bytes",
       shared_layout<swizzled<SwizzleSpan::bytes_32>>},
      {"make_gemm_fragment_8x8", "", "8 x 8 elements in a warp, neighbours of a row in a thread", fragment_8x8<false>},
      {"make_gemm_fragment_8x8_transposed", "", "8 x 8 elements in a warp, neighbours of a column in a thread",
       fragment_8x8<true>},
      {"make_fully_replicated_layout_fragment", "buffer, threads", "all elements in each thread", replicated_fragment},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
