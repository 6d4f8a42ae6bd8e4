#include "compiler/targets/c/context.h"

#include <algorithm>

#include "compiler/targets/c/expr.h"

namespace tilepilot::targets::c {

std::string stored_type(ir::DType type) {
  if (type.is_bool()) return "uint8_t";
  if (type == ir::kBFloat16) return "bfloat16";
  if (type == ir::kFloat16) return "float16";
  if (type == ir::kFloat32) return "float";
  if (type == ir::kFloat64) return "double";
  if (type == ir::kFloat8E4M3) return "float8_e4m3";
  if (type == ir::kFloat8E5M2) return "float8_e5m2";
  if (type == ir::kFloat8E8M0) return "float8_e8m0";
  if (type == ir::kFloat4E2M1) return "float4_e2m1";
  if (type == ir::kTensorFloat32) return "tfloat32";
  if (type.is_nibble()) return type == ir::kInt4 ? "int4" : "uint4";
  return fmt::format("{}int{}_t", type.code == ir::TypeCode::unsigned_int ? "u" : "", int{type.bits});
}

std::string computed_type(ir::DType type) {
  if (type.is_bool()) return "bool";
  if (type.is_small_float()) return "float";
  return stored_type(type.is_nibble() ? ir::DType{type.code, 8} : type);
}

int64_t ScratchPlan::reserve(int64_t bytes) {
  const int64_t at = bytes_;
  bytes_ += (bytes + 63) / 64 * 64;
  return at;
}

const std::string& Context::name(const ir::Var& var) {
  const auto found = lanes.values.find(var.get());
  return found == lanes.values.end() ? names.of(var) : found->second;
}

std::string Context::temporary(const std::string& wish, const std::string& type, int64_t elements, int element_bytes) {
  std::string name = names.fresh(wish);
  const int64_t at = scratch.reserve(elements * element_bytes);
  declarations.line("{0}* __restrict {1} = reinterpret_cast<{0}*>(scratch + {2});", type, name, at);
  return name;
}

void Context::fail(Span span, std::string message, std::string hint) {
  if (!error) error = make_error(DiagnosticKind::unsupported_tile_feature, span, std::move(message), std::move(hint));
}

void Context::note_scalar(ScalarCode code) {
  if (std::find(scalar_code.begin(), scalar_code.end(), code) == scalar_code.end())
    scalar_code.push_back(std::move(code));
}

bool is_streamed(const ir::Buffer& buffer) {
  // Larger than what most machines keep in their caches until the next reader comes.
  constexpr int64_t kLargeTensor = 16 << 20;
  if (buffer->scope != ir::Scope::global || !buffer->strides.empty() || buffer->type.bytes() < 2) return false;
  int64_t bytes = buffer->type.bytes();
  for (const ir::Expr& extent : buffer->shape) bytes *= ir::constant_int(extent).value_or(0);
  return bytes >= kLargeTensor;
}

std::vector<int64_t> extents(const ir::Buffer& buffer) {
  std::vector<int64_t> result;
  for (const ir::Expr& extent : buffer->shape) result.push_back(ir::constant_int(extent).value_or(0));
  return result;
}

std::vector<std::string> strides(Context& context, const ir::Buffer& buffer) {
  const OperationCount::Pause known_before(context.operations);  // they are the same all through the launch
  std::vector<std::string> result(buffer->rank());
  if (!buffer->strides.empty()) {
    for (size_t axis = 0; axis < buffer->rank(); ++axis) result[axis] = factor(context, buffer->strides[axis]);
    return result;
  }
  int64_t constant = 1;
  std::string symbolic;
  for (size_t axis = buffer->rank(); axis-- > 0;) {
    result[axis] = symbolic.empty() ? fmt::format("{}", constant)
                   : constant == 1  ? symbolic
                                    : fmt::format("{} * {}", symbolic, constant);
    if (const auto extent = ir::constant_int(buffer->shape[axis]))
      constant *= *extent;
    else
      symbolic += (symbolic.empty() ? "" : " * ") + factor(context, buffer->shape[axis]);
  }
  return result;
}

std::string offset(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
  const std::vector<std::string> steps = strides(context, buffer);
  if (context.operations) context.operations->offset(indices, steps);
  std::string text;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (ir::constant_int(indices[axis]) == 0) continue;
    const std::string term =
        steps[axis] == "1" ? summand(context, indices[axis]) : factor(context, indices[axis]) + " * " + steps[axis];
    text += (text.empty() ? "" : " + ") + term;
  }
  return text.empty() ? "0" : text;
}

std::string address(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
  const std::string from_start = offset(context, buffer, indices);
  const std::string& name = context.names.of(buffer);
  return from_start == "0" ? name : name + " + " + from_start;
}

std::string place(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
  const auto own = context.lanes.own.find(buffer.get());
  if (own == context.lanes.own.end())
    return fmt::format("{}[{}]", context.names.of(buffer), offset(context, buffer, indices));
  const std::vector<int64_t> shape = extents(buffer);
  std::string text;
  int64_t step = context.lanes.chunk_size;
  for (size_t axis = own->second.axes; axis-- > 0; step *= shape[axis]) {
    if (ir::constant_int(indices[axis]) == 0) continue;
    text = fmt::format("{} * {} + {}", factor(context, indices[axis]), step, text);
  }
  return fmt::format("{}[{}{}]", own->second.name, text, context.lanes.chunk_lane);
}

std::string axis_condition(Context& context, const ir::Expr& at, const ir::Expr& extent) {
  if (context.facts.in_bounds(at, extent)) return "";
  const bool may_be_negative = context.facts.index_range(at).lo < 0;
  if (context.operations) context.operations->bounds(at, extent, may_be_negative);
  const std::string below = summand(context, at) + " < " + factor(context, extent);
  return may_be_negative ? factor(context, at) + " >= 0 && " + below : below;
}

bool may_leave(const Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
  if (buffer->scope == ir::Scope::global) return true;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (context.facts.in_bounds(indices[axis], buffer->shape[axis])) continue;
    if (context.checks_tiles) return true;
    const ir::Bounds range = context.facts.range(indices[axis]);
    const auto extent = ir::constant_int(buffer->shape[axis]);
    const ir::Bounds type = ir::type_bounds(indices[axis]->type);
    const bool is_known = type.lo < range.lo && range.hi < type.hi;
    if (extent && is_known && (range.lo < 0 || range.hi >= *extent)) return true;
  }
  return false;
}

std::string bounds_condition(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
  std::vector<std::string> conditions;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    std::string condition = axis_condition(context, indices[axis], buffer->shape[axis]);
    if (!condition.empty()) conditions.push_back(std::move(condition));
  }
  return fmt::format("{}", fmt::join(conditions, " && "));
}

bool fails_out_of_bounds(const Context& context, const ir::Buffer& buffer) {
  return context.checks_tiles && buffer->scope != ir::Scope::global;
}

}  // namespace tilepilot::targets::c
