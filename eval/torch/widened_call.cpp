#include "eval/torch/widened_call.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string_view>

namespace tilepilot::eval {
namespace {

struct Change {
  at::Tensor original, widened;
  uint32_t version;  // to see whether the call wrote it
};

bool is_16_bit(const at::Tensor& tensor) {
  return tensor.defined() && c10::isReducedFloatingType(tensor.scalar_type());
}

at::Tensor widened(const at::Tensor& tensor, std::vector<Change>& changes) {
  if (!is_16_bit(tensor)) return tensor;
  at::Tensor wide = tensor.to(at::kFloat);
  changes.push_back({tensor, wide, static_cast<uint32_t>(wide._version())});
  return wide;
}

c10::List<at::Tensor> widened(const c10::List<at::Tensor>& tensors, std::vector<Change>& changes) {
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : tensors) list.push_back(widened(tensor, changes));
  return list;
}

at::Tensor rounded(const at::Tensor& result, at::ScalarType type, const std::vector<Change>& changes) {
  for (auto& change : changes) {
    if (result.is_same(change.widened)) return change.original;
  }
  return result.defined() && result.scalar_type() == at::kFloat ? result.to(type) : result;
}

}  // namespace

bool lacks_type(const std::exception& error) {
  constexpr std::string_view kWays[] = {"not implemented for 'Half'", "not implemented for 'BFloat16'",
                                        "could not create a primitive descriptor"};
  const std::string_view text = error.what();
  return std::any_of(std::begin(kWays), std::end(kWays), [&](auto way) { return text.find(way) != text.npos; });
}

bool has_16_bit(const torch::jit::Stack& stack) {
  return std::any_of(stack.begin(), stack.end(), [](const c10::IValue& argument) {
    if (argument.isTensor()) return is_16_bit(argument.toTensor());
    if (!argument.isTensorList()) return false;
    auto tensors = argument.toTensorVector();
    return std::any_of(tensors.begin(), tensors.end(), is_16_bit);
  });
}

std::optional<at::ScalarType> call_widened(torch::jit::Stack& stack, const std::function<void()>& call) {
  std::vector<Change> changes;
  for (auto& argument : stack) {
    if (argument.isTensor())
      argument = widened(argument.toTensor(), changes);
    else if (argument.isTensorList())
      argument = widened(argument.toTensorList(), changes);
  }
  if (changes.empty()) return std::nullopt;
  auto type = changes[0].original.scalar_type();
  call();
  for (auto& change : changes) {
    if (static_cast<uint32_t>(change.widened._version()) != change.version) change.original.copy_(change.widened);
  }
  for (auto& result : stack) {
    if (result.isTensor()) {
      result = rounded(result.toTensor(), type, changes);
    } else if (result.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : result.toTensorList()) list.push_back(rounded(tensor, type, changes));
      result = list;
    }
  }
  return type;
}

}  // namespace tilepilot::eval
