// Foreign device source: text that goes in front of the kernel, and calls of its functions.
#include <fmt/format.h>

#include "compiler/stage/tile/builder.h"
#include "compiler/stage/tile/dtypes.h"
#include "compiler/stage/tile/expressions.h"
#include "compiler/stage/tile/regions.h"
#include "compiler/stage/tile/tables.h"

namespace tilepilot::stage {
namespace {

Result<Value> import_source(TileArguments& arguments) {
  if (!arguments.context().builder)
    return make_error(DiagnosticKind::outside_kernel, arguments.span(), "`T.import_source` outside a tile program");
  if (arguments.has(0)) arguments.context().builder->program().sources.push_back(TRY(arguments.text(0)));
  return Value();
}

// Addresses are regions: where a buffer begins, or one of its elements.
Result<Value> access_ptr(TileArguments& arguments) {
  TileOperand operand = TRY(tile_operand(arguments, 0));
  if (arguments.has(2) && constant_integer(arguments[2]) != 0)
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(2),
                      "`offset` of `T.access_ptr` is not supported",
                      "name the element, as in `T.access_ptr(A[i, j], \"r\")`");
  operand.region.extent.assign(operand.region.buffer->rank(), 1);
  return Value(std::make_shared<RegionObject>(std::move(operand.region)));
}

ir::Region address_of(const Value& value, Span span) {
  if (auto* region = value.get_if<RegionObject>()) return region->region;
  const ir::Buffer buffer = value.get_if<BufferObject>()->buffer;
  return element_at(buffer, std::vector<ir::Expr>(buffer->rank(), ir::int_imm(0, ir::kInt32, span)), span);
}

// T.call_extern(dtype, name, *args): of dtype "handle" it is a statement, otherwise a value.
Result<Value> call_extern(TileArguments& arguments) {
  TileContext& context = arguments.context();
  ProgramBuilder& builder = *TRY(require_kernel(context, "`T.call_extern`", arguments.span()));
  ir::ExternCall node;
  node.function = TRY(arguments.text(1));
  for (const Value& value : arguments.rest()) {
    if (names_memory(value))
      node.arguments.emplace_back(address_of(value, arguments.span()));
    else
      node.arguments.emplace_back(TRY(to_expr(value, arguments.span())));
  }
  const std::string* type = arguments[0].if_string();
  const bool gives_nothing = arguments[0].is_none() || (type && (*type == "handle" || *type == "void"));
  if (!gives_nothing)
    node.result = builder.make_var("result", TRY(resolve_dtype(context, arguments[0], arguments.span(0))));
  const ir::Var result = node.result;
  TRY(builder.emit(std::move(node), arguments.span()));
  return result ? make_expr(context, ir::var_ref(result, arguments.span())) : Value();
}

}  // namespace

const std::vector<TileFunction>& foreign_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"import_source", "source=", "foreign device source that goes in front of the kernel", import_source},
      {"call_extern", "dtype, name, *args", "calls a function of foreign device source", call_extern},
      {"access_ptr", "base, access_type=, *extents, offset=, extent=, ignore_last_ndim=",
       "the address of a buffer or of one of its elements, for foreign functions", access_ptr},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
