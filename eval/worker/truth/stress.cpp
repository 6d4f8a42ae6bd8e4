#include "eval/worker/truth/stress.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/torch/span.h"
#include "eval/worker/truth/digest.h"

namespace tilepilot::eval {
namespace {

constexpr int kOneExtremeIn = 64;
constexpr int kHalf = 50, kMost = 90;  // percentages of true elements

struct KindRow {
  StressKind kind;
  std::string_view name;
  bool floats;  // what it changes: floating inputs that vary
};
constexpr std::array<KindRow, 19> kKinds = {{
    {StressKind::none, "given inputs", false},
    {StressKind::signs, "random signs", true},
    {StressKind::negative, "negative inputs alone", true},
    {StressKind::large, "inputs scaled up", true},
    {StressKind::constants, "other values of inputs that are constant in `get_inputs`", false},
    {StressKind::indices, "other indices and masks", false},
    {StressKind::heavy, "heavy tails", true},
    {StressKind::extreme, "few very large elements", true},
    {StressKind::small, "inputs scaled down", true},
    {StressKind::zeros, "zeros", true},
    {StressKind::ties, "ties", true},
    {StressKind::sorted, "sorted inputs", true},
    {StressKind::alike, "rows that are nearly the same", true},
    {StressKind::shifted, "numbers close to one", true},
    {StressKind::special, "values that the model singles out", false},
    {StressKind::repeated, "repeated indices", false},
    {StressKind::numbers, "other numbers among the inputs", false},
    {StressKind::buffers, "other values of the model's buffers", false},
    {StressKind::weights, "weights of other signs and sizes", false},
}};

const KindRow& row_of(StressKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(), [&](const KindRow& row) { return row.kind == kind; });
}

at::Tensor times_power(const at::Tensor& tensor, const at::Tensor& exponent) {
  return tensor.mul(at::exp2(exponent).to(tensor.scalar_type()));
}

// Steps of an eighth of the largest magnitude: many elements share a value.
at::Tensor tied_values(const at::Tensor& tensor) {
  const double step = tensor.numel() > 0 ? tensor.abs().max().item<double>() / 8 : 0;
  return step > 0 && std::isfinite(step) ? tensor.div(step).round().mul(step) : tensor;
}

// The first row, and an eighth of the difference to it.
at::Tensor similar_rows(const at::Tensor& tensor) {
  if (tensor.dim() < 2) return tensor;
  const at::Tensor rows = tensor.flatten(0, -2), first = rows.slice(0, 0, 1);
  return first.add(rows.sub(first).mul(0.125)).reshape(tensor.sizes());
}

// One element in eight has one of the values, or is no number. `only`: with the first of them, the second, ...; 0: all.
at::Tensor with_special_values(const at::Tensor& tensor, const SingledOut& singled_out, int only, Draws& draws) {
  constexpr double kShare = 0.125;
  std::vector<double> values = singled_out.values;
  if (singled_out.nan && tensor.is_floating_point()) values.push_back(std::nan(""));
  const auto count = static_cast<int>(values.size());
  at::Tensor result = tensor;
  for (int i = 0; i < count; ++i) {
    if (only > 0 && only != i + 1) continue;
    const double share = only > 0 ? kShare : kShare / count;
    result =
        at::where(draws.uniform().lt(share), at::full({}, values[static_cast<size_t>(i)], tensor.options()), result);
  }
  return result;
}

at::Tensor few_values(const at::Tensor& tensor, Draws& draws) {
  constexpr int64_t kValues = 8;
  const at::Tensor flat = tensor.flatten();
  const at::Tensor which = draws.integers(0, std::min(kValues, flat.numel()) - 1).flatten();
  return flat.index_select(0, which).reshape(tensor.sizes());
}

// What a kind makes of one input; `strength` is a percentage of true elements for masks, and of constants a half
// changes signs as well.
at::Tensor stressed(const StressRecipe& recipe, const at::Tensor& tensor, const InputFacts& facts, uint64_t seed) {
  Draws draws(tensor, seed);
  switch (recipe.kind) {
    case StressKind::none:
    case StressKind::buffers:
    case StressKind::weights:
    case StressKind::numbers:
      return tensor;
    case StressKind::signs:
      return at::where(draws.uniform().gt(0.5), tensor, tensor.neg());
    case StressKind::negative:
      return tensor.abs().neg_();
    case StressKind::large:
      return tensor.mul(std::ldexp(1.0, recipe.strength));
    case StressKind::small:
      return tensor.mul(std::ldexp(1.0, -recipe.strength));
    case StressKind::heavy:
      return times_power(tensor, draws.normal().clamp_(-3, 3).mul_(3));
    case StressKind::extreme:
      return at::where(draws.uniform().lt(1.0 / kOneExtremeIn), tensor.mul(std::ldexp(1.0, recipe.strength)), tensor);
    case StressKind::zeros:
      return at::zeros_like(tensor);
    case StressKind::ties:
      return tied_values(tensor);
    case StressKind::sorted:
      return sorted_values(tensor);
    case StressKind::alike:
      return similar_rows(tensor);
    case StressKind::shifted:
      return tensor.mul(0x1p-10).add(1);
    case StressKind::special:
      return with_special_values(tensor, facts.singled_out, recipe.strength, draws);
    case StressKind::repeated:
      return few_values(tensor, draws);
    case StressKind::constants:
    case StressKind::indices:
      if (tensor.scalar_type() == at::kBool) return draws.uniform().mul(100).lt(recipe.strength);
      return is_integer(tensor) ? other_integers(tensor, facts, recipe.strength > kHalf, draws)
                                : other_floats(tensor, recipe.strength == kHalf, draws);
  }
  return tensor;
}

}  // namespace

std::string_view to_string(StressKind kind) { return row_of(kind).name; }

bool keeps_apart(StressKind kind) {
  constexpr StressKind kApart[] = {StressKind::signs,   StressKind::negative, StressKind::constants,
                                   StressKind::indices, StressKind::special,  StressKind::repeated,
                                   StressKind::buffers};
  return std::find(std::begin(kApart), std::end(kApart), kind) != std::end(kApart);
}

void see_inputs(const std::vector<at::Tensor>& inputs, std::vector<InputFacts>& facts) {
  const bool first = facts.empty(), second = !first && !facts[0].seen_twice;
  facts.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string digest = digest_of(inputs[i]);
    if (first) facts[i].digest = digest;
    const bool same = digest == facts[i].digest;
    facts[i].fixed = !first && same && (second || facts[i].fixed);
    facts[i].seen_twice = !first;
    see_values(inputs[i], first, facts[i]);
  }
}

std::vector<int> inputs_of_kind(StressKind kind, const std::vector<at::Tensor>& inputs,
                                const std::vector<InputFacts>& facts) {
  const bool floats = row_of(kind).floats;
  bool any_varies = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    any_varies = any_varies || (inputs[i].is_floating_point() && inputs[i].numel() > 0 && !facts[i].fixed);
  std::vector<int> chosen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].numel() == 0 || inputs[i].is_complex()) continue;
    const bool floating = inputs[i].is_floating_point();
    const bool wanted = kind == StressKind::constants  ? facts[i].fixed
                        : kind == StressKind::indices  ? !floating && !facts[i].fixed
                        : kind == StressKind::special  ? facts[i].singled_out.any()
                        : kind == StressKind::repeated ? facts[i].singled_out.repeats && inputs[i].numel() > 1
                                                       : floats && floating && (!facts[i].fixed || !any_varies);
    if (wanted) chosen.push_back(static_cast<int>(i));
  }
  return chosen;
}

std::vector<StressPlan> stress_plans(const std::vector<at::Tensor>& inputs, const std::vector<InputFacts>& facts) {
  const bool narrow = std::any_of(inputs.begin(), inputs.end(),
                                  [](const at::Tensor& input) { return input.scalar_type() == at::kHalf; });
  const std::vector<StressPlan> all = {
      {StressKind::signs, {0}},
      {StressKind::constants, {kHalf, kMost}},
      {StressKind::indices, {kHalf, kMost}},
      {StressKind::special, {0, 1, 2, 3}},
      {StressKind::repeated, {0}},
      {StressKind::large, narrow ? std::vector{6, 3} : std::vector{8, 4}},
      {StressKind::alike, {0}},
      {StressKind::negative, {0}},
      {StressKind::heavy, {0}},
      {StressKind::extreme, narrow ? std::vector{6, 3} : std::vector{20, 10, 4}},
      {StressKind::small, {10}},
      {StressKind::zeros, {0}},
      {StressKind::ties, {0}},
      {StressKind::sorted, {0}},
      {StressKind::shifted, {0}},
  };
  std::vector<StressPlan> plans;
  for (auto& plan : all) {
    if (!inputs_of_kind(plan.kind, inputs, facts).empty()) plans.push_back(plan);
  }
  return plans;
}

void apply_stress(const StressRecipe& recipe, const std::vector<InputFacts>& facts, uint64_t seed,
                  std::vector<c10::IValue>& leaves) {
  if (recipe.kind == StressKind::none) return;
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> inputs;
  for (auto& leaf : leaves) {
    if (leaf.isTensor()) inputs.push_back(leaf.toTensor());
  }
  auto chosen = inputs_of_kind(recipe.kind, inputs, facts);
  if (recipe.only >= 0) chosen = {recipe.only};
  int number = 0;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) continue;
    const auto i = static_cast<size_t>(number++);
    if (std::find(chosen.begin(), chosen.end(), static_cast<int>(i)) == chosen.end()) continue;
    const at::Tensor given = without_repetitions(inputs[i], inputs[i]);
    at::Tensor place = at::empty_strided(given.sizes(), given.strides(), given.options());
    leaf = place.copy_(stressed(recipe, given, facts[i], seed + 7 * (i + 1))).expand(inputs[i].sizes());
  }
}

}  // namespace tilepilot::eval
