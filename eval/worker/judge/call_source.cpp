#include "eval/worker/judge/call_source.h"

#include <algorithm>
#include <map>
#include <set>

#include "eval/process/wire.h"
#include "eval/worker/truth/compare/digest.h"

namespace tilepilot::eval {
namespace {

using c10::IValue;

constexpr double kDrawSeconds = 5e-3;  // of a batch: for draws, where changes do as well
constexpr double kLoneDraws = 40e-3;   // where they do not
constexpr size_t kRedrawEvery = 6;     // batches at most, however long a draw takes
constexpr int64_t kBaseBytes = int64_t{128} << 20;
constexpr size_t kMostBases = 8;
constexpr int64_t kLargeBase = int64_t{1} << 30;  // a second one is not worth its memory
constexpr uint64_t kTrapEvery = 2;                // calls of a batch with one call
constexpr double kTrapShare = 0.25;               // of the elements: what a trap changes

// How another draw is made from one: elements drawn one like the other, from an interval around zero or that begins
// there, may change places, and scaled down they are nearly another draw.
ChangeRule rule_of_draw(const Graph& recipe, int value) {
  static const std::map<std::string, ChangeRule> random = {{"aten::randn", ChangeRule::symmetric},
                                                           {"aten::randn_like", ChangeRule::symmetric},
                                                           {"aten::rand", ChangeRule::alike},
                                                           {"aten::rand_like", ChangeRule::alike}};
  static const std::set<std::string> keeping = {"aten::view",      "aten::reshape",  "aten::detach",     "aten::clone",
                                                "aten::to",        "aten::_to_copy", "aten::mul",        "aten::div",
                                                "aten::transpose", "aten::permute",  "aten::contiguous", "aten::t"};
  for (auto& node : recipe.nodes) {
    if (std::find(node.outputs.begin(), node.outputs.end(), value) == node.outputs.end()) continue;
    if (const auto rule = random.find(node.op); rule != random.end()) return rule->second;
    if (!keeping.count(node.op) || node.args.empty() || !node.args[0].value_id()) return ChangeRule::none;
    for (size_t i = 1; i < node.args.size(); ++i)
      if (node.args[i].value_id()) return ChangeRule::none;
    return rule_of_draw(recipe, *node.args[0].value_id());
  }
  return ChangeRule::none;
}

// Of an input that nothing draws: masks stay, and so does the order along the last axis, as of the bounds of bins.
ChangeRule rule_of_constant(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.flatten(), unlike = flat.masked_select(flat.ne(flat[0]));
  const bool is_mask = unlike.numel() == 0 || unlike.eq(unlike[0]).all().item<bool>();
  if (is_mask || !flat.isfinite().all().item<bool>()) return ChangeRule::none;
  const bool has_rows = tensor.dim() > 1 && tensor.size(0) > 1 && tensor.is_non_overlapping_and_dense();
  return has_rows ? ChangeRule::rows : ChangeRule::one_factor;
}

// Something writes into values in place: what was drawn may be something else by then.
bool changes_in_place(const Graph& recipe) {
  return std::any_of(recipe.nodes.begin(), recipe.nodes.end(), [](const GraphNode& node) {
    return node.op.size() > 1 && node.op.back() == '_' && node.op[node.op.size() - 2] != '_';
  });
}

bool is_random(const GraphNode& node) {
  constexpr std::string_view kRandom[] = {"rand",        "normal",     "uniform",   "bernoulli", "multinomial",
                                          "exponential", "log_normal", "geometric", "cauchy",    "poisson"};
  return std::any_of(std::begin(kRandom), std::end(kRandom),
                     [&](std::string_view name) { return node.op.find(name) != std::string::npos; });
}

// Whether a value is made from something that is drawn.
bool is_drawn(const Graph& recipe, int value) {
  std::set<int> wanted = {value};
  for (auto node = recipe.nodes.rbegin(); node != recipe.nodes.rend(); ++node) {
    const bool makes =
        std::any_of(node->outputs.begin(), node->outputs.end(), [&](int id) { return wanted.count(id); });
    // What is written in place is an argument of what writes.
    bool writes = false;
    auto look = [&](int id) { writes = writes || wanted.count(id) > 0; };
    if (!node->args.empty() && node->op.back() == '_') for_each_value(node->args[0], look);
    if (!makes && !writes) continue;
    if (is_random(*node)) return true;
    auto want = [&](int id) { wanted.insert(id); };
    for (auto& argument : node->args) for_each_value(argument, want);
    for (auto& [name, argument] : node->kwargs) for_each_value(argument, want);
  }
  return false;
}

}  // namespace

std::vector<IValue> with_tensors(const std::vector<IValue>& leaves, const std::vector<at::Tensor>& tensors) {
  std::vector<IValue> result = leaves;
  size_t next = 0;
  for (IValue& leaf : result) {
    if (leaf.isTensor()) leaf = tensors.at(next++);
  }
  return result;
}

CallSource::CallSource(const ReferenceSide& side, const Trial& given)
    : side_(side), random_(std::random_device{}()), mutated_(given.mutated) {
  for (auto& output : given.outputs) output_bytes_ += static_cast<int64_t>(output.eager.nbytes());
  find_changes(given);
}

void CallSource::find_changes(const Trial& given) {
  auto& inputs = given.inputs;
  bytes_ = bytes_of(inputs);
  auto& recipe = side_.reference().inputs;
  std::vector<int> values;
  for_each_value(recipe.outputs, [&](int id) { values.push_back(id); });
  const bool plain = values.size() == inputs.size() && !changes_in_place(recipe);
  varies_ = std::any_of(recipe.nodes.begin(), recipe.nodes.end(), is_random);
  bool all_change = true;  // of those that are drawn
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool drawn = values.size() != inputs.size() || is_drawn(recipe, values[i]);
    ChangeRule& rule = changes_.emplace_back(ChangeRule::none);
    if (inputs[i].is_floating_point() && inputs[i].numel() > 0) {
      // Where nothing is drawn, a change is all there is.
      if (!varies_)
        rule = ChangeRule::factors;
      else if (plain)
        rule = drawn ? rule_of_draw(recipe, values[i]) : rule_of_constant(inputs[i]);
    }
    has_constants_ = has_constants_ || rule == ChangeRule::one_factor || rule == ChangeRule::rows;
    can_change_ = can_change_ || (rule != ChangeRule::none && (drawn || !varies_));
    all_change = all_change && (inputs[i].numel() == 0 || !drawn || rule != ChangeRule::none);
  }
  // An input that stays the same over calls is one whose consequences can be kept: then each call has a draw of all.
  can_change_ = can_change_ && all_change;
}

Status CallSource::draw(int64_t base) {
  const double begin = monotonic_seconds();
  bases_.erase(base);
  if (last_call_ && last_call_->base == base) last_call_.reset();
  bases_[base] = TRY(side_.fresh_inputs(random_()));
  used_[base] = false;
  draw_seconds_ = monotonic_seconds() - begin;
  return {};
}

void CallSource::forget_draws() {
  bases_.clear();
  used_.clear();
  last_call_.reset();
}

bool CallSource::is_large() const { return !side_.device().is_cpu() && bytes_ > kLargeOnGpu; }

size_t CallSource::most_bases() const {
  const size_t fewest = bytes_ > kLargeBase ? 1 : 2;
  return std::clamp<size_t>(static_cast<size_t>(kBaseBytes / std::max<int64_t>(bytes_, 1)), fewest, kMostBases);
}

Result<PlannedBatch> CallSource::next(size_t calls, size_t lead) {
  PlannedBatch planned;
  planned.batch.changes = changes_;
  const size_t wanted = calls + lead;
  const double allowed = can_change_ ? kDrawSeconds : kLoneDraws;
  size_t draws = draw_seconds_ > 0 ? static_cast<size_t>(std::min(allowed / draw_seconds_, 1e6)) : 1;
  if (can_change_) {
    const bool due = bases_.empty() || batches_ % kRedrawEvery == 0;
    draws = std::clamp<size_t>(draws, due ? 1 : 0, std::min(wanted, most_bases()));
  } else {
    draws = repeats() ? 1 : std::clamp<size_t>(draws, lead + 1, wanted);
  }
  ++batches_;
  for (size_t i = 0; i < draws; ++i) {
    const int64_t base = can_change_ ? next_base_++ % static_cast<int64_t>(most_bases()) : static_cast<int64_t>(i);
    TRY(draw(base));
    planned.fresh.push_back(base);
  }
  if (can_change_) {
    add_changed_calls(wanted, planned);
  } else {
    for (size_t i = 0; i < (repeats() ? wanted : draws); ++i)  // what is not drawn changes all the same
      planned.batch.calls.push_back({repeats() ? 0 : static_cast<int64_t>(i), {random_() | 1}, {}});
    planned.traps.assign(planned.batch.calls.size(), false);
  }
  if (is_large()) {
    std::set<int64_t> used;
    for (const Call& call : planned.batch.calls) used.insert(call.base);
    planned.fresh.assign(used.begin(), used.end());
  }
  planned.batch.lead = static_cast<int64_t>(std::min(lead, planned.batch.calls.size() - 1));
  planned.batch.seed = random_() >> 1;
  planned.batch.memory = random_();
  return planned;
}

void CallSource::add_changed_calls(size_t calls, PlannedBatch& planned) {
  const uint64_t trap = calls > 1 ? random_() % calls : random_() % kTrapEvery;
  std::uniform_real_distribution<double> place(0, 1 - kTrapShare);
  for (size_t i = 0; i < calls; ++i) {
    const auto base = std::next(bases_.begin(), static_cast<std::ptrdiff_t>(random_() % bases_.size()))->first;
    // Like the call before, also if that was another batch's, or like a draw that a call had.
    const bool is_due = i == trap, repeats_last = is_due && last_call_ && random_() % 2 == 0;
    Call call = repeats_last ? *last_call_ : Call{base, {}, {}};
    // A draw that nobody has seen needs no change.
    const bool seen = std::exchange(used_[call.base], true), trapped = is_due && seen;
    if (trapped) {
      const double from = place(random_);
      call.last = {random_() | 1, from, from + kTrapShare};
    } else if (seen || has_constants_) {
      call.change.key = random_() | 1;
    }
    last_call_ = call;
    planned.batch.calls.push_back(call);
    planned.traps.push_back(trapped);
  }
}

std::vector<IValue> CallSource::leaves_of(const Batch& batch, const Call& call) const {
  auto& base = bases_.at(call.base);
  return with_tensors(base, inputs_of(batch, call, tensors_of(base), side_.device()));
}

}  // namespace tilepilot::eval
