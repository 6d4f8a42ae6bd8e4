#include "compiler/stage/tile/buffers/layouts.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/bounds.h"
#include "compiler/ir/visit.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

Value as_list(TileContext& context, const std::vector<ir::Expr>& exprs) {
  std::vector<Value> items;
  for (const ir::Expr& expr : exprs) {
    const auto constant = ir::constant_int(expr);
    items.push_back(constant ? Value(*constant) : make_expr(context, expr));
  }
  return make_list(std::move(items));
}

Result<std::vector<ir::Expr>> to_indices(const Value& value, Span span) {
  std::vector<Value> items{value};
  if (auto* sequence = sequence_items(value)) items = *sequence;
  std::vector<ir::Expr> result;
  for (const Value& item : items) result.push_back(TRY(to_index(item, "an index of a layout", span)));
  return result;
}

// What a layout's function gives for its variables; with replicas these are one more argument.
Result<Value> apply(const LayoutObject& layout, const Value& function, const std::vector<ir::Var>& extra, Span span) {
  CallArgs call;
  call.span = span;
  for (const ir::Var& var : layout.vars) call.positional.push_back(make_expr(layout.context, ir::var_ref(var, span)));
  for (const ir::Var& var : extra) call.positional.push_back(make_expr(layout.context, ir::var_ref(var, span)));
  return layout.context.interpreter.call(function, std::move(call));
}

// The most that each expression can be, plus one.
Result<std::vector<ir::Expr>> output_shape(const LayoutObject& layout, Span span) {
  ir::VarRanges ranges;
  for (size_t axis = 0; axis < layout.vars.size(); ++axis) {
    const auto extent = ir::constant_int(layout.shape[axis]);
    if (!extent)
      return make_error(DiagnosticKind::non_constant_shape, span,
                        "the output shape of a layout over a run-time extent is not known");
    ranges.emplace(layout.vars[axis].get(), ir::Bounds{0, *extent - 1});
  }
  std::vector<ir::Expr> shape;
  for (const ir::Expr& index : layout.index) shape.push_back(ir::int_imm(ir::bounds(index, ranges).hi + 1));
  return shape;
}

Result<Value> mapped(const LayoutObject& layout, const std::vector<Value>& given, Span span) {
  std::vector<Value> indices = given;
  if (indices.size() == 1)
    if (auto* items = sequence_items(indices[0])) indices = *items;
  if (indices.size() != layout.vars.size())
    return make_error(DiagnosticKind::wrong_index_count, span,
                      fmt::format("a layout of {} axes is given {} indices", layout.vars.size(), indices.size()));
  std::vector<ir::Expr> at;
  for (const Value& index : indices) at.push_back(TRY(to_index(index, "an index of a layout", span)));
  const auto argument = [&](const ir::Var& var) -> ir::Expr {
    const auto found = std::find(layout.vars.begin(), layout.vars.end(), var);
    return found == layout.vars.end() ? nullptr : at[static_cast<size_t>(found - layout.vars.begin())];
  };
  std::vector<ir::Expr> result;
  for (const ir::Expr& index : layout.index) {
    const ir::Expr expr = ir::substitute(index, argument);
    const auto constant = evaluate_integer(expr, [](const ir::Var&) { return std::nullopt; });
    result.push_back(constant ? ir::int_imm(*constant) : expr);
  }
  return as_list(layout.context, result);
}

Result<std::shared_ptr<LayoutObject>> over_shape(TileContext& context, const Value& shape, Span span) {
  auto layout = std::make_shared<LayoutObject>(context, TRY(to_shape(shape, "an extent of a layout", span)));
  for (size_t axis = 0; axis < layout->shape.size(); ++axis)
    layout->vars.push_back(ir::make_var(fmt::format("i{}", axis), ir::kInt32));
  return layout;
}

// T.Layout(shape, forward_fn)
Result<Value> make_layout(TileArguments& arguments) {
  auto layout = TRY(over_shape(arguments.context(), arguments[0], arguments.span(0)));
  layout->index = TRY(to_indices(TRY(apply(*layout, arguments[1], {}, arguments.span())), arguments.span()));
  return Value(std::move(layout));
}

// T.Fragment(shape, forward_fn=, forward_thread_fn=, replicate=, forward_index_fn=): forward_fn gives (thread, index).
Result<Value> make_fragment(TileArguments& arguments) {
  const Span span = arguments.span();
  auto layout = TRY(over_shape(arguments.context(), arguments[0], arguments.span(0)));
  std::vector<ir::Var> replica;
  if (TRY(arguments.integer_or(3, 1)) != 1) replica = {ir::make_var("replica", ir::kInt32)};
  if (arguments.has(1)) {
    const Value both = TRY(apply(*layout, arguments[1], replica, span));
    auto* items = sequence_items(both);
    if (!items || items->size() != 2)
      return make_error(DiagnosticKind::value_error, span,
                        "`forward_fn` of `T.Fragment` must give a thread and an index");
    layout->thread = TRY(to_indices(items->front(), span));
    layout->index = TRY(to_indices(items->back(), span));
    return Value(std::move(layout));
  }
  if (!arguments.has(2))
    return make_error(DiagnosticKind::wrong_arguments, span, "`T.Fragment` needs `forward_fn` or `forward_thread_fn`");
  layout->thread = TRY(to_indices(TRY(apply(*layout, arguments[2], replica, span)), span));
  if (arguments.has(4)) layout->index = TRY(to_indices(TRY(apply(*layout, arguments[4], {}, span)), span));
  return Value(std::move(layout));
}

Error bad_layout(const TileArguments& arguments, std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::value_error, arguments.span(), std::move(message), std::move(hint));
}

Status check_entry(const TileArguments& arguments, const Value& key, const Value& value) {
  auto* buffer = key.get_if<BufferObject>();
  if (!buffer)
    return bad_layout(arguments,
                      fmt::format("`T.annotate_layout` maps buffers to layouts, not a `{}`", key.type_name()));
  std::shared_ptr<LayoutObject> layout = value.get_shared<LayoutObject>();
  if (!layout) {
    auto* object = value.if_object();
    if (!object || !*object || !(*object)->is_callable())
      return bad_layout(arguments, fmt::format("the layout of `{}` is a `{}`", buffer->name(), value.type_name()),
                        "write `T.Layout(shape, function)` or one of `tilelang.layout`");
    layout = std::make_shared<LayoutObject>(arguments.context(), buffer->buffer->shape);
    for (size_t axis = 0; axis < layout->shape.size(); ++axis)
      layout->vars.push_back(ir::make_var(fmt::format("i{}", axis), ir::kInt32));
    layout->index = TRY(to_indices(TRY(apply(*layout, value, {}, arguments.span())), arguments.span()));
  }
  if (!layout->vars.empty() && layout->vars.size() != buffer->buffer->rank()) {
    Error error =
        bad_layout(arguments, fmt::format("a layout of {} axes for `{}`", layout->vars.size(), buffer->name()));
    error->notes.push_back(declaration_note(*buffer->buffer));
    return error;
  }
  if (buffer->buffer->scope == ir::Scope::global)
    arguments.context().interpreter.diagnostics().add(
        {DiagnosticKind::ignored_request, arguments.span(),
         fmt::format("the layout of the tensor `{}` is not used: its elements lie in the order of its shape, in every "
                     "kernel alike",
                     buffer->name())});
  return {};
}

// T.annotate_layout({buffer: layout}): where the elements of tiles lie is the target's choice so far.
Result<Value> annotate_layout(TileArguments& arguments) {
  auto* map = arguments[0].get_if<DictObject>();
  if (!map)
    return bad_layout(arguments, fmt::format("`T.annotate_layout` takes a dict, not a `{}`", arguments[0].type_name()),
                      "write `T.annotate_layout({buffer: layout})`");
  for (const HashTable::Entry& entry : map->table.entries())
    if (entry.live) TRY(check_entry(arguments, entry.key, entry.value));
  return Value();
}

constexpr const char* kChosenByTheCompiler[] = {"make_swizzled_layout",
                                                "make_linear_layout",
                                                "make_volta_swizzled_layout",
                                                "make_wgmma_swizzled_layout",
                                                "make_gemm_fragment_8x8",
                                                "make_full_bank_swizzled_layout",
                                                "make_half_bank_swizzled_layout",
                                                "make_gemm_fragment_8x8_transposed",
                                                "make_quarter_bank_swizzled_layout",
                                                "make_fully_replicated_layout_fragment"};

}  // namespace

Result<Value> LayoutObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  const std::string_view text = name.text();
  if (text == "index") return as_list(context, index);
  if (text == "thread" && !thread.empty()) return make_expr(context, thread.front());
  if (text == "get_input_shape")
    return make_builtin(std::string(text),
                        [list = as_list(context, shape)](Interpreter&, CallArgs&) { return Result<Value>(list); });
  if (text == "get_output_shape") {
    const Value list = as_list(context, TRY(output_shape(*this, span)));
    return make_builtin(std::string(text), [list](Interpreter&, CallArgs&) { return Result<Value>(list); });
  }
  if (text == "map_forward_index")
    return make_builtin(std::string(text), [self = *this](Interpreter&, CallArgs& args) {
      return mapped(self, args.positional, args.span);
    });
  return Object::get_attribute(interpreter, name, span);
}

Result<Value> LayoutObject::call(Interpreter&, CallArgs args) { return mapped(*this, args.positional, args.span); }

const std::vector<TileFunction>& layout_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"Layout", "shape, forward_fn", "where each element of a buffer lies: `T.Layout(shape, lambda i, j: [...])`",
       make_layout},
      {"Fragment", "shape, forward_fn=, forward_thread_fn=, replicate=, forward_index_fn=",
       "which thread holds each element of a tile, and where", make_fragment},
      {"annotate_layout", "layout_map, allow_reannotation=", "a hint: memory layouts of buffers", annotate_layout},
  };
  return kFunctions;
}

std::shared_ptr<ModuleObject> make_layout_module(const ContextRef& context) {
  auto layouts = std::make_shared<ModuleObject>("tilelang.layout");
  for (const TileFunction& row : layout_functions())
    if (row.name != "annotate_layout") layouts->set(row.name, make_function(context, "tilelang.layout.", row));
  for (const char* name : kChosenByTheCompiler)
    layouts->function(name, [context](Interpreter&, CallArgs&) -> Result<Value> {
      return Value(std::make_shared<LayoutObject>(*context, std::vector<ir::Expr>{}));
    });
  return layouts;
}

}  // namespace tilepilot::stage
