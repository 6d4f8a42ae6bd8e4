// Other names for memory: reshaped and retyped buffers, and workspaces that the program allocates.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text/text.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// An extent computed in 64 bits, in which none wraps around.
ir::Expr widened(const ir::Expr& extent, Span span) {
  const auto* binary = ir::as<ir::Binary>(extent);
  const bool is_linear =
      binary && (binary->op == ir::BinaryOp::add || binary->op == ir::BinaryOp::sub || binary->op == ir::BinaryOp::mul);
  if (!is_linear) return fold_cast(extent, ir::kInt64, span);
  return fold_binary(binary->op, widened(binary->left, span), widened(binary->right, span), span);
}

ir::Expr bits_of(const ir::DType type, const std::vector<ir::Expr>& shape, Span span) {
  ir::Expr bits = ir::int_imm(type.bits, ir::kInt64, span);
  for (const ir::Expr& extent : shape) bits = fold_binary(ir::BinaryOp::mul, bits, widened(extent, span), span);
  return bits;
}

// A product by what is multiplied: a number, and the rest.
struct Product {
  int64_t number = 1;
  std::vector<ir::Expr> factors;

  explicit Product(const ir::Expr& expr) { multiply(expr); }

  bool equals(Product other) const {
    for (const ir::Expr& factor : factors) {
      const auto same = std::find_if(other.factors.begin(), other.factors.end(),
                                     [&](const ir::Expr& each) { return ir::structurally_equal(each, factor); });
      if (same == other.factors.end()) return false;
      other.factors.erase(same);
    }
    return other.factors.empty() && number == other.number;
  }

 private:
  void multiply(const ir::Expr& expr) {
    const auto* binary = ir::as<ir::Binary>(expr);
    if (binary && binary->op == ir::BinaryOp::mul) {
      multiply(binary->left);
      multiply(binary->right);
      return;
    }
    int64_t product = 0;
    const auto constant = ir::constant_int(expr);
    if (constant && !__builtin_mul_overflow(number, *constant, &product))
      number = product;
    else
      factors.push_back(expr);
  }
};

bool are_equal(const ir::Expr& a, const ir::Expr& b) {
  return constant_difference(a, b, nullptr) == 0 || Product(a).equals(Product(b));
}

Error wrong_size(const ViewRequest& request, const ir::BufferData& source, const ir::BufferData& view) {
  Error error = make_error(DiagnosticKind::shape_mismatch, request.span,
                           fmt::format("`{}` cannot see `{}` as {}: it is {}", request.function, source.name,
                                       describe(view), describe(source)),
                           "both shapes must take the same number of bits");
  error->notes.push_back(declaration_note(source));
  return error;
}

Result<Value> named_view(TileArguments& arguments, Value shape, std::optional<ir::DType> type) {
  auto* source = arguments[0].get_if<BufferObject>();
  if (!source)
    return make_error(
        DiagnosticKind::type_error, arguments.span(0),
        fmt::format("`{}` takes a whole buffer, not a `{}`", arguments.function(), arguments[0].type_name()));
  return view_of(arguments.context(), *source, {arguments.function(), std::move(shape), type, arguments.span()});
}

Result<Value> reshape(TileArguments& arguments) { return named_view(arguments, arguments[1], std::nullopt); }

Result<Value> view(TileArguments& arguments) {
  std::optional<ir::DType> type;
  if (arguments.has(2)) type = TRY(resolve_dtype(arguments.context(), arguments[2], arguments.span(2)));
  return named_view(arguments, arguments.has(1) ? arguments[1] : Value(), type);
}

}  // namespace

Result<Value> alloc_global(TileArguments& arguments) {
  TileContext& context = arguments.context();
  if (!context.builder)
    return make_error(DiagnosticKind::outside_kernel, arguments.span(),
                      fmt::format("`{}` outside a tile program", arguments.function()),
                      "put it into a function decorated with `@T.prim_func` or `@tilelang.jit`");
  ir::BufferData data;
  data.name = "workspace";
  data.span = arguments.span();
  data.shape = TRY(to_shape(arguments[0], "an extent of `T.alloc_global`", arguments.span(0)));
  data.type = TRY(resolve_dtype(context, arguments[1], arguments.span(1)));
  for (const ir::Expr& extent : data.shape) TRY(context.builder->check(extent, arguments.span(0)));
  TRY(check_rows(data));
  return Value(std::make_shared<BufferObject>(context, context.builder->add_workspace(std::move(data))));
}

Result<Value> view_of(TileContext& context, const BufferObject& source, const ViewRequest& request) {
  ProgramBuilder& builder = *TRY(require_kernel(context, fmt::format("`{}`", request.function), request.span));
  const ir::Buffer base = source.buffer->base ? source.buffer->base : ir::Buffer(source.buffer);
  if (base->address)
    return make_error(DiagnosticKind::unsupported_tile_feature, request.span,
                      fmt::format("`{}` is memory by its address, of which there are no views", base->name),
                      "make another tensor of the address");
  if (!base->strides.empty())
    return make_error(DiagnosticKind::unsupported_tile_feature, request.span,
                      fmt::format("`{}` has strides, so its elements do not follow one another", base->name),
                      "copy it to a tile first");
  ir::BufferData data{source.name(), request.type.value_or(base->type), base->scope, {}, {}, request.span, base};
  data.shape = request.shape.is_none() ? source.buffer->shape : TRY(to_shape(request.shape, "an extent", request.span));
  const ir::Expr own = bits_of(data.type, data.shape, request.span),
                 of_base = bits_of(base->type, base->shape, request.span);
  if (!are_equal(own, of_base)) return wrong_size(request, *base, data);
  TRY(check_rows(*base));
  TRY(check_rows(data));
  return Value(std::make_shared<BufferObject>(context, builder.allocate(std::move(data))));
}

const std::vector<TileFunction>& view_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"reshape", "src, shape", "the same memory as a buffer of another shape", reshape},
      {"view", "src, shape=, dtype=", "the same memory as a buffer of another shape and dtype", view},
      {"alloc_global", "shape, dtype", "global memory of the program's own, fresh at each call and uninitialised",
       alloc_global},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
