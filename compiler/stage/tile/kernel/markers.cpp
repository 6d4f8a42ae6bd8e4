#include "compiler/stage/tile/kernel/markers.h"

#include <fmt/format.h>

#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/library/prim_func.h"

namespace tilepilot::stage {
namespace {

bool is_variable(const Value& value) {
  auto* expression = value.get_if<TileExpr>();
  return expression && std::holds_alternative<ir::VarRef>(expression->expr->node);
}

bool is_program(const Value& value) { return value.get_if<PrimFuncObject>() != nullptr; }

struct MarkerRow {
  std::string_view name;
  bool by_reference;
  TypeMarker::Membership has;
};
constexpr MarkerRow kMarkers[] = {{"PrimExpr", false, is_tile_value},
                                  {"PrimFunc", false, is_program},
                                  {"Var", true, is_variable},
                                  {"Ref", true, is_variable},
                                  {"Buffer", false, is_buffer}};

}  // namespace

bool is_buffer(const Value& value) { return value.get_if<BufferObject>() != nullptr; }

Value instance_check(TypeMarker::Membership has) {
  return std::make_shared<BuiltinFunction>("__instancecheck__", [has](Interpreter&, CallArgs& args) -> Result<Value> {
    return Value(!args.positional.empty() && has(args.positional[0]));
  });
}

Result<Value> TypeMarker::get_attribute(Interpreter& interpreter, Name attribute, Span span) {
  if (attribute.text() == "__instancecheck__") return instance_check(has);
  return Object::get_attribute(interpreter, attribute, span);
}

Value make_marker(std::string_view prefix, std::string_view name) {
  const MarkerRow* row = std::begin(kMarkers);
  while (row->name != name) ++row;
  return std::make_shared<TypeMarker>(fmt::format("{}{}", prefix, name), row->by_reference, row->has);
}

}  // namespace tilepilot::stage
