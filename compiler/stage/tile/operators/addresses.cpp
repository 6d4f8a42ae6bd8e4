// Tensors that a program finds by their address.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/scalar_buffer.h"
#include "compiler/ir/visit.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// Made of constants and of sizes and numbers that the program gets: it is known when the kernel begins.
Status check_known(const TileArguments& arguments, const std::vector<ir::Expr>& sizes) {
  const ir::Program& program = arguments.context().builder->program();
  const auto is_parameter = [&](const ir::Var& var) {
    return std::any_of(program.parameters.begin(), program.parameters.end(), [&](const auto& parameter) {
      auto* scalar = std::get_if<ir::Var>(&parameter);
      return scalar && *scalar == var;
    });
  };
  const auto is_symbol = [&](const ir::Var& var) {
    return std::find(program.symbols.begin(), program.symbols.end(), var) != program.symbols.end();
  };
  bool known = true;
  for (const ir::Expr& size : sizes) {
    ir::walk(size, [&](const ir::Expr& part) {
      auto* reference = ir::as<ir::VarRef>(part);
      known &= !ir::as<ir::Load>(part);
      known &= !reference || is_symbol(reference->var) || is_parameter(reference->var);
    });
  }
  if (known) return {};
  return make_error(
      DiagnosticKind::non_constant_shape, arguments.span(1),
      fmt::format("the shape of a tensor by its address, `{}`, is only known within the kernel", arguments.function()),
      "make it of constants, of extents of the program's tensors and of its scalar parameters");
}

// The local integer that keeps the address.
ir::BufferData address_slot(Span span) { return ir::scalar_buffer("address", ir::kInt64, span); }

Result<ir::BufferData> describe_tensor(const TileArguments& arguments) {
  TileContext& context = arguments.context();
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
  return data;
}

// T.make_tensor(ptr, shape, dtype=, strides=): in a kernel, or before the one that uses it.
Result<Value> make_tensor(TileArguments& arguments) {
  TileContext& context = arguments.context();
  if (!context.builder) TRY(require_kernel(arguments));
  ProgramBuilder& builder = *context.builder;
  const Span span = arguments.span(0);
  if (!context.options.raw_memory)
    return make_error(DiagnosticKind::forbidden, arguments.span(),
                      fmt::format("`{}` reaches memory that no tensor lends", arguments.function()),
                      "pass the tensor itself as a parameter");
  ir::BufferData data = TRY(describe_tensor(arguments));
  ir::Expr address = fold_cast(TRY(to_index(arguments[0], "an address", span)), ir::kInt64, span);
  if (builder.in_kernel()) {
    data.address = builder.allocate(address_slot(span));
    TRY(builder.emit(ir::Store{data.address, {ir::int_imm(0, ir::kInt32, span)}, std::move(address)}, span));
    return Value(std::make_shared<BufferObject>(context, builder.allocate(std::move(data))));
  }
  data.address = std::make_shared<ir::BufferData>(address_slot(span));
  auto tensor = std::make_shared<ir::BufferData>(std::move(data));
  TRY(builder.add_addressed({tensor, tensor->address, std::move(address)}));
  return Value(std::make_shared<BufferObject>(context, std::move(tensor)));
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
