#include "compiler/stage/tile/kernel/macro.h"

#include <fmt/format.h>

#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/markers.h"

namespace tilepilot::stage {
namespace {

// Computed once, at the call.
Result<ir::Expr> fixed(ProgramBuilder& builder, const ir::Expr& expr, std::string name, Span span) {
  if (is_atom(expr)) return expr;
  return builder.let(std::move(name), expr, span);
}

Result<std::vector<ir::Expr>> fixed(ProgramBuilder& builder, const std::vector<ir::Expr>& exprs, Span span) {
  std::vector<ir::Expr> all;
  for (const ir::Expr& expr : exprs) all.push_back(TRY(fixed(builder, expr, "", span)));
  return all;
}

Result<Value> by_value(TileContext& context, const Value& value, Name name, Span span) {
  if (!is_tile_value(value)) return value;
  ir::Expr expr = TRY(to_expr(value, span));
  if (auto constant = ir::constant_int(expr); constant && expr->type == ir::kInt32) return Value(*constant);
  return make_expr(context, TRY(fixed(*context.builder, expr, name.str(), span)));
}

// The caller's place; null if the value is none.
Result<std::optional<Value>> by_reference(TileContext& context, const Value& value, Span span) {
  if (value.get_if<VarObject>()) return std::optional<Value>(value);
  if (auto* object = value.get_if<RegionObject>()) {
    ir::Region region = object->region;
    region.start = TRY(fixed(*context.builder, region.start, span));
    std::vector<ir::Expr> extents = TRY(fixed(*context.builder, object->extents, span));
    return std::optional<Value>(std::make_shared<RegionObject>(std::move(region), std::move(extents)));
  }
  auto* expression = value.get_if<TileExpr>();
  auto* load = expression ? std::get_if<ir::Load>(&expression->expr->node) : nullptr;
  if (!load) return std::optional<Value>();
  auto element = std::make_shared<VarObject>(context, load->buffer, TRY(fixed(*context.builder, load->indices, span)));
  element->named = true;
  return std::optional<Value>(std::move(element));
}

// What a macro returns are values too.
Value as_value(TileContext& context, const Value& value, Span span) {
  if (auto* variable = value.get_if<VarObject>()) return make_expr(context, variable->load(span));
  auto* tuple = value.get_if<TupleObject>();
  if (!tuple || tuple->fields) return value;
  std::vector<Value> items;
  for (const Value& item : tuple->items) items.push_back(as_value(context, item, span));
  return make_tuple(std::move(items));
}

}  // namespace

Result<Value> MacroObject::pass(size_t parameter, const Value& value, Span span) const {
  Name name = (*function->parameters)[parameter].name;
  bool annotated = parameter < function->annotations.size() && function->annotations[parameter];
  auto* marker = annotated ? function->annotations[parameter]->get_if<TypeMarker>() : nullptr;
  if (!marker || !marker->by_reference) return by_value(context, value, name, span);
  if (auto place = TRY(by_reference(context, value, span))) return *std::move(place);
  Error error = make_error(DiagnosticKind::value_error, span,
                           fmt::format("`{}` of the macro `{}` refers to a variable, an element or a slice, not to a "
                                       "`{}`",
                                       name.text(), function->name.text(), value.type_name()),
                           "pass what `T.alloc_var` made, or `buffer[i]`");
  error->note((*function->parameters)[parameter].span, fmt::format("`{}` is a `{}`", name.text(), marker->name));
  return error;
}

Result<Value> MacroObject::call(Interpreter& interpreter, CallArgs args) {
  Span span = args.span;
  TRY(require_kernel(context, fmt::format("the macro `{}`", function->name.text()), span));
  TileContext::TraceGuard tracing(context, context.builder, context.declarations);
  std::vector<Value> parameters = TRY(interpreter.bind_arguments(*function, std::move(args)));
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] = TRY(pass(i, parameters[i], span));
  return as_value(context, TRY(interpreter.run_function(*function, std::move(parameters), span)), span);
}

Result<Value> MacroObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (name.text() == "__name__") return Value(function->name.text());
  return Object::get_attribute(interpreter, name, span);
}

}  // namespace tilepilot::stage
