#include "compiler/stage/tile/buffers/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/bounds.h"
#include "compiler/ir/visit.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/builder.h"
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
  if (result.empty()) return make_error(DiagnosticKind::value_error, span, "a layout gives no index");
  return result;
}

Result<std::vector<ir::Expr>> to_thread(const Value& value, Span span) {
  auto thread = TRY(to_indices(value, span));
  if (thread.size() == 1) return thread;
  return make_error(DiagnosticKind::value_error, span,
                    fmt::format("a fragment's element has one thread, and this gives {}", thread.size()));
}

// What a layout's function gives for its variables; with replicas these are one more argument.
Result<Value> apply(const LayoutObject& layout, const Value& function, const std::vector<ir::Var>& extra, Span span) {
  CallArgs call;
  call.span = span;
  for (const ir::Var& var : layout.vars) call.positional.push_back(make_expr(layout.context, ir::var_ref(var, span)));
  for (const ir::Var& var : extra) call.positional.push_back(make_expr(layout.context, ir::var_ref(var, span)));
  const bool before = std::exchange(layout.context.maps_indices, true);
  auto result = layout.context.interpreter.call(function, std::move(call));
  layout.context.maps_indices = before;
  return result;
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

void add_variables(LayoutObject& layout) {
  for (size_t axis = 0; axis < layout.shape.size(); ++axis)
    layout.vars.push_back(ir::make_var(fmt::format("i{}", axis), ir::kInt32));
}

// T.Layout(shape, forward_fn)
Result<Value> make_layout(TileArguments& arguments) {
  auto layout = TRY(layout_over(arguments.context(), arguments[0], arguments.span(0)));
  layout->index = TRY(to_indices(TRY(apply(*layout, arguments[1], {}, arguments.span())), arguments.span()));
  return Value(std::move(layout));
}

}  // namespace

Status check_replicas(int64_t replicas, Span span) {
  constexpr int64_t kMostThreads = 1024;
  if (replicas >= 1 && replicas <= kMostThreads) return {};
  return make_error(DiagnosticKind::value_error, span, fmt::format("a fragment has {} replicas", replicas),
                    fmt::format("a block has at most {} threads", kMostThreads));
}

namespace {

// T.Fragment(shape, forward_fn=, forward_thread_fn=, replicate=, forward_index_fn=): forward_fn gives (thread, index).
Result<Value> make_fragment(TileArguments& arguments) {
  const Span span = arguments.span();
  auto layout = TRY(layout_over(arguments.context(), arguments[0], arguments.span(0)));
  std::vector<ir::Var> replica;
  layout->replicas = TRY(arguments.integer_or(3, 1));
  TRY(check_replicas(layout->replicas, span));
  if (layout->replicas != 1) replica = {layout->replica = ir::make_var("replica", ir::kInt32)};
  if (arguments.has(1)) {
    const Value both = TRY(apply(*layout, arguments[1], replica, span));
    auto* items = sequence_items(both);
    if (!items || items->size() != 2)
      return make_error(DiagnosticKind::value_error, span,
                        "`forward_fn` of `T.Fragment` must give a thread and an index");
    layout->thread = TRY(to_thread(items->front(), span));
    layout->index = TRY(to_indices(items->back(), span));
    return Value(std::move(layout));
  }
  if (!arguments.has(2))
    return make_error(DiagnosticKind::wrong_arguments, span, "`T.Fragment` needs `forward_fn` or `forward_thread_fn`");
  layout->thread = TRY(to_thread(TRY(apply(*layout, arguments[2], replica, span)), span));
  if (arguments.has(4)) layout->index = TRY(to_indices(TRY(apply(*layout, arguments[4], {}, span)), span));
  return Value(std::move(layout));
}

Error bad_layout(const TileArguments& arguments, std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::value_error, arguments.span(), std::move(message), std::move(hint));
}

// `value`: a layout, or the function of one.
Result<std::shared_ptr<LayoutObject>> to_layout(const TileArguments& arguments, const BufferObject& buffer,
                                                const Value& value) {
  if (auto layout = value.get_shared<LayoutObject>()) return layout;
  auto* object = value.if_object();
  if (!object || !*object || !(*object)->is_callable())
    return bad_layout(arguments, fmt::format("the layout of `{}` is a `{}`", buffer.name(), value.type_name()),
                      "write `T.Layout(shape, function)` or one of `tilelang.layout`");
  auto layout = layout_of(arguments.context(), *buffer.buffer);
  layout->index = TRY(to_indices(TRY(apply(*layout, value, {}, arguments.span())), arguments.span()));
  return layout;
}

bool is_of_variables(const ir::Expr& expr, const std::vector<ir::Var>& vars) {
  bool known = true;
  ir::walk(expr, [&](const ir::Expr& part) {
    const auto* ref = ir::as<ir::VarRef>(part);
    known &= part->type.is_int() && ir::as<ir::Load>(part) == nullptr;
    known &= ref == nullptr || std::find(vars.begin(), vars.end(), ref->var) != vars.end();
  });
  return known;
}

// @pre the buffer is a tile of the layout's rank
Result<ir::RequestedLayout> to_request(const LayoutObject& layout, const ir::Buffer& buffer, Span span) {
  ir::RequestedLayout request{buffer, layout.vars, layout.replicas, nullptr, nullptr, span};
  if (layout.replica) request.vars.push_back(layout.replica);
  if (!layout.thread.empty()) request.thread = layout.thread.front();
  if (!layout.index.empty()) {
    const std::vector<ir::Expr> shape = TRY(output_shape(layout, span));
    request.position = ir::int_imm(0);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const auto rows =
          fold_binary(ir::BinaryOp::mul, request.position, ir::cast(shape[axis], request.position->type), span);
      const ir::Expr place = ir::cast(layout.index[axis], rows->type);
      request.position = fold_binary(ir::BinaryOp::add, rows, place, span);
    }
  }
  for (const ir::Expr& expr : {request.thread, request.position})
    if (expr && !is_of_variables(expr, request.vars))
      return make_error(DiagnosticKind::value_error, span,
                        fmt::format("the layout of `{}` depends on more than where the element stands", buffer->name));
  return request;
}

void announce_unused(const TileArguments& arguments, std::string why) {
  arguments.context().interpreter.diagnostics().add(
      {DiagnosticKind::ignored_request, arguments.span(), std::move(why)});
}

Status annotate(const TileArguments& arguments, const Value& key, const Value& value) {
  auto* buffer = key.get_if<BufferObject>();
  if (!buffer)
    return bad_layout(arguments,
                      fmt::format("`T.annotate_layout` maps buffers to layouts, not a `{}`", key.type_name()));
  const auto layout = TRY(to_layout(arguments, *buffer, value));
  const ir::Scope scope = buffer->buffer->scope;
  if (layout->vars.size() != buffer->buffer->rank()) {
    Error error =
        bad_layout(arguments, fmt::format("a layout of {} axes for `{}`", layout->vars.size(), buffer->name()));
    error->notes.push_back(declaration_note(*buffer->buffer));
    return error;
  }
  for (size_t axis = 0; axis < layout->shape.size(); ++axis) {
    const auto own = ir::constant_int(layout->shape[axis]), wanted = ir::constant_int(buffer->buffer->shape[axis]);
    if (own && wanted && own != wanted)
      return bad_layout(arguments, fmt::format("a layout of {} elements along axis {} of `{}`, which has {}", *own,
                                               axis, buffer->name(), *wanted));
  }
  if (scope == ir::Scope::shared && !layout->thread.empty())
    return bad_layout(arguments, fmt::format("`{}` lies in shared memory: no thread holds it", buffer->name()),
                      "write `T.Layout`");
  if (scope == ir::Scope::global) {
    announce_unused(arguments, fmt::format("the layout of the tensor `{}` is not used: its elements lie in the order "
                                           "of its shape, in every kernel alike",
                                           buffer->name()));
  } else if (scope != ir::Scope::shared && (scope != ir::Scope::fragment || layout->thread.empty())) {
    announce_unused(arguments, fmt::format("the layout of `{}` is not used: each thread has its own, in the order of "
                                           "its shape",
                                           buffer->name()));
  } else {
    ProgramBuilder& builder = *TRY(require_kernel(arguments));
    builder.request_layout(TRY(to_request(*layout, buffer->buffer, arguments.span())));
  }
  return {};
}

// T.annotate_layout({buffer: layout})
Result<Value> annotate_layout(TileArguments& arguments) {
  auto* map = arguments[0].get_if<DictObject>();
  if (!map)
    return bad_layout(arguments, fmt::format("`T.annotate_layout` takes a dict, not a `{}`", arguments[0].type_name()),
                      "write `T.annotate_layout({buffer: layout})`");
  for (const HashTable::Entry& entry : map->table.entries())
    if (entry.live) TRY(annotate(arguments, entry.key, entry.value));
  return Value();
}

}  // namespace

Result<std::shared_ptr<LayoutObject>> layout_over(TileContext& context, const Value& shape, Span span) {
  auto layout = std::make_shared<LayoutObject>(context, TRY(to_shape(shape, "an extent of a layout", span)));
  add_variables(*layout);
  return layout;
}

std::shared_ptr<LayoutObject> layout_of(TileContext& context, const ir::BufferData& buffer) {
  auto layout = std::make_shared<LayoutObject>(context, buffer.shape);
  add_variables(*layout);
  return layout;
}

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
      {"annotate_layout",
       "layout_map, allow_reannotation=", "where elements of tiles lie: in shared memory, in threads", annotate_layout},
  };
  return kFunctions;
}

std::shared_ptr<ModuleObject> make_layout_module(const ContextRef& context) {
  auto layouts = std::make_shared<ModuleObject>("tilelang.layout");
  for (const TileFunction& row : layout_functions())
    if (row.name != "annotate_layout") layouts->set(row.name, make_function(context, "tilelang.layout.", row));
  for (const TileFunction& row : named_layouts())
    layouts->set(row.name, make_function(context, "tilelang.layout.", row));
  return layouts;
}

}  // namespace tilepilot::stage
