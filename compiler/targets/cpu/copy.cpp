#include "compiler/ir/visit.h"
#include "compiler/targets/c/events.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/emit.h"
#include "compiler/targets/cpu/plan/operand_layout.h"
#include "compiler/targets/cpu/tile_box.h"

namespace tilepilot::targets::cpu {
namespace {

// The general form: a parallel loop over the box.
struct ElementLoop {
  std::vector<ir::Var> vars;
  std::vector<ir::Expr> extents;

  // Indices of the region's element at the loop's variables, which stand for its axes of extent above 1 in order.
  std::vector<ir::Expr> indices(const ir::Region& region) const {
    std::vector<ir::Expr> result;
    size_t next = 0;
    for (size_t axis = 0; axis < region.extent.size(); ++axis) {
      if (region.extent[axis] == 1) {
        result.push_back(region.start[axis]);
        continue;
      }
      ir::Expr step = ir::cast(ir::var_ref(vars[next++]), region.start[axis]->type);
      const bool from_zero = ir::constant_int(region.start[axis]) == 0;
      result.push_back(from_zero ? step : ir::binary(ir::BinaryOp::add, region.start[axis], step));
    }
    return result;
  }
};

ElementLoop element_loop(const ir::Region& region) {
  ElementLoop loop;
  for (const int64_t extent : region.extent) {
    if (extent == 1) continue;
    loop.vars.push_back(ir::make_var(fmt::format("i{}", loop.vars.size()), ir::kInt32));
    loop.extents.push_back(ir::int_imm(extent));
  }
  return loop;
}

// An access to a tile that check_inside() has looked at in whole, for as long as this lives.
class Checked {
 public:
  Checked(c::Context& context, const ir::Buffer& buffer, const void* node)
      : context_(context), node_(buffer->scope == ir::Scope::global ? nullptr : node) {
    if (node_ != nullptr) context_.proven.insert(node_);
  }
  Checked(const Checked&) = delete;
  ~Checked() {
    if (node_ != nullptr) context_.proven.erase(node_);
  }

 private:
  c::Context& context_;
  const void* node_;
};

void emit_store_loop(c::Context& context, const ir::Region& destination, const ElementLoop& loop, ir::Expr value) {
  const ir::Stmt store =
      ir::make_stmt(ir::Store{destination.buffer, loop.indices(destination), std::move(value)}, destination.span);
  const Checked checked(context, destination.buffer, store.get());
  if (loop.vars.empty()) return emit(context, store);
  emit_parallel(context, ir::For{ir::LoopKind::parallel, loop.vars, loop.extents, 0, store});
}

void emit_element_copy(c::Context& context, const ir::Copy& copy) {
  const ElementLoop loop = element_loop(copy.destination);
  const ir::Expr from = ir::load(copy.source.buffer, loop.indices(copy.source), copy.source.span);
  const Checked checked(context, copy.source.buffer, from.get());
  emit_store_loop(context, copy.destination, loop, ir::cast(from, copy.destination.buffer->type));
}

std::string whole_window(const MatrixView& view) {
  return fmt::format("window{{0, {}, 0, {}}}", view.rows, view.columns);
}

// Into a buffer in operand layout: the copy packs.
void emit_packing_copy(c::Context& context, const ir::Copy& copy, const OperandLayout& layout, Span span) {
  const auto from = matrix_view(context, copy.source);
  if (!from)
    return context.fail(span, "a copy into an operand of `T.gemm` reads a region that this target cannot pack");
  std::string inside = window_of(context, copy.source, *from);
  if (inside.empty()) inside = whole_window(*from);
  const std::string& to = context.names.of(copy.destination.buffer);
  const std::string rows = rows_of(copy.source, *from, true);
  if (layout.is_b) {
    context.body.line("pack_panels{}({}, {}, {}, {}, {});", layout.transposed ? "_transposed" : "", to, rows,
                      from->rows, from->columns, inside);
    return;
  }
  const std::string type = c::stored_type(layout.computed);
  if (layout.transposed)
    context.body.line("load_transposed(rows<{}>{{{}, {}}}, {}, {}, {}, {});", type, to, from->rows, rows, from->columns,
                      from->rows, inside);
  else
    context.body.line("load_tile(rows<{}>{{{}, {}}}, {}, {}, {}, {});", type, to, from->columns, rows, from->rows,
                      from->columns, inside);
}

bool emit_matrix_copy(c::Context& context, const ir::Copy& copy) {
  const bool between_globals =
      copy.source.buffer->scope == ir::Scope::global && copy.destination.buffer->scope == ir::Scope::global;
  const bool with_bool = copy.source.buffer->type.is_bool() || copy.destination.buffer->type.is_bool();
  if (between_globals || (with_bool && copy.source.buffer->type != copy.destination.buffer->type)) return false;
  const auto from = matrix_view(context, copy.source), to = matrix_view(context, copy.destination);
  if (!from || !to) return false;
  const std::string readable = window_of(context, copy.source, *from);
  const std::string writable = window_of(context, copy.destination, *to);
  const std::string target = rows_of(copy.destination, *to, false), source = rows_of(copy.source, *from, true);
  if (!readable.empty())
    context.body.line("load_tile({}, {}, {}, {}, {});", target, source, to->rows, to->columns, readable);
  else if (!writable.empty())
    context.body.line("store_tile({}, {}, {});", target, source, writable);
  else {
    const bool streams = c::is_streamed(copy.destination.buffer);
    context.has_streams = context.has_streams || streams;
    context.body.line("{}({}, {}, {}, {});", streams ? "stream_tile" : "copy_tile", target, source, to->rows,
                      to->columns);
  }
  return true;
}

}  // namespace

void emit_copy(c::Context& context, const ir::Copy& copy, Span span) {
  context.body.line("// copy {} -> {}", copy.source.buffer->name, copy.destination.buffer->name);
  check_inside(context, copy.source);
  check_inside(context, copy.destination);
  const auto layout = context.layouts.find(copy.destination.buffer.get());
  if (layout != context.layouts.end()) return emit_packing_copy(context, copy, layout->second, span);
  if (!emit_matrix_copy(context, copy)) emit_element_copy(context, copy);
}

void emit_fill(c::Context& context, const ir::Fill& fill, Span) {
  const ir::Region& region = fill.destination;
  context.body.line("// fill {}", region.buffer->name);
  check_inside(context, region);
  const auto layout = context.layouts.find(region.buffer.get());
  if (layout != context.layouts.end()) {
    context.body.line("fill_run({}, {}, {}({}));", context.names.of(region.buffer),
                      packed_elements(region.buffer, layout->second), c::stored_type(layout->second.computed),
                      value(context, fill.value));
    return;
  }
  const auto view = matrix_view(context, region);
  if (!view || !window_of(context, region, *view).empty())
    return emit_store_loop(context, region, element_loop(region), fill.value);
  const std::string type = c::stored_type(region.buffer->type);
  context.body.line("fill_tile<{}>({}, {}, {}, {});", type, rows_of(region, *view, false), view->rows, view->columns,
                    element(context, fill.value));
}

}  // namespace tilepilot::targets::cpu
