#include "compiler/runtime/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <list>

#include "compiler/ir/bounds.h"
#include "compiler/ir/one_symbol.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/simplify.h"

namespace tilepilot::runtime {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

std::string shape_text(const std::vector<ir::Expr>& shape) {
  std::vector<std::string> extents;
  for (const ir::Expr& extent : shape) extents.push_back(ir::to_text(extent));
  return fmt::format("({})", fmt::join(extents, ", "));
}

bool is_empty(const TensorView& tensor) {
  return std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
}

bool is_contiguous(const TensorView& tensor) {
  int64_t expected = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

class Binder {
 public:
  Binder(const ir::Program& program, Span span) : program_(program), span_(span) {}

  Result<BoundArguments> run(const std::vector<Argument>& arguments) {
    const auto& parameters = program_.parameters;
    if (arguments.size() != parameters.size())
      return bad(fmt::format("`{}` takes {} argument{}, got {}", program_.name, parameters.size(),
                             parameters.size() == 1 ? "" : "s", arguments.size()));
    bound_.buffers.reserve(parameters.size() + program_.workspaces.size());
    bound_.scalars.reserve(parameters.size() + program_.symbols.size());
    tensors_.resize(parameters.size());
    for (size_t k = 0; k < parameters.size(); ++k) {
      if (const auto* buffer = std::get_if<ir::Buffer>(&parameters[k]))
        TRY(bind_tensor(k, *buffer, arguments[k]));
      else
        TRY(bind_scalar(std::get<ir::Var>(parameters[k]), arguments[k]));
    }
    // Extents such as `2 * N` can be checked when all symbols are known.
    for (size_t k = 0; k < parameters.size(); ++k)
      if (const auto* buffer = std::get_if<ir::Buffer>(&parameters[k])) bind_free_strides(*buffer, *tensors_[k]);
    for (size_t k = 0; k < parameters.size(); ++k)
      if (const auto* buffer = std::get_if<ir::Buffer>(&parameters[k])) TRY(check_layout(*buffer, *tensors_[k]));
    return with_symbols();
  }

 private:
  const ir::Program& program_;
  Span span_;
  BoundArguments bound_;
  std::vector<const TensorView*> tensors_;  // by parameter
  std::list<TensorView> changed_;           // those of them that a parameter sees otherwise

  // Launches are many, and most tensors are seen as they are: these are not copied.
  const TensorView& seen(const TensorView& given, ir::DType type) {
    return given.type == type ? given : changed_.emplace_back(as_parameter(given, type));
  }

  // Symbols follow the parameters.
  Result<BoundArguments> with_symbols() {
    for (const ir::Var& symbol : program_.symbols) {
      const auto value = bound_.values.find(symbol.get());
      if (value == bound_.values.end())
        return bad(fmt::format("no argument of `{}` determines the extent `{}`", program_.name, symbol->name));
      if (value->second.lo > INT32_MAX && ir::is_extent(program_, symbol))
        return bad(fmt::format("the extent `{}` of `{}` is {}, more than 2^31 - 1", symbol->name, program_.name,
                               value->second.lo));
      bound_.scalars.push_back(value->second.lo);
    }
    return std::move(bound_);
  }

  Error bad(std::string message, std::string hint = {}) const {
    return make_error(DiagnosticKind::bad_kernel_argument, span_, std::move(message), std::move(hint));
  }

  Status bind_tensor(size_t position, const ir::Buffer& buffer, const Argument& argument) {
    const auto* given = std::get_if<TensorView>(&argument);
    if (given == nullptr) return bad(fmt::format("argument `{}` must be a tensor, got a number", buffer->name));
    const TensorView& tensor = seen(*given, buffer->type);
    tensors_[position] = &tensor;
    if (tensor.type != buffer->type) return bad_type(buffer, tensor);
    if (tensor.shape.size() != buffer->rank()) return bad_shape(buffer, tensor);
    for (size_t axis = 0; axis < buffer->rank(); ++axis) TRY(bind_extent(buffer, tensor, axis));
    for (size_t axis = 0; axis < buffer->strides.size(); ++axis) bind_stride(buffer, tensor, axis);
    if (tensor.data == nullptr && !is_empty(tensor))
      return bad(fmt::format("argument `{}` has no memory", buffer->name));
    bound_.buffers.push_back(tensor.data);
    return {};
  }

  Error bad_type(const ir::Buffer& buffer, const TensorView& tensor) const {
    const std::string wanted = ir::to_string(buffer->type);
    std::string message =
        fmt::format("argument `{}` must have dtype `{}`, got `{}`", buffer->name, wanted, ir::to_string(tensor.type));
    if (buffer->type.is_nibble())
      return bad(std::move(message),
                 fmt::format("pass a `torch.{}` tensor with two elements a byte, the first one in the lower half",
                             buffer->type == ir::kInt4 ? "int8" : "uint8"));
    if (buffer->type == ir::kTensorFloat32) return bad(std::move(message), "pass a `torch.float32` tensor");
    return bad(std::move(message), fmt::format("convert it first, for example with `.to(torch.{})`", wanted));
  }

  Error bad_shape(const ir::Buffer& buffer, const TensorView& tensor) const {
    return bad(fmt::format("argument `{}` must have shape {}, got {}", buffer->name, shape_text(buffer->shape),
                           shape_text(tensor.shape)));
  }

  Status bind_extent(const ir::Buffer& buffer, const TensorView& tensor, size_t axis) {
    const int64_t actual = tensor.shape[axis];
    if (const auto constant = ir::constant_int(buffer->shape[axis])) {
      if (*constant != actual) return bad_shape(buffer, tensor);
      return {};
    }
    const std::optional<ir::OneSymbol> form = symbol_in(buffer->shape[axis]);
    if (!form) return {};
    const std::optional<int64_t> value = form->solve(actual);
    const auto extent = [&] { return ir::to_text(buffer->shape[axis]); };
    if (!value)
      return bad(fmt::format("axis {} of argument `{}` must be `{}`, got {}", axis, buffer->name, extent(), actual));
    const auto [known, fresh] = bound_.values.emplace(form->symbol.get(), ir::Bounds{*value, *value});
    if (!fresh && known->second.lo != *value)
      return bad(fmt::format("axis {} of argument `{}` must be `{}` = {}, got {}", axis, buffer->name, extent(),
                             evaluate(buffer->shape[axis], bound_.values), actual));
    return {};
  }

  std::optional<ir::OneSymbol> symbol_in(const ir::Expr& size) const {
    std::optional<ir::OneSymbol> form = ir::one_symbol(size);
    const auto& symbols = program_.symbols;
    if (form && std::find(symbols.begin(), symbols.end(), form->symbol) == symbols.end()) form.reset();
    return form;
  }

  // Whether the strides agree is seen when all are known.
  void bind_stride(const ir::Buffer& buffer, const TensorView& tensor, size_t axis) {
    if (tensor.shape[axis] == 1 || is_empty(tensor)) return;
    const std::optional<ir::OneSymbol> form = symbol_in(buffer->strides[axis]);
    const std::optional<int64_t> value = form ? form->solve(tensor.strides[axis]) : std::nullopt;
    if (value) bound_.values.emplace(form->symbol.get(), ir::Bounds{*value, *value});
  }

  // Strides of axes that nobody steps along say nothing, but their symbols need a value.
  void bind_free_strides(const ir::Buffer& buffer, const TensorView& tensor) {
    for (size_t axis = 0; axis < buffer->strides.size(); ++axis) {
      const auto* ref = std::get_if<ir::VarRef>(&buffer->strides[axis]->node);
      if (ref != nullptr) bound_.values.emplace(ref->var.get(), ir::Bounds{tensor.strides[axis], tensor.strides[axis]});
    }
  }

  Status check_layout(const ir::Buffer& buffer, const TensorView& tensor) const {
    for (size_t axis = 0; axis < buffer->rank(); ++axis)
      if (!ir::constant_int(buffer->shape[axis]) && evaluate(buffer->shape[axis], bound_.values) != tensor.shape[axis])
        return bad_shape(buffer, tensor);
    if (is_empty(tensor)) return {};
    if (buffer->strides.empty()) {
      if (is_contiguous(tensor)) return {};
      return bad(
          fmt::format("argument `{}` must be contiguous, got strides {}", buffer->name, shape_text(tensor.strides)),
          "call `.contiguous()` on it first");
    }
    for (size_t axis = 0; axis < buffer->rank(); ++axis)
      if (tensor.shape[axis] != 1 && evaluate(buffer->strides[axis], bound_.values) != tensor.strides[axis])
        return bad(fmt::format("argument `{}` must have strides {}, got {}", buffer->name, shape_text(buffer->strides),
                               shape_text(tensor.strides)));
    return {};
  }

  Status bind_scalar(const ir::Var& var, const Argument& argument) {
    if (std::holds_alternative<TensorView>(argument))
      return bad(fmt::format("argument `{}` must be a number, got a tensor", var->name));
    const auto* integer = std::get_if<int64_t>(&argument);
    if (var->type.is_float()) {
      const double value = integer != nullptr ? static_cast<double>(*integer) : std::get<double>(argument);
      bound_.scalars.push_back(std::bit_cast<int64_t>(value));
      return {};
    }
    if (integer == nullptr)
      return bad(fmt::format("argument `{}` must be of type `{}`, got {}", var->name, ir::to_string(var->type),
                             std::get<double>(argument)));
    const ir::Bounds allowed = ir::type_bounds(var->type);
    if (*integer < allowed.lo || *integer > allowed.hi)
      return bad(
          fmt::format("argument `{}` is {}, which `{}` cannot hold", var->name, *integer, ir::to_string(var->type)));
    bound_.scalars.push_back(*integer);
    bound_.values[var.get()] = {*integer, *integer};
    return {};
  }
};

}  // namespace

TensorView as_parameter(TensorView tensor, ir::DType type) {
  if (type == ir::kTensorFloat32 && tensor.type == ir::kFloat32) tensor.type = type;
  const bool is_byte = tensor.type == ir::kInt8 || tensor.type == ir::kUInt8;
  if (!type.is_nibble() || !is_byte || tensor.shape.empty()) return tensor;
  tensor.type = type;
  tensor.shape.back() *= 2;
  for (size_t axis = 0; axis + 1 < tensor.strides.size(); ++axis) tensor.strides[axis] *= 2;
  return tensor;
}

Result<BoundArguments> bind_arguments(const ir::Program& program, const std::vector<Argument>& arguments, Span span) {
  return Binder(program, span).run(arguments);
}

int64_t evaluate(const ir::Expr& expr, const ir::VarRanges& values) {
  if (const auto constant = ir::constant_int(expr)) return *constant;
  const ir::Bounds found = ir::bounds(expr, values);
  if (found.is_constant()) return found.lo;
  // Bounds do not follow operations on bits, and know no sum that begins anew.
  const ir::Expr known = ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
    const auto value = values.find(var.get());
    return value == values.end() ? nullptr : ir::int_imm(value->second.lo, var->type);
  });
  return ir::constant_int(passes::simplify(known, {})).value_or(found.lo);
}

}  // namespace tilepilot::runtime
