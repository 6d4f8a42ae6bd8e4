// Foreign device source: text that goes in front of the kernel, and calls of its functions.
#include <fmt/format.h>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/extern_maths.h"
#include "compiler/stage/tile/operators/tables.h"

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

// T.call_extern(dtype, name, *args), where `dtype=` moves to the front: of dtype "handle" it is a statement, otherwise
// a value.
Result<Value> call_extern(TileArguments& arguments) {
  TileContext& context = arguments.context();
  ProgramBuilder& builder = *TRY(require_kernel(context, "`T.call_extern`", arguments.span()));
  std::vector<Value> given = {arguments[0]};
  given.insert(given.end(), arguments.rest().begin(), arguments.rest().end());
  if (arguments.has(1)) given.insert(given.begin(), arguments[1]);
  const std::string* function = given.size() > 1 ? given[1].if_string() : nullptr;
  if (!function)
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                      "`T.call_extern` takes a dtype and the name of a function first",
                      "as in `T.call_extern(\"handle\", \"decode\", A.data)`");
  const std::string* type = given[0].if_string();
  const bool gives_nothing = given[0].is_none() || (type && (*type == "handle" || *type == "void"));
  if (!gives_nothing) {
    const ir::DType result = TRY(resolve_dtype(context, given[0], arguments.span()));
    ExternMathsCall call{*function, {given.begin() + 2, given.end()}, result, arguments.span()};
    if (auto value = TRY(call_extern_maths(context, std::move(call)))) return *std::move(value);
  }
  ir::ExternCall node;
  node.function = *function;
  for (size_t i = 2; i < given.size(); ++i) {
    if (names_memory(given[i]))
      node.arguments.emplace_back(address_of(given[i], arguments.span()));
    else
      node.arguments.emplace_back(TRY(to_expr(given[i], arguments.span())));
  }
  if (!gives_nothing) node.result = builder.make_var("result", TRY(resolve_dtype(context, given[0], arguments.span())));
  const ir::Var result = node.result;
  TRY(builder.emit(std::move(node), arguments.span()));
  return result ? make_expr(context, ir::var_ref(result, arguments.span())) : Value();
}

}  // namespace

const std::vector<TileFunction>& foreign_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"import_source", "source=", "foreign device source that goes in front of the kernel", import_source},
      {"call_extern", "first, *args, dtype=",
       "calls a function of foreign device source; those of C's mathematics (`expf`, `fmaxf`, `__powf`, ...) run here "
       "too",
       call_extern},
      {"access_ptr", "base, access_type=, *extents, offset=, extent=, ignore_last_ndim=",
       "the address of a buffer or of one of its elements, for foreign functions", access_ptr},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
