// Tensors that a program finds by their address.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/stage/tile/buffers.h"
#include "compiler/stage/tile/builder.h"
#include "compiler/stage/tile/dtypes.h"
#include "compiler/stage/tile/expressions.h"
#include "compiler/stage/tile/fold.h"
#include "compiler/stage/tile/tables.h"

namespace tilepilot::stage {
namespace {

// Made of constants and sizes of the program: it is known when the kernel begins.
Status check_known(const TileArguments& arguments, const std::vector<ir::Expr>& sizes) {
  const std::vector<ir::Var>& symbols = arguments.context().builder->program().symbols;
  bool known = true;
  for (const ir::Expr& size : sizes) {
    ir::walk(size, [&](const ir::Expr& part) {
      auto* reference = ir::as<ir::VarRef>(part);
      known &= !ir::as<ir::Load>(part);
      known &= !reference || std::find(symbols.begin(), symbols.end(), reference->var) != symbols.end();
    });
  }
  if (known) return {};
  return make_error(
      DiagnosticKind::non_constant_shape, arguments.span(1),
      fmt::format("the shape of a tensor by its address, `{}`, is only known within the kernel", arguments.function()),
      "make it of constants and of extents of the program's tensors");
}

// A local integer keeps the address.
Result<ir::Buffer> stored_address(const TileArguments& arguments) {
  ProgramBuilder& builder = *arguments.context().builder;
  Span span = arguments.span(0);
  ir::Expr address = TRY(to_index(arguments[0], "an address", span));
  ir::BufferData data;
  data.name = "address";
  data.type = ir::kInt64;
  data.scope = ir::Scope::local;
  data.shape = {ir::int_imm(1, ir::kInt32, span)};
  data.span = span;
  ir::Buffer slot = builder.allocate(std::move(data));
  TRY(builder.emit(ir::Store{slot, {ir::int_imm(0, ir::kInt32, span)}, fold_cast(std::move(address), ir::kInt64, span)},
                   span));
  return slot;
}

// T.make_tensor(ptr, shape, dtype=, strides=)
Result<Value> make_tensor(TileArguments& arguments) {
  TileContext& context = arguments.context();
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  if (!context.options.raw_memory)
    return make_error(DiagnosticKind::forbidden, arguments.span(),
                      fmt::format("`{}` reaches memory that no tensor lends", arguments.function()),
                      "pass the tensor itself as a parameter");
  ir::BufferData data;
  data.name = "tensor";
  data.span = arguments.span();
  data.shape = TRY(to_shape(arguments[1], "an extent", arguments.span(1)));
  data.type = arguments.has(2) ? TRY(resolve_dtype(context, arguments[2], arguments.span(2))) : ir::kFloat32;
  if (arguments.has(3)) data.strides = TRY(to_shape(arguments[3], "a stride", arguments.span(3)));
  if (data.type.is_nibble())
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(2),
                      fmt::format("`{}` makes no tensors of {}", arguments.function(), ir::to_string(data.type)),
                      "make one of uint8 and compute both halves of its elements");
  if (!data.strides.empty() && data.strides.size() != data.shape.size())
    return make_error(DiagnosticKind::shape_mismatch, arguments.span(3),
                      fmt::format("{} strides for {} axes", data.strides.size(), data.shape.size()));
  TRY(check_known(arguments, data.shape));
  TRY(check_known(arguments, data.strides));
  data.address = TRY(stored_address(arguments));
  return Value(std::make_shared<BufferObject>(context, builder.allocate(std::move(data))));
}

}  // namespace

const std::vector<TileFunction>& address_functions() {
  constexpr std::string_view kParameters = "ptr, shape, dtype=, strides=";
  static const std::vector<TileFunction> kFunctions = {
      {"make_tensor", kParameters, "the tensor that begins at an address; not in candidates that are judged",
       make_tensor},
      {"make_tensor_from_addr", kParameters, "another name of `T.make_tensor`", make_tensor},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
