#include "eval/worker/export/model_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/export/c_names.h"
#include "eval/worker/staged_backend.h"

namespace tilepilot::eval {
namespace {

using exporting::Argument;
using exporting::ModelLaunch;
using runtime::TensorView;

constexpr int64_t kUnit = 256;  // what parts of a workspace begin at multiples of

struct Range {
  uintptr_t begin = 0, end = 0;

  static Range of(const TensorView& view) {
    const auto begin = reinterpret_cast<uintptr_t>(view.data);
    return {begin, begin + static_cast<uintptr_t>(bytes_spanned(view))};
  }
  bool holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

Error obstacle(Span span, std::string message) { return make_error(DiagnosticKind::forbidden, span, message); }

bool is_contiguous(const TensorView& view) {
  int64_t expected = 1;
  for (size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] != 1 && view.strides[axis] != expected) return false;
    expected *= view.shape[axis];
  }
  return true;
}

// What no argument of the model is: memory of one call, from the first launch that names it to the last.
struct Region {
  Range range;
  size_t first, last;  // launches
  int64_t offset = 0;

  int64_t bytes() const { return static_cast<int64_t>(range.end - range.begin); }
};

// The memory of one call.
class CallMemory {
 public:
  CallMemory(const TracedModel& model, const TracedCall& call) : model_(model), call_(call) {
    for (const auto* views : {&model.inputs, &model.weights, &call.outputs})
      for (const NamedView& named : *views) arguments_.push_back(Range::of(named.view));
  }

  const std::vector<Region>& regions() const { return regions_; }

  // Outputs are whole tensors of their own.
  Status check_outputs() const {
    const size_t others = arguments_.size() - call_.outputs.size();
    for (size_t k = 0; k < call_.outputs.size(); ++k) {
      if (!is_contiguous(call_.outputs[k].view)) return obstacle({}, "`forward` returns a view that is not contiguous");
      for (size_t other = 0; other < others + k; ++other)
        if (arguments_[other].overlaps(arguments_[others + k]))
          return obstacle({}, "`forward` returns memory of an input, of a weight or of another output");
    }
    return {};
  }

  // Memory that no argument has, joined where launches name overlapping parts of it.
  Status find_regions() {
    const auto& launches = call_.trace->launches;
    for (size_t k = 0; k < launches.size(); ++k)
      for (const runtime::Argument& argument : launches[k].arguments)
        if (const auto* view = std::get_if<TensorView>(&argument)) TRY(add(*view, k, launches[k].call));
    std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.first < b.first; });
    return {};
  }

  ModelLaunch::Memory place_of(const TensorView& view) const {
    const Range range = Range::of(view);
    for (size_t k = 0; k < arguments_.size(); ++k)
      if (arguments_[k].holds(range) && arguments_[k].end != arguments_[k].begin)
        return {false, k, static_cast<int64_t>(range.begin - arguments_[k].begin)};
    for (const Region& region : regions_)
      if (region.range.holds(range))
        return {true, 0, region.offset + static_cast<int64_t>(range.begin - region.range.begin)};
    return {true, 0, 0};  // of no bytes
  }

  // First fit, in the order of their first launches. Gives the bytes of all.
  int64_t place_regions() {
    int64_t all = 0;
    for (size_t k = 0; k < regions_.size(); ++k) {
      Region& fresh = regions_[k];
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t other = 0; other < k; ++other) {
          const Region& there = regions_[other];
          const bool at_once = there.last >= fresh.first && fresh.last >= there.first;
          const bool overlap =
              there.offset < fresh.offset + fresh.bytes() && fresh.offset < there.offset + there.bytes();
          if (!at_once || !overlap) continue;
          fresh.offset = (there.offset + there.bytes() + kUnit - 1) / kUnit * kUnit;
          moved = true;
        }
      }
      all = std::max(all, (fresh.offset + fresh.bytes() + kUnit - 1) / kUnit * kUnit);
    }
    return all;
  }

 private:
  const TracedModel& model_;
  const TracedCall& call_;
  std::vector<Range> arguments_;  // inputs, weights, outputs
  std::vector<Region> regions_;

  Status add(const TensorView& view, size_t launch, Span span) {
    Region region{Range::of(view), launch, launch};
    if (region.bytes() == 0) return {};
    for (const Range& argument : arguments_) {
      if (argument.holds(region.range)) return {};
      if (argument.overlaps(region.range))
        return obstacle(span, "a kernel is given memory of which an input, a weight or an output is a part");
    }
    std::erase_if(regions_, [&](const Region& other) {
      if (!other.range.overlaps(region.range)) return false;
      region.range = {std::min(region.range.begin, other.range.begin), std::max(region.range.end, other.range.end)};
      region.first = std::min(region.first, other.first);
      return true;
    });
    regions_.push_back(region);
    return {};
  }
};

// The launches of one call over the model's arguments.
std::vector<ModelLaunch> launches_of(const TracedModel& model, const TracedCall& call, const CallMemory& memory) {
  std::vector<ModelLaunch> launches;
  for (const TracedLaunch& traced : call.trace->launches) {
    ModelLaunch launch{model.kernel_of(*traced.program), {}, model.line_of(traced.call)};
    for (const runtime::Argument& argument : traced.arguments) {
      if (const auto* view = std::get_if<TensorView>(&argument))
        launch.values.emplace_back(memory.place_of(*view));
      else if (const auto* integer = std::get_if<int64_t>(&argument))
        launch.values.emplace_back(*integer);
      else
        launch.values.emplace_back(std::get<double>(argument));
    }
    for (const int64_t symbol : traced.symbols) launch.values.emplace_back(symbol);
    launches.push_back(std::move(launch));
  }
  return launches;
}

bool same_values(const ModelLaunch& a, const ModelLaunch& b) {
  const auto same = [](const ModelLaunch::Value& x, const ModelLaunch::Value& y) {
    const auto *left = std::get_if<ModelLaunch::Memory>(&x), *right = std::get_if<ModelLaunch::Memory>(&y);
    if (left && right)
      return left->is_workspace == right->is_workspace && left->argument == right->argument &&
             left->offset == right->offset;
    if (const auto* p = std::get_if<double>(&x), *q = std::get_if<double>(&y); p && q)
      return std::bit_cast<int64_t>(*p) == std::bit_cast<int64_t>(*q);
    const auto *i = std::get_if<int64_t>(&x), *j = std::get_if<int64_t>(&y);
    return i && j && *i == *j;
  };
  return a.kernel == b.kernel && std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same);
}

Argument argument_of(const NamedView& named, exporting::UniqueNames& names) {
  Argument argument{Argument::Kind::tensor, names.of(exporting::identifier_of(named.name)), named.view.type};
  for (const int64_t extent : named.view.shape) argument.shape.push_back(ir::int_imm(extent));
  if (is_contiguous(named.view)) return argument;
  for (const int64_t stride : named.view.strides) argument.strides.push_back(ir::int_imm(stride));
  return argument;
}

// Inputs, then weights that a kernel names, then outputs. Launches name them by their numbers among all.
exporting::Function model_function(const TracedModel& traced, std::vector<ModelLaunch>& launches) {
  exporting::Function function{"run_model", "`ModelNew.forward`", {}};
  exporting::UniqueNames names(exporting::names_around());
  std::vector<Argument> all;
  for (const auto* views : {&traced.inputs, &traced.weights, &traced.first.outputs})
    for (const NamedView& named : *views) all.push_back(argument_of(named, names));
  for (const ModelLaunch& launch : launches)
    for (size_t k = 0; k < launch.values.size(); ++k) {
      const auto* memory = std::get_if<ModelLaunch::Memory>(&launch.values[k]);
      if (!memory || memory->is_workspace) continue;
      const Argument& parameter = (*traced.kernels)[launch.kernel].function.arguments[k];
      all[memory->argument].is_read = all[memory->argument].is_read || parameter.is_read;
      all[memory->argument].is_written = all[memory->argument].is_written || parameter.is_written;
    }
  std::map<size_t, size_t> numbers;
  for (size_t k = 0; k < all.size(); ++k) {
    const bool is_weight = k >= traced.inputs.size() && k < traced.inputs.size() + traced.weights.size();
    if (is_weight && !all[k].is_read && !all[k].is_written) continue;
    numbers[k] = function.arguments.size();
    function.arguments.push_back(all[k]);
  }
  for (ModelLaunch& launch : launches)
    for (ModelLaunch::Value& value : launch.values)
      if (auto* memory = std::get_if<ModelLaunch::Memory>(&value); memory && !memory->is_workspace)
        memory->argument = numbers.at(memory->argument);
  return function;
}

// Memory that both calls used is kept from one to the next: what lies there was put there before.
Status check_fresh(const CallMemory& first, const CallMemory& second, const TracedModel& model) {
  const auto& launches = model.first.trace->launches;
  for (const Region& one : first.regions())
    for (const Region& other : second.regions())
      if (one.range.overlaps(other.range))
        return obstacle(launches[one.first].call,
                        "a kernel uses a tensor that is neither an input nor a weight, and "
                        "that was not made by this call");
  for (const NamedView& one : model.first.outputs)
    for (const NamedView& other : model.second.outputs)
      if (Range::of(one.view).overlaps(Range::of(other.view)))
        return obstacle({}, "`forward` returns a tensor that it keeps from one call to the next");
  return {};
}

}  // namespace

Result<exporting::Model> plan_model(const TracedModel& traced) {
  CallMemory first(traced, traced.first), second(traced, traced.second);
  for (CallMemory* memory : {&first, &second}) {
    TRY(memory->check_outputs());
    TRY(memory->find_regions());
  }
  TRY(check_fresh(first, second, traced));
  exporting::Model model;
  model.buffer_bytes = first.place_regions();
  second.place_regions();
  model.launches = launches_of(traced, traced.first, first);
  const auto again = launches_of(traced, traced.second, second);
  const auto [at, other] =
      std::mismatch(model.launches.begin(), model.launches.end(), again.begin(), again.end(), same_values);
  if (at != model.launches.end() || other != again.end()) {
    const size_t number = static_cast<size_t>(at - model.launches.begin());
    const auto& launches = at != model.launches.end() ? traced.first.trace->launches : traced.second.trace->launches;
    return obstacle(launches[number].call, "a second call launches something else than the first one");
  }
  model.function = model_function(traced, model.launches);
  for (size_t k = 0; k < model.function.arguments.size(); ++k)
    if (k + traced.first.outputs.size() >= model.function.arguments.size() && !model.function.arguments[k].is_written)
      return obstacle({}, "no kernel writes an output of `forward`");
  return model;
}

}  // namespace tilepilot::eval
