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

struct KindRow {
  StressKind kind;
  std::string_view name;
  bool floats;  // what it changes: floating inputs that vary
};
constexpr std::array<KindRow, 14> kKinds = {{
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
    {StressKind::buffers, "other values of the model's buffers", false},
    {StressKind::weights, "weights of other signs and sizes", false},
}};

const KindRow& row_of(StressKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(), [&](const KindRow& row) { return row.kind == kind; });
}

bool is_integer(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false); }

// The same numbers for a seed, on the device of the tensor: others take a processor longer than most models.
class Draws {
 public:
  Draws(const at::Tensor& like, uint64_t seed)
      : like_(like), generator_(at::globalContext().defaultGenerator(like.device()).clone()) {
    generator_.set_current_seed(seed);
  }

  at::Tensor uniform() { return place(at::kFloat).uniform_(0, 1, generator_); }
  at::Tensor normal() { return place(at::kFloat).normal_(0, 1, generator_); }
  at::Tensor integers(int64_t low, int64_t high) { return place(at::kLong).random_(low, high + 1, generator_); }
  at::Tensor permuted() {
    const at::Tensor order = at::randperm(like_.numel(), generator_, at::dtype(at::kLong).device(like_.device()));
    return like_.flatten().index_select(0, order).reshape(like_.sizes());
  }
  // `count` different numbers from 0 to below `end`.
  at::Tensor some_of(int64_t end, int64_t count) {
    return at::randperm(end, generator_, at::dtype(at::kLong).device(like_.device())).slice(0, 0, count);
  }

 private:
  at::Tensor place(at::ScalarType type) const {
    return at::empty(like_.sizes(), at::dtype(type).device(like_.device()));
  }

  const at::Tensor& like_;
  at::Generator generator_;
};

at::Tensor times_power(const at::Tensor& tensor, const at::Tensor& exponent) {
  return tensor.mul(at::exp2(exponent).to(tensor.scalar_type()));
}

at::Tensor sorted_values(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor : std::get<0>(tensor.sort(-1)); }

// Steps of an eighth of the largest magnitude: many elements share a value.
at::Tensor tied_values(const at::Tensor& tensor) {
  const double step = tensor.numel() > 0 ? tensor.abs().max().item<double>() / 8 : 0;
  return step > 0 && std::isfinite(step) ? tensor.div(step).round().mul(step) : tensor;
}

at::Tensor fresh_floats(const at::Tensor& tensor, Draws& draws) {
  const at::Tensor finite = tensor.isfinite();
  if (!finite.all().item<bool>()) return draws.permuted();  // additive masks
  const at::Tensor is_zero_or_one = tensor.eq(0).logical_or(tensor.eq(1));
  if (tensor.dim() > 0 && is_zero_or_one.all().item<bool>()) return draws.uniform().gt(0.5).to(tensor.scalar_type());
  return tensor.mul(draws.uniform().add(0.5).to(tensor.scalar_type()));
}

// As many different numbers in order as `tensor` has, the least and the largest of them the same.
at::Tensor other_offsets(const at::Tensor& tensor, Draws& draws) {
  constexpr int64_t kMost = int64_t{1} << 22;  // that are drawn from
  const at::Tensor given = tensor.flatten().to(at::kLong);
  const int64_t first = given[0].item<int64_t>(), between = given[-1].item<int64_t>() - first - 1;
  const int64_t count = given.numel() - 2;
  if (count < 1 || between < count || between > kMost) return tensor;
  at::Tensor drawn = given.clone();
  drawn.slice(0, 1, -1).copy_(sorted_values(draws.some_of(between, count)).add_(first + 1));
  return drawn.reshape(tensor.sizes()).to(tensor.scalar_type());
}

at::Tensor fresh_integers(const at::Tensor& tensor, const InputFacts& facts, Draws& draws) {
  if (tensor.numel() < 2) return tensor;  // a length, a count
  // All numbers of a range in order are a permutation too; others in order may be offsets.
  const bool is_range = facts.high - facts.low == static_cast<double>(tensor.numel() - 1);
  if (facts.distinct) return facts.sorted && !is_range ? other_offsets(tensor, draws) : draws.permuted();
  at::Tensor drawn = draws.integers(static_cast<int64_t>(facts.low), static_cast<int64_t>(facts.high));
  if (facts.sorted) {
    drawn = sorted_values(drawn.flatten());
    // Offsets keep their ends.
    const at::Tensor given = tensor.flatten();
    drawn[0].copy_(given[0]);
    drawn[-1].copy_(given[-1]);
  }
  return drawn.reshape(tensor.sizes()).to(tensor.scalar_type());
}

// What a kind makes of one input; `strength` is a percentage of true elements for masks.
at::Tensor stressed(const StressRecipe& recipe, const at::Tensor& tensor, const InputFacts& facts, uint64_t seed) {
  Draws draws(tensor, seed);
  switch (recipe.kind) {
    case StressKind::none:
    case StressKind::buffers:
    case StressKind::weights:
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
    case StressKind::constants:
    case StressKind::indices:
      if (tensor.scalar_type() == at::kBool) return draws.uniform().mul(100).lt(recipe.strength);
      return is_integer(tensor) ? fresh_integers(tensor, facts, draws) : fresh_floats(tensor, draws);
  }
  return tensor;
}

void see(const at::Tensor& input, bool first, InputFacts& facts) {
  if (input.numel() == 0 || input.scalar_type() == at::kBool || input.is_complex()) return;
  // PyTorch compares and sorts no unsigned numbers of more than 8 bits.
  const at::Tensor tensor = at::isBarebonesUnsignedType(input.scalar_type()) ? input.to(at::kLong) : input;
  const double low = tensor.min().item<double>(), high = tensor.max().item<double>();
  facts.low = first ? low : std::min(facts.low, low);
  facts.high = first ? high : std::max(facts.high, high);
  if (!is_integer(tensor)) return;
  const at::Tensor flat = tensor.flatten(), ordered = sorted_values(flat);
  facts.sorted = facts.sorted && flat.equal(ordered);
  facts.distinct = facts.distinct && !ordered.slice(0, 1).eq(ordered.slice(0, 0, -1)).any().item<bool>();
}

}  // namespace

std::string_view to_string(StressKind kind) { return row_of(kind).name; }

bool keeps_apart(StressKind kind) {
  constexpr StressKind kApart[] = {StressKind::signs, StressKind::negative, StressKind::constants, StressKind::indices,
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
    see(inputs[i], first, facts[i]);
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
    const bool wanted = kind == StressKind::constants ? facts[i].fixed
                        : kind == StressKind::indices ? !floating && !facts[i].fixed
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
      {StressKind::large, narrow ? std::vector{6, 3} : std::vector{8, 4}},
      {StressKind::constants, {50, 90}},
      {StressKind::indices, {50, 90}},
      {StressKind::negative, {0}},
      {StressKind::heavy, {0}},
      {StressKind::extreme, narrow ? std::vector{6, 3} : std::vector{20, 10, 4}},
      {StressKind::small, {10}},
      {StressKind::zeros, {0}},
      {StressKind::ties, {0}},
      {StressKind::sorted, {0}},
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
