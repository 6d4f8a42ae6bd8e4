#include "eval/worker/candidate/weight_match.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

using Kind = HeldTensor::Kind;

std::string describe(const std::string& name, const at::Tensor& tensor) {
  return fmt::format("`{}` {}[{}]", name, element_type_name(tensor.scalar_type()),
                     fmt::join(tensor.sizes().vec(), ", "));
}

// Conversions between floating types are roundings, which the comparison of outputs judges.
bool same_family(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() || (a.is_floating_point() && b.is_floating_point());
}

bool same_form(const at::Tensor& a, const at::Tensor& b) { return a.sizes() == b.sizes() && same_family(a, b); }

std::vector<int64_t> squeezed(const at::Tensor& tensor) {
  std::vector<int64_t> sizes;
  for (int64_t size : tensor.sizes()) {
    if (size != 1) sizes.push_back(size);
  }
  return sizes;
}

std::string last_part(const std::string& name) {
  size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::optional<double> constant_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.is_complex()) return std::nullopt;
  auto first = tensor.reshape({-1})[0];
  if (!tensor.eq(first).all().item<bool>()) return std::nullopt;
  return first.item<double>();
}

std::string listed(std::vector<std::string> items) {
  constexpr size_t kShown = 8;
  size_t hidden = items.size() > kShown ? items.size() - kShown : 0;
  items.resize(items.size() - hidden);
  return fmt::format("{}{}", fmt::join(items, ", "), hidden ? fmt::format(" and {} more", hidden) : "");
}

// Positions of `items` by key, in order.
template <class Key, class Function>
std::map<Key, std::vector<size_t>> grouped(const std::vector<size_t>& items, Function key) {
  std::map<Key, std::vector<size_t>> groups;
  for (size_t item : items) {
    if (auto its = key(item)) groups[*its].push_back(item);
  }
  return groups;
}

}  // namespace

std::vector<at::Tensor> recognisable_numbers(const std::vector<ModelWeight>& weights) {
  std::vector<at::Tensor> numbers;
  std::set<std::string> seen;
  for (auto& weight : weights) {
    bool recognisable = seen.insert(weight.storage).second && weight.tensor.layout() == at::kStrided &&
                        weight.tensor.numel() > 0 && !constant_of(weight.tensor);
    numbers.push_back(recognisable ? weight.tensor : at::Tensor());
  }
  return numbers;
}

WeightMatcher::WeightMatcher(const std::vector<HeldTensor>& held, const std::vector<ModelWeight>& weights)
    : held_(held),
      weights_(weights),
      numbers_(recognisable_numbers(weights)),
      held_taken_(held.size()),
      weight_taken_(weights.size()) {
  for (auto& each : held) held_constants_.push_back(constant_of(each.tensor));
  for (auto& each : weights) weight_constants_.push_back(constant_of(each.tensor));
}

void WeightMatcher::take_held(size_t index) {
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].tensor.is_same(held_[index].tensor)) held_taken_[i] = true;
  }
}

void WeightMatcher::take_weight(size_t index) {
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].storage == weights_[index].storage) weight_taken_[i] = true;
  }
}

void WeightMatcher::pair(size_t held, size_t weight, Evidence evidence) {
  pairs_.push_back({held, weight, evidence});
  take_held(held);
  take_weight(weight);
  // What looks at the same memory has the same elements.
  for (size_t i = 0; i < held_.size(); ++i) {
    bool looks = held_[i].kind == Kind::attribute && held_[i].tensor.is_alias_of(held_[held].tensor);
    if (looks) held_taken_[i] = true;
  }
}

void WeightMatcher::unpair(size_t held) {
  std::erase_if(pairs_, [&](const WeightPair& pair) { return pair.held == held; });
}

WeightMatcher::Indices WeightMatcher::held_left(bool only_registered) const {
  Indices left;
  for (size_t i = 0; i < held_.size(); ++i) {
    if (!held_taken_[i] && (!only_registered || held_[i].kind != Kind::attribute)) left.push_back(i);
  }
  return left;
}

WeightMatcher::Indices WeightMatcher::weights_left() const {
  Indices left;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!weight_taken_[i]) left.push_back(i);
  }
  return left;
}

bool WeightMatcher::match_all_names() {
  std::map<std::string, size_t> wanted;
  for (size_t i = 0; i < weights_.size(); ++i) wanted[weights_[i].name] = i;
  std::vector<WeightPair> pairs;
  std::set<size_t> found;
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].kind == Kind::attribute) continue;
    auto its = wanted.find(held_[i].name);
    if (its != wanted.end() && same_form(held_[i].tensor, weights_[its->second].tensor)) {
      pairs.push_back({i, its->second, Evidence::name});
      found.insert(its->second);
    } else if (held_[i].kind == Kind::parameter || its != wanted.end()) {
      return false;
    }
  }
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!weights_[i].is_buffer && found.count(i) == 0) return false;
  }
  for (auto& each : pairs) pair(each.held, each.weight, each.evidence);
  return true;
}

WeightMatcher::Indices WeightMatcher::with_numbers_of(size_t held) const {
  Indices found;
  if (held_constants_[held]) return found;
  return numbers_.alike(held_[held].tensor);
}

void WeightMatcher::match_numbers() {
  std::vector<std::pair<size_t, Indices>> ambiguous;
  for (size_t i : held_left(false)) {
    auto found = with_numbers_of(i);
    if (found.size() == 1) pair(i, found[0], Evidence::numbers);
    if (found.size() > 1 && held_[i].kind != Kind::attribute) ambiguous.emplace_back(i, found);
  }
  match_ambiguous_numbers(ambiguous);
}

// Weights of the same numbers that are different tensors: by name, or in order if there are as many on both sides.
void WeightMatcher::match_ambiguous_numbers(const std::vector<std::pair<size_t, Indices>>& ambiguous) {
  std::map<Indices, Indices> groups;
  for (auto& [held, weights] : ambiguous) groups[weights].push_back(held);
  for (auto& [weights, held] : groups) {
    if (weights.size() != held.size()) continue;
    auto by_name = held;
    for (size_t i = 0; i < weights.size(); ++i) {
      for (size_t each : held) {
        if (held_[each].name == weights_[weights[i]].name) by_name[i] = each;
      }
    }
    bool one_to_one = std::set<size_t>(by_name.begin(), by_name.end()).size() == held.size();
    for (size_t i = 0; i < weights.size() && one_to_one; ++i) pair(by_name[i], weights[i], Evidence::numbers);
  }
}

void WeightMatcher::match_names() {
  for (size_t i : held_left(true)) {
    for (size_t j : weights_left()) {
      if (held_[i].name != weights_[j].name || !same_form(held_[i].tensor, weights_[j].tensor)) continue;
      pair(i, j, Evidence::name);
      break;
    }
  }
}

// Whether the last parts of names pair the two groups otherwise than their order does.
bool WeightMatcher::names_contradict(const Indices& held, const Indices& weights) const {
  std::map<std::string, Indices> named;
  for (size_t i = 0; i < weights.size(); ++i) named[last_part(weights_[weights[i]].name)].push_back(i);
  std::map<std::string, int> times;
  for (size_t each : held) ++times[last_part(held_[each].name)];
  for (size_t i = 0; i < held.size(); ++i) {
    std::string part = last_part(held_[held[i]].name);
    auto found = named.find(part);
    if (found != named.end() && found->second.size() == 1 && times[part] == 1 && found->second[0] != i) return true;
  }
  return false;
}

// Pairs groups of equal keys that have as many members on both sides, in order. Without `evidence`: that of form or
// order, by how many there are.
template <class HeldKey, class WeightKey>
void WeightMatcher::match_groups(const Indices& held, HeldKey held_key, WeightKey weight_key,
                                 std::optional<Evidence> evidence) {
  using Key = typename decltype(held_key(size_t{}))::value_type;
  auto wanted = grouped<Key>(weights_left(), weight_key);
  for (auto& [key, members] : grouped<Key>(held, held_key)) {
    auto found = wanted.find(key);
    if (found == wanted.end() || found->second.size() != members.size()) continue;
    if (names_contradict(members, found->second)) continue;
    auto its = evidence.value_or(members.size() == 1 ? Evidence::form : Evidence::order);
    for (size_t i = 0; i < members.size(); ++i) pair(members[i], found->second[i], its);
  }
}

void WeightMatcher::match_last_names() {
  std::map<std::pair<std::string, std::vector<int64_t>>, std::pair<Indices, Indices>> groups;
  for (size_t i : held_left(true)) groups[{last_part(held_[i].name), squeezed(held_[i].tensor)}].first.push_back(i);
  for (size_t i : weights_left()) {
    groups[{last_part(weights_[i].name), squeezed(weights_[i].tensor)}].second.push_back(i);
  }
  for (auto& [key, members] : groups) {
    auto& [held, weights] = members;
    if (held.size() != 1 || weights.size() != 1) continue;
    if (same_family(held_[held[0]].tensor, weights_[weights[0]].tensor)) {
      pair(held[0], weights[0], Evidence::last_name);
    }
  }
}

void WeightMatcher::match_rest() {
  match_names();
  using Constant = std::optional<std::tuple<bool, std::vector<int64_t>, double>>;
  auto held_constant = [&](size_t i) {
    auto& value = held_constants_[i];
    return value ? Constant({held_[i].kind == Kind::buffer, squeezed(held_[i].tensor), *value}) : Constant();
  };
  auto weight_constant = [&](size_t i) {
    auto& value = weight_constants_[i];
    return value ? Constant({weights_[i].is_buffer, squeezed(weights_[i].tensor), *value}) : Constant();
  };
  match_groups(held_left(true), held_constant, weight_constant, Evidence::constant);
  using Form = std::optional<std::tuple<bool, bool, std::vector<int64_t>>>;
  for (bool squeeze : {false, true}) {
    auto form = [&](bool is_buffer, const at::Tensor& tensor) {
      return Form({is_buffer, tensor.is_floating_point(), squeeze ? squeezed(tensor) : tensor.sizes().vec()});
    };
    match_groups(
        held_left(true), [&](size_t i) { return form(held_[i].kind == Kind::buffer, held_[i].tensor); },
        [&](size_t i) { return form(weights_[i].is_buffer, weights_[i].tensor); }, std::nullopt);
  }
  match_last_names();
  // A constant parameter of the model's may be a buffer or a plain attribute of the candidate's.
  auto any_constant = [&](size_t i) {
    auto& value = held_constants_[i];
    bool fits = value && held_[i].tensor.is_floating_point();
    return fits ? Constant({false, squeezed(held_[i].tensor), *value}) : Constant();
  };
  match_groups(held_left(false), any_constant, weight_constant, Evidence::constant);
}

std::string WeightMatcher::mismatch() const {
  std::vector<std::string> foreign, missing, different;
  std::map<std::string, size_t> wanted;
  for (size_t i : weights_left()) wanted[weights_[i].name] = i;
  for (size_t i : held_left(true)) {
    if (held_[i].kind != Kind::parameter) continue;
    auto found = wanted.find(held_[i].name);
    std::string text = describe(held_[i].name, held_[i].tensor);
    if (found == wanted.end()) {
      foreign.push_back(text);
    } else {
      auto& weight = weights_[found->second];
      different.push_back(fmt::format("{} should be {}", text, describe(weight.name, weight.tensor)));
      wanted.erase(found);
    }
  }
  if (foreign.empty() && different.empty()) return "";
  for (auto& [name, i] : wanted) {
    if (!weights_[i].is_buffer) missing.push_back(describe(name, weights_[i].tensor));
  }
  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back("it lacks " + listed(missing));
  if (!foreign.empty()) parts.push_back("the model has no " + listed(foreign));
  if (!different.empty()) parts.push_back(listed(different));
  return fmt::format("the candidate's weights are not the model's: {}", fmt::join(parts, "; "));
}

std::string WeightMatcher::lacking() const {
  std::vector<std::string> missing;
  for (size_t i : weights_left()) {
    if (!weights_[i].is_buffer && weights_[i].is_used) {
      missing.push_back(describe(weights_[i].name, weights_[i].tensor));
    }
  }
  return missing.empty() ? "" : listed(missing);
}

std::vector<std::string> WeightMatcher::notes() const {
  constexpr std::pair<Evidence, const char*> kTitles[] = {
      {Evidence::numbers, "weights found by the numbers that both constructors draw"},
      {Evidence::constant, "weights that start as constants, found by form and order"},
      {Evidence::form, "weights found by their form"},
      {Evidence::order, "weights matched in order among those of their form"},
      {Evidence::last_name, "weights found by the last part of their name and their form"}};
  std::vector<std::string> notes;
  for (auto& [evidence, title] : kTitles) {
    std::vector<std::string> items;
    for (auto& each : pairs_) {
      auto &held = held_[each.held].name, &weight = weights_[each.weight].name;
      if (each.evidence == evidence && held != weight) items.push_back(fmt::format("`{}` is `{}`", held, weight));
    }
    if (!items.empty()) notes.push_back(fmt::format("{}: {}", title, listed(items)));
  }
  bool buffers = false;
  for (size_t i : weights_left()) buffers = buffers || weights_[i].is_buffer;
  if (buffers) notes.emplace_back("buffers of the model that the candidate lacks were left out");
  return notes;
}

}  // namespace tilepilot::eval
