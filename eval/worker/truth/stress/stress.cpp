#include "eval/worker/truth/stress/stress.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/graph/tolerance.h"
#include "eval/torch/element_type.h"
#include "eval/torch/span.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/stress/end_slices.h"
#include "eval/worker/truth/stress/input_agreement.h"

namespace tilepilot::eval {
namespace {

constexpr int kOneExtremeIn = 64;
constexpr int kHalf = 50, kMost = 90;  // percentages of true elements
constexpr int kEmptyToo = 0;           // half, but in one row of eight none, and in one all
constexpr int kNone = 100;             // no element, in masks without rows too
constexpr int kRepeated = 101;         // offsets of which some are the same: empty parts
constexpr int kHighest = 102;          // integers are the largest that was seen, everywhere
constexpr int kLowest = 103;           // or the least, but for one in sixteen
constexpr int kZeroToo = 105;          // one in eight is zero, where the least is one
constexpr int kAlone = 104;            // or the least, but for the last one, which is the largest
constexpr int kOtherSizes = 106;       // constants that are all ones are from a half to two: gains, temperatures
constexpr int kExchanged = 107;        // from here on: few elements change places
constexpr int kScatteredZeros = 1;     // not all are zero
constexpr int kScattered = 10;         // values that are singled out come alone, not in whole rows too
constexpr int kEverywhere = 100;       // all elements are the first of them: labels that all are left out

// What is known of a kind.
enum Trait : unsigned {
  kFloats = 1,     // it changes floating inputs that vary
  kApart = 2,      // elements that differed still do
  kManyEqual = 4,  // many elements become equal
  kSomeEqual = 8,  // elements may, or few values come up often
  kOfSize = 16,    // it is about signs and sizes
};
struct KindRow {
  StressKind kind;
  std::string_view name;
  unsigned traits = 0;
};
constexpr std::array<KindRow, 30> kKinds = {{
    {StressKind::none, "given inputs"},
    {StressKind::signs, "random signs", kFloats | kApart | kOfSize},
    {StressKind::negative, "negative inputs alone", kFloats | kApart | kOfSize},
    {StressKind::large, "inputs scaled up", kFloats | kOfSize},
    {StressKind::constants, "other values of inputs that are constant in `get_inputs`", kApart},
    {StressKind::together, "other values of constant inputs beside large inputs", kOfSize},
    {StressKind::indices, "other indices and masks", kApart},
    {StressKind::heavy, "heavy tails", kFloats | kOfSize},
    {StressKind::extreme, "few very large elements", kFloats | kOfSize},
    {StressKind::single, "one very large element", kFloats | kOfSize},
    {StressKind::ends, "a last or first slice unlike the others", kApart},
    {StressKind::small, "inputs scaled down", kFloats | kOfSize},
    {StressKind::faint, "rows of very small numbers", kFloats},
    {StressKind::zeros, "zeros", kFloats | kManyEqual},
    {StressKind::ties, "ties", kFloats | kManyEqual},
    {StressKind::grid, "round numbers", kFloats | kManyEqual},
    {StressKind::halves, "numbers halfway between whole ones", kFloats | kManyEqual},
    {StressKind::sorted, "sorted inputs", kFloats},
    {StressKind::alike, "rows that are nearly the same", kFloats},
    {StressKind::shifted, "numbers around one", kFloats},
    {StressKind::positive, "positive inputs alone", kFloats | kOfSize},
    {StressKind::agree, "inputs that agree in part"},
    {StressKind::nearly, "inputs that nearly agree in part"},
    {StressKind::near, "rows near those of a weight"},
    {StressKind::special, "values that the model singles out", kApart | kSomeEqual},
    {StressKind::repeated, "repeated indices", kApart | kSomeEqual},
    {StressKind::wide, "integers beyond those that are drawn", kSomeEqual},
    {StressKind::numbers, "other numbers and flags among the inputs", kApart},
    {StressKind::buffers, "other values of the model's buffers", kApart},
    {StressKind::weights, "weights of other signs and sizes"},
}};

const KindRow& row_of(StressKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(), [&](const KindRow& row) { return row.kind == kind; });
}

bool has(StressKind kind, unsigned traits) { return (row_of(kind).traits & traits) != 0; }

at::Tensor times_power(const at::Tensor& tensor, const at::Tensor& exponent) {
  return tensor.mul(at::exp2(exponent).to(tensor.scalar_type()));
}

// Steps of an eighth of the largest magnitude: many elements share a value.
at::Tensor tied_values(const at::Tensor& tensor) {
  const double step = tensor.numel() > 0 ? tensor.abs().max().item<double>() / 8 : 0;
  return step > 0 && std::isfinite(step) ? tensor.div(step).round().mul(step) : tensor;
}

// What a loop over all but the last few leaves out shows only where that is large. From kFirst on the first element,
// from kAnywhere on any.
constexpr int kFirst = 100, kAnywhere = 200;
at::Tensor with_single_element(const at::Tensor& tensor, int strength, Draws& draws) {
  const int64_t count = tensor.numel();
  const at::Tensor flat = tensor.flatten().clone();
  const int64_t place = strength >= kAnywhere ? draws.some_of(count, 1).item<int64_t>()
                        : strength >= kFirst  ? 0
                                              : count - 1;
  flat[place].add_(flat[place].sign()).mul_(std::ldexp(1.0, strength % kFirst));
  return flat.reshape(tensor.sizes());
}

// All on one side of zero, and far from it where they are scaled up much.
at::Tensor on_one_side(const at::Tensor& tensor, int strength) {
  constexpr int kFar = 6;
  return tensor.abs().add_(strength >= kFar ? 1 : 0).mul_(std::ldexp(1.0, strength));
}

// Where a row's largest number is the number of steps, a step is one. Inputs of few elements are steps themselves.
at::Tensor half_steps(const at::Tensor& tensor, int largest, bool is_step, Draws& draws) {
  constexpr double kLargest = 0.25;
  if (is_step) return at::copysign(draws.integers(1, 2).to(tensor.scalar_type()), tensor);
  const at::Tensor halves = draws.integers(-2 * largest, 2 * largest).to(tensor.scalar_type()).mul(0.5);
  return at::where(some_of_each_draw(draws.uniform(), kLargest), at::copysign(at::full_like(tensor, largest), halves),
                   halves);
}

// Beside the largest of the inputs: one number for a row, or for all.
bool has_few_elements(const std::vector<at::Tensor>& inputs, const std::vector<int>& among, size_t which) {
  constexpr int64_t kFew = 8;
  int64_t most = 0;
  for (const int each : among) most = std::max(most, inputs[static_cast<size_t>(each)].numel());
  return inputs[which].numel() * kFew <= most;
}

at::Tensor with_faint_rows(const at::Tensor& tensor, int strength, Draws& draws) {
  constexpr double kShare = 0.125;
  const at::Tensor row = tensor.dim() < 2 ? draws.uniform() : draws.uniform().slice(-1, 0, 1);
  return at::where(row.le(row.min().clamp_min(kShare)), tensor.mul(std::ldexp(1.0, -strength)), tensor);
}

// In one row of four all are zero, in one a single element, in the others one of eight: what divides by an element, or
// by what all of a row come to, shows only where that alone is zero.
at::Tensor with_scattered_zeros(const at::Tensor& tensor, Draws& draws) {
  constexpr double kShare = 0.125, kQuarter = 0.25;
  const at::Tensor drawn = draws.uniform();
  at::Tensor place = some_of_each_draw(drawn, kShare);
  if (tensor.dim() > 1) {
    const at::Tensor row = uniform_by_row(tensor, draws);
    place = at::where(row.lt(2 * kQuarter), drawn.eq(drawn.amin(-1, /*keepdim=*/true)), place);
    place = place.logical_or(row.lt(kQuarter));
  }
  return tensor.masked_fill(place, 0);
}

// The first row, and an eighth of the difference to it.
at::Tensor similar_rows(const at::Tensor& tensor) {
  if (tensor.dim() < 2) return tensor;
  const at::Tensor rows = tensor.flatten(0, -2), first = rows.slice(0, 0, 1);
  return first.add(rows.sub(first).mul(0.125)).reshape(tensor.sizes());
}

at::Tensor random_mask(int percentage, const at::Tensor& tensor, Draws& draws) {
  constexpr double kOne = 0.125;
  if (percentage == kNone) return at::zeros_like(tensor);
  const at::Tensor mask = draws.uniform().mul(100).lt(percentage == kEmptyToo ? kHalf : percentage);
  if (percentage != kEmptyToo) return mask;
  const at::Tensor row = uniform_by_row(tensor, draws);
  return mask.logical_and(some_of_each_draw(row, kOne).logical_not())
      .logical_or(row.gt(1 - kOne).logical_and(row.lt(1)));
}

// One element in eight has one of many values, drawn for each, and so have all of a row in eight.
at::Tensor with_values_of_many(const at::Tensor& tensor, const std::vector<double>& values, bool rows, Draws& draws) {
  constexpr double kShare = 0.125;
  const at::Tensor all = at::tensor(values, at::dtype(at::kDouble).device(tensor.device())).to(tensor.scalar_type());
  const at::Tensor drawn = draws.integers(0, all.numel() - 1);
  at::Tensor place = some_of_each_draw(draws.uniform(), kShare);
  if (rows) place = place.logical_or(uniform_by_row(tensor, draws).lt(kShare));
  return at::where(place, all.index_select(0, drawn.flatten()).reshape(tensor.sizes()), tensor);
}

// One element in eight has one of the values, or is no number, and in one row of eight all of them. `only`: with the
// first of them, the second, ...; 0: all; from kScattered on the same without such rows.
at::Tensor with_special_values(const at::Tensor& tensor, const SingledOut& singled_out, int only, Draws& draws) {
  constexpr double kShare = 0.125;
  if (only == kEverywhere)
    return singled_out.values.empty() ? tensor : at::full_like(tensor, singled_out.values.front());
  const bool rows = only < kScattered;
  only %= kScattered;
  std::vector<double> values = singled_out.values;
  if (tensor.is_floating_point()) {
    if (singled_out.nan) values.push_back(std::nan(""));
    if (singled_out.infinite) values.insert(values.end(), {HUGE_VAL, -HUGE_VAL});
  }
  const auto count = static_cast<int>(values.size());
  // Without a value nothing is changed, and such a trial would be kept for one that shows something.
  if (only > 0 && count > 0) only = (only - 1) % count + 1;
  constexpr int kMostAlone = 16;
  if (count > kMostAlone && only == 0) return with_values_of_many(tensor, values, rows, draws);
  at::Tensor result = tensor;
  for (int i = 0; i < count; ++i) {
    if (only > 0 && only != i + 1) continue;
    const double share = only > 0 ? kShare : kShare / count;
    const at::Tensor value = at::full({}, values[static_cast<size_t>(i)], tensor.options());
    const at::Tensor drawn = draws.uniform();
    at::Tensor place = drawn.le(drawn.min().clamp_min(share));  // of few elements one at least
    if (rows) place = place.logical_or(uniform_by_row(tensor, draws).lt(share));
    result = at::where(place, value, result);
  }
  return result;
}

at::Tensor few_values(const at::Tensor& tensor, Draws& draws) {
  constexpr int64_t kValues = 8;
  const at::Tensor flat = tensor.flatten();
  const at::Tensor which = draws.integers(0, std::min(kValues, flat.numel()) - 1).flatten();
  return flat.index_select(0, which).reshape(tensor.sizes());
}

// Integers that are no offsets and no permutation, or labels among floating numbers.
bool may_be_alike(const at::Tensor& tensor, const InputFacts& facts) {
  if (tensor.is_floating_point()) return !facts.few.empty() && !facts.is_mask();
  return is_integer(tensor) && !facts.sorted && !facts.distinct && tensor.numel() > 1;
}

// Lengths, counts.
bool begins_at_one(const at::Tensor& tensor, const InputFacts& facts) {
  if (!is_integer(tensor) || facts.sorted || facts.distinct || tensor.numel() < 2) return false;
  return facts.singled_out.range ? facts.singled_out.range->first == 1 : facts.low == 1;
}

// Integers in order that come several times each: labels, segments.
bool in_groups(const at::Tensor& tensor, const InputFacts& facts) {
  return is_integer(tensor) && facts.sorted && !facts.distinct && tensor.numel() > 1;
}

// One in eight, and one at least: lengths of which none is zero say nothing of empty sequences.
at::Tensor with_zeros(const at::Tensor& tensor, Draws& draws) {
  constexpr double kShare = 0.125;
  return tensor.masked_fill(some_of_each_draw(draws.uniform(), kShare), 0);
}

at::Tensor at_an_end(const at::Tensor& tensor, const InputFacts& facts, int how, Draws& draws) {
  constexpr double kOthers = 1.0 / 16;
  if (!may_be_alike(tensor, facts) && !(how == kAlone && in_groups(tensor, facts))) return tensor;
  at::Tensor all = at::full_like(tensor, how == kHighest ? facts.high : facts.low);
  if (how == kLowest) return at::where(draws.uniform().lt(kOthers), tensor, all);
  if (how == kAlone) all.view(-1)[-1].fill_(facts.high);
  return all;
}

// Whether elements may change places: offsets and bounds stay in order, one-hot rows such.
bool may_be_exchanged(const at::Tensor& tensor, const InputFacts& facts) {
  const bool in_order = is_integer(tensor) && facts.sorted && facts.high - facts.low >= 1 &&
                        !(facts.distinct && facts.high - facts.low == static_cast<double>(tensor.numel() - 1));
  return tensor.numel() > 3 && !in_order && !facts.ascending && !facts.one_hot &&
         !at::isBarebonesUnsignedType(tensor.scalar_type());
}

// Of some elements, a few of the smaller half change places with as many of the larger: the sum stays, and so do nearly
// all elements. A program that knows a constant again by less than all of it takes it for the old one, unless it looks
// at one of these: the least and the largest of all are likely to be where programs look.
at::Tensor with_few_exchanged(const at::Tensor& tensor, const InputFacts& facts, Draws& draws) {
  constexpr int64_t kPairs = 4, kLeast = 8, kMost = 4096;
  if (!may_be_exchanged(tensor, facts)) return tensor;
  const int64_t count = tensor.numel();
  const at::Tensor places = draws.some_of(count, std::min(count, std::clamp(count / 8, kLeast, kMost)));
  const at::Tensor flat = tensor.flatten().clone();
  const at::Tensor by_size = places.index_select(0, flat.index_select(0, places).argsort());
  const int64_t half = places.numel() / 2, pairs = std::min(kPairs, half);
  const auto some_of = [&](const at::Tensor& ranks) { return ranks.index_select(0, draws.some_of(half, pairs)); };
  at::Tensor least = some_of(by_size.slice(0, 0, half)), largest = some_of(by_size.slice(0, by_size.numel() - half));
  if (flat.index_select(0, least).equal(flat.index_select(0, largest))) {  // nearly all are the same
    least = by_size.slice(0, 0, pairs);
    largest = by_size.slice(0, by_size.numel() - pairs);
  }
  const at::Tensor kept = flat.index_select(0, least);
  flat.index_copy_(0, least, flat.index_select(0, largest));
  flat.index_copy_(0, largest, kept);
  return in_form(flat.reshape(tensor.sizes()), facts);
}

// Floating numbers that are ones everywhere, and no mask as far as the model tells.
bool are_ones(const at::Tensor& tensor, const InputFacts& facts) {
  if (facts.singled_out.is_flag || !facts.singled_out.values.empty()) return false;  // a mask
  return tensor.is_floating_point() && facts.fixed && tensor.numel() > 0 && tensor.eq(1).all().item<bool>();
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
    case StressKind::near:
    case StressKind::agree:
    case StressKind::nearly:
    case StressKind::halves:
      return tensor;
    case StressKind::signs:
      return at::where(draws.uniform().gt(0.5), tensor, tensor.neg());
    case StressKind::negative:
      return on_one_side(tensor, recipe.strength % kOpposite).neg_();
    case StressKind::large: {
      const at::Tensor scaled = tensor.mul(std::ldexp(1.0, recipe.strength));
      constexpr double kLargestHalf = 65504;
      return tensor.scalar_type() == at::kHalf ? scaled.clamp(-kLargestHalf, kLargestHalf) : scaled;
    }
    case StressKind::small:
      return tensor.mul(std::ldexp(1.0, -recipe.strength));
    case StressKind::heavy:
      return times_power(tensor, draws.normal().clamp_(-3, 3).mul_(3));
    case StressKind::extreme:
      return at::where(some_of_each_draw(draws.uniform(), 1.0 / kOneExtremeIn),
                       tensor.mul(std::ldexp(1.0, recipe.strength)), tensor);
    case StressKind::single:
      return with_single_element(tensor, recipe.strength, draws);
    case StressKind::ends: {
      const at::Tensor mask = facts.is_mask() ? tensor.gt(0) : tensor;
      return with_other_end(mask, EndForm::of(recipe.strength), draws).to(tensor.scalar_type());
    }
    case StressKind::faint:
      return with_faint_rows(tensor, recipe.strength, draws);
    case StressKind::zeros:
      return recipe.strength == kScatteredZeros ? with_scattered_zeros(tensor, draws) : at::zeros_like(tensor);
    case StressKind::ties:
      return tied_values(tensor);
    case StressKind::grid:
      return tensor.mul(std::ldexp(1.0, recipe.strength)).round_().mul_(std::ldexp(1.0, -recipe.strength));
    case StressKind::sorted:
      return sorted_values(tensor);
    case StressKind::alike:
      return similar_rows(tensor);
    case StressKind::shifted:
      return tensor.mul(std::ldexp(1.0, -recipe.strength)).add(1);
    case StressKind::positive:
      return on_one_side(tensor, recipe.strength);
    case StressKind::special:
      return with_special_values(tensor, facts.singled_out, recipe.strength, draws);
    case StressKind::repeated:
      return few_values(tensor, draws);
    case StressKind::wide:
      return wide_integers(tensor, facts, draws);
    case StressKind::together:
      if (!facts.fixed) return stressed({StressKind::large, recipe.strength}, tensor, facts, seed);
      return stressed({StressKind::constants, are_ones(tensor, facts) ? kOtherSizes : kHalf}, tensor, facts, seed);
    case StressKind::constants:
    case StressKind::indices:
      if (recipe.strength == kOtherSizes)
        return are_ones(tensor, facts) ? times_power(tensor, draws.uniform().mul_(2).sub_(1)) : tensor;
      if (recipe.strength >= kExchanged) {
        Draws own(tensor, seed + static_cast<uint64_t>(recipe.strength));
        return with_few_exchanged(tensor, facts, own);
      }
      if (recipe.strength == kRepeated && are_offsets(tensor, facts)) return repeated_offsets(tensor, draws);
      if (tensor.scalar_type() == at::kBool) return random_mask(recipe.strength, tensor, draws);
      if (recipe.strength == kZeroToo) return begins_at_one(tensor, facts) ? with_zeros(tensor, draws) : tensor;
      if (recipe.strength >= kHighest) return at_an_end(tensor, facts, recipe.strength, draws);
      if (facts.is_mask() && !facts.one_hot)
        return random_mask(recipe.strength, tensor, draws).to(tensor.scalar_type());
      if (!facts.few.empty() && tensor.is_floating_point()) return other_choices(tensor, facts, draws);
      return is_integer(tensor) ? other_integers(tensor, facts, recipe.strength > kHalf, draws)
                                : other_floats(tensor, recipe.strength <= kHalf, draws);
  }
  return tensor;
}

}  // namespace

std::string_view to_string(StressKind kind) { return row_of(kind).name; }

bool keeps_apart(StressKind kind) { return has(kind, kApart); }
bool makes_equals(StressKind kind) { return has(kind, kManyEqual); }
bool may_make_equals(StressKind kind) { return has(kind, kManyEqual | kSomeEqual); }
bool is_of_size(StressKind kind) { return has(kind, kOfSize); }

bool is_kept(const StressRecipe& recipe, int input) {
  return std::any_of(recipe.kept.begin(), recipe.kept.end(),
                     [&](const KeptPart& part) { return part.input == input && part.is_whole(); });
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
  if (kind == StressKind::together) {
    auto both = inputs_of_kind(StressKind::constants, inputs, facts);
    const auto others = inputs_of_kind(StressKind::large, inputs, facts);
    const bool any_varies =
        std::any_of(others.begin(), others.end(), [&](int each) { return !facts[static_cast<size_t>(each)].fixed; });
    if (both.empty() || !any_varies) return {};
    both.insert(both.end(), others.begin(), others.end());
    return both;
  }
  const bool floats = has(kind, kFloats);
  bool any_varies = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    any_varies = any_varies || (inputs[i].is_floating_point() && inputs[i].numel() > 0 && !facts[i].fixed);
  std::vector<int> chosen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].numel() == 0 || inputs[i].is_complex()) continue;
    const bool floating = inputs[i].is_floating_point();
    const bool is_choice = !floating || !facts[i].few.empty();
    const bool wanted =
        kind == StressKind::constants ? facts[i].fixed
        : kind == StressKind::indices ? is_choice && !facts[i].fixed
        : kind == StressKind::wide    ? may_be_wide(inputs[i], facts[i])
        : kind == StressKind::special ? facts[i].singled_out.any()
        : kind == StressKind::ends
            ? (!facts[i].fixed || !any_varies) && inputs[i].numel() > 1 &&
                  (inputs[i].scalar_type() == at::kBool || (floating && (facts[i].few.empty() || facts[i].is_mask())))
        : kind == StressKind::agree  ? may_agree(inputs, facts, i)
        : kind == StressKind::nearly ? inputs[i].scalar_type() != at::kBool && may_agree(inputs, facts, i)
        : kind == StressKind::repeated
            ? facts[i].singled_out.repeats && facts[i].singled_out.may_repeat && inputs[i].numel() > 1
            : floats && floating && (!facts[i].fixed || !any_varies) && (facts[i].fixed || facts[i].few.empty());
    if (wanted) chosen.push_back(static_cast<int>(i));
  }
  return chosen;
}

std::vector<StressPlan> stress_plans(const std::vector<at::Tensor>& inputs, const std::vector<InputFacts>& facts) {
  const bool narrow = std::any_of(inputs.begin(), inputs.end(),
                                  [](const at::Tensor& input) { return input.scalar_type() == at::kHalf; });
  // What is cheap and shows much comes first: of the others there may be no time.
  const std::vector<int> one = narrow ? std::vector{6, 3} : std::vector{13, 6, 3};
  const auto at_place = [&](int place) {
    std::vector<int> strengths = one;
    for (int& strength : strengths) strength += place;
    return strengths;
  };
  std::vector<StressPlan> all = {
      {StressKind::signs, {0}},
      {StressKind::large, narrow ? std::vector{14, 10, 6, 3, 1} : std::vector{8, 4, 2, 1}},
      {StressKind::constants, {kEmptyToo, kHalf, kMost}},
      {StressKind::constants, {kExchanged}},
      {StressKind::indices, {kEmptyToo, kHalf, kMost}},
      {StressKind::special, {0, 1, 2, 3, kScattered, kScattered + 1, kScattered + 2, kScattered + 3}},
      {StressKind::together, narrow ? std::vector{6, 3} : std::vector{8, 4, 2}},
      {StressKind::constants, {kOtherSizes}},
      {StressKind::negative, narrow ? std::vector{6} : std::vector{10, 6}},
      {StressKind::repeated, {0}},
      {StressKind::wide, {0}},
      {StressKind::grid, {4}},
      {StressKind::agree, {0}},
      {StressKind::nearly, {0}},
      {StressKind::zeros, {0}},
      {StressKind::zeros, {kScatteredZeros}},
      {StressKind::constants, {kExchanged + 1}},
      {StressKind::faint, {narrow ? 12 : 50}},
      {StressKind::single, at_place(0)},
      {StressKind::small, {10}},
      {StressKind::negative, {0}},
      {StressKind::alike, {0}},
      {StressKind::heavy, {0}},
      {StressKind::extreme, narrow ? std::vector{6, 3} : std::vector{20, 10, 4}},
      {StressKind::shifted, {7, 4, 0, 10}},
      {StressKind::ties, {0}},
      {StressKind::sorted, {0}},
      {StressKind::positive, {3, 1, 0}},
      {StressKind::positive, narrow ? std::vector{6} : std::vector{10, 6}},
      {StressKind::single, at_place(kFirst)},
      {StressKind::single, at_place(kAnywhere)},
      {StressKind::special, {kEverywhere}},
      {StressKind::grid, {1}},
      {StressKind::indices, {kHighest}},
      {StressKind::indices, {kLowest}},
      {StressKind::indices, {kAlone}},
      {StressKind::constants, {kAlone}},
      {StressKind::indices, {kZeroToo}},
      {StressKind::constants, {kZeroToo}},
      {StressKind::indices, {kNone}},
      {StressKind::constants, {kNone}},
  };
  if (!narrow) all.push_back({StressKind::small, {26}});  // the size of many an epsilon
  const auto early = std::find_if(all.begin(), all.end(), [](auto& plan) { return plan.kind == StressKind::grid; });
  const auto ends = end_plans(inputs, narrow, false), further = end_plans(inputs, narrow, true);
  all.insert(early, ends.begin(), ends.end());
  all.insert(all.end(), further.begin(), further.end());
  std::vector<StressPlan> plans;
  for (auto& plan : all) {
    const std::vector<int> changed = inputs_of_kind(plan.kind, inputs, facts);
    const bool draws_integers = plan.kind == StressKind::constants || plan.kind == StressKind::indices;
    const bool says_nothing =
        plan.strengths[0] >= kHighest && std::none_of(changed.begin(), changed.end(), [&](int each) {
          const auto i = static_cast<size_t>(each);
          if (plan.strengths[0] >= kExchanged) return may_be_exchanged(inputs[i], facts[i]);
          if (plan.strengths[0] == kZeroToo) return begins_at_one(inputs[i], facts[i]);
          if (plan.strengths[0] == kOtherSizes) return are_ones(inputs[i], facts[i]);
          return may_be_alike(inputs[i], facts[i]) || (plan.strengths[0] == kAlone && in_groups(inputs[i], facts[i]));
        });
    if (changed.empty() || (draws_integers && says_nothing)) continue;
    plans.push_back(plan);
    const bool offsets = std::any_of(changed.begin(), changed.end(), [&](int each) {
      const auto i = static_cast<size_t>(each);
      return are_offsets(inputs[i], facts[i]);
    });
    if (offsets && draws_integers && plan.strengths.size() > 1) plans.push_back({plan.kind, {kRepeated}});
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
  const std::vector<int> of_kind = chosen;
  std::erase_if(chosen, [&](int input) { return is_kept(recipe, input); });
  int number = 0;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) continue;
    const auto i = static_cast<size_t>(number++);
    if (std::find(chosen.begin(), chosen.end(), static_cast<int>(i)) == chosen.end()) continue;
    const at::Tensor given = without_repetitions(inputs[i], inputs[i]);
    at::Tensor place = at::empty_strided(given.sizes(), given.strides(), given.options());
    const uint64_t own = seed + 7 * (i + 1);
    at::Tensor made = stressed(recipe, given, facts[i], own);
    const auto before = std::find(of_kind.begin(), of_kind.end(), static_cast<int>(i)) - of_kind.begin();
    if (recipe.kind == StressKind::negative && recipe.strength >= kOpposite && before % 2 == 1) made = made.neg();
    if (recipe.kind == StressKind::halves) {
      Draws draws(given, own);
      made = half_steps(given, recipe.strength, has_few_elements(inputs, of_kind, i), draws);
    }
    if (recipe.kind == StressKind::agree || recipe.kind == StressKind::nearly) {
      const at::Tensor& other = inputs[first_alike(inputs, i)];
      const bool nearly = recipe.kind == StressKind::nearly;
      Draws draws(given, own);
      const bool alike = other.sizes() == inputs[i].sizes();
      made = agreeing(given, alike ? without_repetitions(other, inputs[i]) : other, facts[i], nearly, draws);
    }
    if (!facts[i].fixed) made = in_form(made, facts[i]);
    if (facts[i].zeros.defined() && !facts[i].fixed)
      made = made.masked_fill(without_repetitions(facts[i].zeros, inputs[i]), 0);
    place.copy_(made);
    for (const KeptPart& part : recipe.kept)
      if (part.input == static_cast<int>(i))
        place.slice(part.axis, part.begin, part.end, part.step)
            .copy_(given.slice(part.axis, part.begin, part.end, part.step));
    leaf = place.expand(inputs[i].sizes());
  }
}

}  // namespace tilepilot::eval
