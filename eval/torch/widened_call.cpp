#include "eval/torch/widened_call.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string_view>

namespace tilepilot::eval {
namespace {

struct Change {
  at::Tensor original, stand_in;
  uint32_t version;  // to see whether the call wrote it
};

bool is_16_bit(const at::Tensor& tensor) {
  return tensor.defined() && c10::isReducedFloatingType(tensor.scalar_type());
}
bool is_gpus(const at::Tensor& tensor) { return tensor.defined() && tensor.is_cuda(); }

template <class Predicate>
bool any_tensor(const torch::jit::Stack& stack, const Predicate& is_such) {
  return std::any_of(stack.begin(), stack.end(), [&](const c10::IValue& argument) {
    if (argument.isTensor()) return is_such(argument.toTensor());
    if (!argument.isTensorList()) return false;
    auto tensors = argument.toTensorVector();
    return std::any_of(tensors.begin(), tensors.end(), is_such);
  });
}

// Every tensor of the stack, also those in lists, becomes what `other` makes of it.
template <class Other>
void each_tensor(torch::jit::Stack& stack, const Other& other) {
  for (auto& argument : stack) {
    if (argument.isTensor()) {
      argument = other(argument.toTensor());
    } else if (argument.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : argument.toTensorList()) list.push_back(other(tensor));
      argument = list;
    }
  }
}

// Runs `call` with `stand_in(tensor)` in place of each tensor that `is_such`. A result is the original, if it is a
// stand-in, or `given_back(result)`.
template <class Predicate, class StandIn, class GivenBack>
void call_with(torch::jit::Stack& stack, const std::function<void()>& call, const Predicate& is_such,
               const StandIn& stand_in, const GivenBack& given_back) {
  std::vector<Change> changes;
  each_tensor(stack, [&](const at::Tensor& tensor) {
    if (!is_such(tensor)) return tensor;
    at::Tensor other = stand_in(tensor);
    changes.push_back({tensor, other, static_cast<uint32_t>(other._version())});
    return other;
  });
  call();
  for (auto& change : changes) {
    if (static_cast<uint32_t>(change.stand_in._version()) != change.version) change.original.copy_(change.stand_in);
  }
  each_tensor(stack, [&](const at::Tensor& result) {
    for (auto& change : changes) {
      if (result.is_same(change.stand_in)) return change.original;
    }
    return given_back(result);
  });
}

bool says(const std::exception& error, std::initializer_list<std::string_view> ways) {
  const std::string_view text = error.what();
  return std::any_of(ways.begin(), ways.end(), [&](auto way) { return text.find(way) != text.npos; });
}

}  // namespace

bool lacks_type(const std::exception& error) {
  return says(error, {"not implemented for 'Half'", "not implemented for 'BFloat16'",
                      "could not create a primitive descriptor"});
}
bool lacks_any_type(const std::exception& error) { return says(error, {"\" not implemented for '"}); }

bool has_16_bit(const torch::jit::Stack& stack) { return any_tensor(stack, is_16_bit); }
bool is_on_gpu(const torch::jit::Stack& stack) { return any_tensor(stack, is_gpus); }

std::optional<at::ScalarType> call_widened(torch::jit::Stack& stack, const std::function<void()>& call) {
  std::optional<at::ScalarType> type;
  any_tensor(stack, [&](const at::Tensor& tensor) {
    if (is_16_bit(tensor)) type = tensor.scalar_type();
    return type.has_value();
  });
  if (!type) return std::nullopt;
  call_with(
      stack, call, is_16_bit, [](const at::Tensor& tensor) { return tensor.to(at::kFloat); },
      [&](const at::Tensor& result) {
        return result.defined() && result.scalar_type() == at::kFloat ? result.to(*type) : result;
      });
  return type;
}

void call_on_cpu(torch::jit::Stack& stack, const std::function<void()>& call) {
  call_with(
      stack, call, is_gpus, [](const at::Tensor& tensor) { return tensor.cpu(); },
      [](const at::Tensor& result) { return result; });
}

}  // namespace tilepilot::eval
