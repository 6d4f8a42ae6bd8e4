#include "eval/torch/random_operator.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

namespace tilepilot::eval {
namespace {

bool is_seeded(const c10::OperatorHandle& op) {
  auto tags = op.getTags();
  return std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
}

std::optional<size_t> position(const c10::FunctionSchema& schema, std::string_view name) {
  auto index = schema.argumentIndexWithName(name);
  return index ? std::optional<size_t>(static_cast<size_t>(*index)) : std::nullopt;
}

// Operators such as scaled_dot_product_attention and lstm draw only if their dropout is on.
bool is_off(const c10::FunctionSchema& schema, const torch::jit::Stack& arguments) {
  for (auto name : {"train", "training"}) {
    if (auto i = position(schema, name); i && arguments[*i].isBool() && !arguments[*i].toBool()) return true;
  }
  for (auto name : {"dropout_p", "dropout"}) {
    if (auto i = position(schema, name); i && arguments[*i].isDouble() && arguments[*i].toDouble() == 0) return true;
  }
  return false;
}

bool is_dropout(const std::string& name) {
  return name == "aten::dropout" || name == "aten::dropout_" || name == "aten::feature_dropout" ||
         name == "aten::feature_dropout_";
}

void call_scaled_mask(const c10::OperatorHandle& op, at::ScalarType type, torch::jit::Stack& stack) {
  at::Tensor input = stack[0].toTensor();
  double p = stack[1].toDouble();
  stack[0] = at::ones_like(input, input.options().dtype(type));
  op.callBoxed(stack);
  at::Tensor kept = stack[0].toTensor().ne(0).to(at::kDouble);
  at::Tensor factor = p < 1 ? kept.div(1 - p) : kept;
  bool in_place = op.schema().arguments()[0].alias_info() != nullptr && op.schema().is_mutable();
  stack[0] = in_place ? input.mul_(factor) : input.mul(factor);
}

// The named dtype of a factory is float64 by now; it draws in the type its result has in the run.
void lower_named_type(const c10::FunctionSchema& schema, const RandomTypes& types, torch::jit::Stack& stack) {
  auto i = position(schema, "dtype");
  if (i && types.result && c10::isFloatingType(*types.result)) stack[*i] = static_cast<int64_t>(*types.result);
}

void call_drawn(const c10::OperatorHandle& op, const RandomTypes& types, torch::jit::Stack& stack) {
  for (size_t i = 0; i < stack.size(); ++i) {
    if (!stack[i].isTensor() || stack[i].toTensor().scalar_type() != at::kDouble) continue;
    stack[i] = stack[i].toTensor().to(types.arguments[i].value_or(at::kFloat));
  }
  lower_named_type(op.schema(), types, stack);
  op.callBoxed(stack);
  for (auto& result : stack) {
    if (result.isTensor() && result.toTensor().is_floating_point()) result = result.toTensor().to(at::kDouble);
  }
}

}  // namespace

RandomRule random_rule(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  auto& schema = op.schema();
  if (!is_seeded(op) || is_off(schema, arguments)) return RandomRule::deterministic;
  if (is_dropout(schema.name())) return RandomRule::scaled_mask;
  return schema.is_mutable() ? RandomRule::in_place : RandomRule::drawn;
}

void call_random(const c10::OperatorHandle& op, RandomRule rule, const RandomTypes& types, torch::jit::Stack& stack) {
  if (rule == RandomRule::scaled_mask) return call_scaled_mask(op, types.arguments[0].value_or(at::kFloat), stack);
  if (rule == RandomRule::drawn) return call_drawn(op, types, stack);
  at::Tensor destination = stack[0].toTensor();
  call_drawn(op, types, stack);
  stack = {destination.copy_(stack[0].toTensor())};
}

}  // namespace tilepilot::eval
