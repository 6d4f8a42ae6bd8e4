#include "eval/worker/truth/stress/input_agreement.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "eval/graph/tolerance.h"
#include "eval/torch/element_type.h"

namespace tilepilot::eval {

namespace {

// `other` with as many axes of one element behind its own as make it broadcast to `tensor`; undefined: none do.
at::Tensor aligned(const at::Tensor& other, const at::Tensor& tensor) {
  const auto fits = [&](int64_t behind) {
    for (int64_t axis = 1; axis <= other.dim(); ++axis)
      if (other.size(-axis) != 1 && other.size(-axis) != tensor.size(-axis - behind)) return false;
    return true;
  };
  for (int64_t behind = 0; behind <= tensor.dim() - other.dim(); ++behind) {
    if (!fits(behind)) continue;
    std::vector<int64_t> sizes = other.sizes().vec();
    sizes.insert(sizes.end(), static_cast<size_t>(behind), 1);
    return other.reshape(sizes);
  }
  return {};
}

// Whole numbers, of which half are some of the other tensor's, within their own range; if `nearly`, up to 256 away.
at::Tensor agreeing_integers(const at::Tensor& tensor, const at::Tensor& other, const InputFacts& facts, bool nearly,
                             Draws& draws) {
  constexpr double kMostBits = 8;
  at::Tensor taken = other.to(at::kLong);
  if (other.sizes() != tensor.sizes())
    taken = taken.flatten().index_select(0, draws.integers(0, other.numel() - 1).flatten()).reshape(tensor.sizes());
  if (nearly) {
    const at::Tensor away = draws.uniform().mul_(kMostBits).exp2_().to(at::kLong);
    taken = at::where(draws.uniform().lt(0.5), taken.sub(away), taken.add(away));
  }
  taken = taken.clamp(static_cast<int64_t>(facts.low), static_cast<int64_t>(facts.high)).to(tensor.scalar_type());
  return at::where(some_of_each_draw(draws.uniform(), 0.5), taken, tensor);
}

// With every second row, or element where there are no rows, of the other one; if `nearly`, up to eight roundings away.
at::Tensor agreeing_floats(const at::Tensor& tensor, const at::Tensor& other, bool nearly, Draws& draws) {
  constexpr double kRoundings = 8;
  const bool rows = tensor.dim() > 1 && other.sizes() == tensor.sizes();
  const at::Tensor drawn = rows ? uniform_by_row(tensor, draws) : draws.uniform();
  at::Tensor taken = rows ? other : aligned(other, tensor);
  if (!taken.defined()) return tensor;
  if (nearly) {
    const double epsilon = machine_epsilon(element_type_name(tensor.scalar_type()));
    taken = taken.add(taken.mul(draws.uniform().sub_(0.5).mul_(2 * kRoundings * epsilon).to(taken.scalar_type())));
  }
  return at::where(some_of_each_draw(drawn, 0.5), taken, tensor);
}

}  // namespace

size_t first_alike(const std::vector<at::Tensor>& inputs, size_t i) {
  const auto first = [&](bool of_any_form) {
    for (size_t k = 0; k < i; ++k)
      if (inputs[k].scalar_type() == inputs[i].scalar_type() && inputs[k].numel() > 0 &&
          (of_any_form || inputs[k].sizes() == inputs[i].sizes()))
        return k;
    return i;
  };
  const size_t same = first(false);
  if (same != i) return same;
  if (is_integer(inputs[i])) return first(true);
  for (size_t k = 0; k < inputs.size() && inputs[i].is_floating_point(); ++k)
    if (inputs[k].scalar_type() == inputs[i].scalar_type() && inputs[k].numel() > 0 &&
        inputs[k].numel() < inputs[i].numel() && aligned(inputs[k], inputs[i]).defined())
      return k;
  return i;
}

bool may_agree(const std::vector<at::Tensor>& inputs, const std::vector<InputFacts>& facts, size_t i) {
  if (first_alike(inputs, i) == i || facts[i].fixed || !facts[i].few.empty()) return false;
  if (!is_integer(inputs[i]) || inputs[i].numel() == 1) return true;
  return !facts[i].sorted && (!facts[i].distinct || facts[i].singled_out.may_repeat);
}

at::Tensor agreeing(const at::Tensor& tensor, const at::Tensor& other, const InputFacts& facts, bool nearly,
                    Draws& draws) {
  return is_integer(tensor) ? agreeing_integers(tensor, other, facts, nearly, draws)
                            : agreeing_floats(tensor, other, nearly, draws);
}

}  // namespace tilepilot::eval
