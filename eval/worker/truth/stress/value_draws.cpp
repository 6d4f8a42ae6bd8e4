#include "eval/worker/truth/stress/value_draws.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

namespace tilepilot::eval {
namespace {

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

// A length, a count, a position.
at::Tensor other_number(const at::Tensor& tensor, bool smaller, Draws& draws) {
  const int64_t value = tensor.item<int64_t>(), size = std::abs(value);
  const int64_t low = smaller ? 0 : size + 1, high = smaller ? size - 1 : 2 * size + 2;
  if (high < low) return tensor;
  const at::Tensor drawn = draws.integers(low, high);
  return (value < 0 ? drawn.neg() : drawn).to(tensor.scalar_type());
}

}  // namespace

at::Generator generator_on(c10::Device device, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator;
}

Draws::Draws(const at::Tensor& like, uint64_t seed) : like_(like), generator_(generator_on(like.device(), seed)) {}

at::Tensor Draws::place(at::ScalarType type) const {
  return at::empty(like_.sizes(), at::dtype(type).device(like_.device()));
}
at::Tensor Draws::uniform() { return place(at::kFloat).uniform_(0, 1, generator_); }
at::Tensor Draws::normal() { return place(at::kFloat).normal_(0, 1, generator_); }
at::Tensor Draws::integers(int64_t low, int64_t high) { return place(at::kLong).random_(low, high + 1, generator_); }
at::Tensor Draws::permuted() {
  const at::Tensor order = at::randperm(like_.numel(), generator_, at::dtype(at::kLong).device(like_.device()));
  return like_.flatten().index_select(0, order).reshape(like_.sizes());
}
at::Tensor Draws::some_of(int64_t end, int64_t count) {
  return at::randperm(end, generator_, at::dtype(at::kLong).device(like_.device())).slice(0, 0, count);
}

at::Tensor uniform_by_row(const at::Tensor& tensor, Draws& draws) {
  const at::Tensor drawn = draws.uniform();
  return tensor.dim() < 2 ? at::ones({}, drawn.options()) : drawn.slice(-1, 0, 1);
}

at::Tensor some_of_each_draw(const at::Tensor& drawn, double share) {
  return drawn.numel() > 1 ? drawn.le(drawn.min().clamp_min(share)) : drawn.le(share);
}

bool is_integer(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false); }

at::Tensor sorted_values(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor : std::get<0>(tensor.sort(-1)); }

namespace {

constexpr size_t kFewChoices = 4;
constexpr int64_t kTimesEach = 8;  // times each value, on average: else it is chance that there are few

// The values with those that are known, if there are few; else none.
std::set<double> few_values_of(const at::Tensor& tensor, std::set<double> all) {
  at::Tensor others = tensor.flatten();
  for (const double known : all) others = others.masked_select(others.ne(known));
  while (others.numel() > 0 && all.size() <= kFewChoices) {
    const double value = others[0].item<double>();
    if (std::isnan(value)) return {};
    all.insert(value);
    others = others.masked_select(others.ne(value));
  }
  return others.numel() > 0 || all.size() > kFewChoices ? std::set<double>() : all;
}

// Keeps the values while there are few of them.
void see_few(const at::Tensor& tensor, bool first, InputFacts& facts) {
  if (!first && facts.few.empty()) return;
  const at::Tensor flat = tensor.flatten();
  const std::set<double> all = few_values_of(flat, {facts.few.begin(), facts.few.end()});
  facts.few.clear();
  if (all.size() < 2 || !std::isfinite(*all.rbegin() - *all.begin())) return;
  const bool has_gaps = *all.rbegin() - *all.begin() >= static_cast<double>(all.size());
  const bool is_mask = all == std::set<double>{0, 1};
  if (is_integer(tensor) && !has_gaps && !is_mask) return;
  if (flat.numel() >= kTimesEach * static_cast<int64_t>(all.size())) facts.few.assign(all.begin(), all.end());
}

bool is_symmetric(const at::Tensor& tensor) {
  return tensor.dim() > 1 && tensor.size(-1) == tensor.size(-2) && tensor.size(-1) > 2 &&
         tensor.equal(tensor.transpose(-1, -2));
}

bool is_ascending(const at::Tensor& tensor) {
  if (tensor.dim() == 0 || tensor.size(-1) < 4) return false;
  const at::Tensor steps = tensor.diff(1, -1);
  return steps.ge(0).all().item<bool>() && steps.gt(0).any().item<bool>();
}

bool is_one_hot(const at::Tensor& tensor) {
  return tensor.dim() > 0 && tensor.size(-1) > 1 && tensor.sum(-1).eq(1).all().item<bool>() &&
         tensor.eq(0).logical_or_(tensor.eq(1)).all().item<bool>();
}

}  // namespace

bool are_choices(const at::Tensor& tensor) {
  const int64_t count = tensor.numel();
  if (count == 0 || few_values_of(tensor.flatten().slice(0, 0, kTimesEach), {}).empty()) return false;
  const auto values = few_values_of(tensor, {});
  return values.size() > 1 && count >= kTimesEach * static_cast<int64_t>(values.size());
}

void see_values(const at::Tensor& input, bool first, InputFacts& facts) {
  if (input.numel() == 0 || input.scalar_type() == at::kBool || input.is_complex()) return;
  // PyTorch compares and sorts no unsigned numbers of more than 8 bits.
  const at::Tensor tensor = at::isBarebonesUnsignedType(input.scalar_type()) ? input.to(at::kLong) : input;
  double low = tensor.min().item<double>(), high = tensor.max().item<double>();
  facts.low = first ? low : std::min(facts.low, low);
  facts.high = first ? high : std::max(facts.high, high);
  // The ends of a range that `get_inputs` names come seldom.
  if (const auto& drawn_from = facts.singled_out.range) {
    low = std::min(low, drawn_from->first);
    high = std::max(high, drawn_from->second);
  }
  see_few(tensor, first, facts);
  facts.one_hot = (first || facts.one_hot) && facts.is_mask() && tensor.is_floating_point() && is_one_hot(tensor);
  constexpr int64_t kMostLooked = int64_t{1} << 27;  // elements: of more, which are zero takes too much memory
  if (tensor.is_floating_point()) {
    facts.ascending = (first || facts.ascending) && is_ascending(tensor);
    facts.symmetric = (first || facts.symmetric) && is_symmetric(tensor);
  }
  if (tensor.is_floating_point() && facts.few.empty() && tensor.numel() <= kMostLooked &&
      (first || facts.zeros.defined())) {
    constexpr int64_t kPart = 16;  // of the elements must be zero: a few may be by chance
    const at::Tensor zeros = first ? tensor.eq(0) : facts.zeros.logical_and(tensor.eq(0));
    const int64_t count = zeros.sum().item<int64_t>();
    facts.zeros = count * kPart >= tensor.numel() && count < tensor.numel() ? zeros : at::Tensor();
  }
  if (!is_integer(tensor)) return;
  const at::Tensor flat = tensor.flatten(), ordered = sorted_values(flat);
  facts.sorted = facts.sorted && flat.equal(ordered);
  facts.distinct = facts.distinct && !ordered.slice(0, 1).eq(ordered.slice(0, 0, -1)).any().item<bool>();
}

at::Tensor other_floats(const at::Tensor& tensor, bool signs, Draws& draws) {
  if (!tensor.isfinite().all().item<bool>()) return draws.permuted();  // additive masks
  const at::ScalarType type = tensor.scalar_type();
  if (tensor.dim() > 0 && tensor.eq(0).logical_or(tensor.eq(1)).all().item<bool>())
    return draws.uniform().gt(0.5).to(type);
  if (!tensor.any().item<bool>()) return draws.normal().to(type);
  const at::Tensor other = tensor.mul(draws.uniform().add(0.5).to(type));
  return signs ? at::where(draws.uniform().gt(0.5), other, other.neg()) : other;
}

bool are_offsets(const at::Tensor& tensor, const InputFacts& facts) {
  const bool is_range = facts.high - facts.low == static_cast<double>(tensor.numel() - 1);
  return is_integer(tensor) && tensor.dim() > 0 && tensor.numel() > 2 && facts.sorted && facts.distinct && !is_range &&
         facts.singled_out.may_repeat;
}

at::Tensor repeated_offsets(const at::Tensor& tensor, Draws& draws) {
  constexpr double kShare = 0.25;
  const at::Tensor other = other_offsets(tensor, draws).flatten();
  const at::Tensor repeats = draws.uniform().flatten().lt(kShare);
  repeats[0].fill_(false);
  repeats[1].fill_(true);
  repeats[-1].fill_(false);
  return at::where(repeats, other.roll(1), other).reshape(tensor.sizes());
}

at::Tensor in_form(const at::Tensor& tensor, const InputFacts& facts) {
  if (facts.symmetric) return tensor.triu().add(tensor.triu(1).transpose(-1, -2));
  return facts.ascending ? sorted_values(tensor) : tensor;
}

at::Tensor other_choices(const at::Tensor& tensor, const InputFacts& facts, Draws& draws) {
  const at::ScalarType type = tensor.scalar_type();
  if (facts.one_hot) {
    const at::Tensor drawn = draws.uniform();
    return drawn.eq(drawn.amax(-1, /*keepdim*/ true)).to(type);
  }
  const at::Tensor values = at::tensor(facts.few, at::dtype(at::kDouble).device(tensor.device()));
  const at::Tensor which = draws.integers(0, values.numel() - 1);
  return values.index_select(0, which.flatten()).reshape(tensor.sizes()).to(type);
}

namespace {

// Of integers that are the same everywhere: what may be a mask, or numbers of kinds, is one of both; lengths that are
// all full are shorter.
at::Tensor fewer_than_all(const at::Tensor& tensor, int64_t value, Draws& draws) {
  const at::Tensor drawn = value <= 1 ? draws.integers(0, 1) : draws.integers(1, value);
  return drawn.reshape(tensor.sizes()).to(tensor.scalar_type());
}

}  // namespace

at::Tensor other_integers(const at::Tensor& tensor, const InputFacts& facts, bool smaller, Draws& draws) {
  if (tensor.numel() == 0) return tensor;
  if (tensor.numel() == 1) return other_number(tensor, smaller, draws);
  if (facts.low == facts.high && facts.low >= 0) return fewer_than_all(tensor, static_cast<int64_t>(facts.low), draws);
  // All numbers of a range in order are a permutation too; others in order may be offsets.
  const bool is_range = facts.high - facts.low == static_cast<double>(tensor.numel() - 1);
  if (facts.distinct && !facts.singled_out.repeats)
    return facts.sorted && !is_range ? other_offsets(tensor, draws) : draws.permuted();
  if (!facts.few.empty() && !facts.sorted) return other_choices(tensor, facts, draws);
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

bool may_be_wide(const at::Tensor& tensor, const InputFacts& facts) {
  const bool in_form = facts.sorted || facts.distinct || !facts.few.empty();
  return is_integer(tensor) && !at::isBarebonesUnsignedType(tensor.scalar_type()) && tensor.numel() > 1 && !in_form &&
         facts.singled_out.is_computed && !facts.singled_out.is_flag && facts.low < facts.high;
}

at::Tensor wide_integers(const at::Tensor& tensor, const InputFacts& facts, Draws& draws) {
  constexpr double kTimes = 64, kMost = 1 << 30;
  constexpr int64_t kShortest = 8, kShort = 16;
  const at::ScalarType type = tensor.scalar_type();
  const auto bits = static_cast<int64_t>(8 * c10::elementSize(type));
  if (type == at::kByte) return draws.integers(0, (1 << kShortest) - 1).to(type);
  if (bits <= kShort) return draws.integers(-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1).to(type);
  const auto far = [&](double end) { return static_cast<int64_t>(std::clamp(end * kTimes, -kMost, kMost)); };
  const int64_t low = facts.low < 0 ? far(facts.low) : static_cast<int64_t>(facts.low);
  return draws.integers(low, std::max(far(facts.high), static_cast<int64_t>(facts.high))).to(type);
}

}  // namespace tilepilot::eval
