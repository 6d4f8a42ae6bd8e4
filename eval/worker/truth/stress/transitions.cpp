#include "eval/worker/truth/stress/transitions.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <random>

#include "eval/process/wire.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

std::optional<int64_t> end_of_transition(const ResultAt& result, int64_t latest) {
  const auto last = result(latest);
  if (!last || result(0) == last || result(latest - 1) != last) return std::nullopt;
  int64_t changes = 0, settled = latest - 1;
  while (settled - changes > 1) {
    const int64_t middle = changes + (settled - changes) / 2;
    (result(middle) == last ? settled : changes) = middle;
  }
  return settled;
}

std::vector<size_t> counters_of(const Graph& graph, const State& given) {
  std::vector<size_t> counters;
  for (size_t value = 0; value < given.size(); ++value) {
    const at::Tensor& tensor = given[value];
    if (graph.values[value].kind != GraphValue::Kind::buffer || !tensor.defined() || tensor.numel() != 1) continue;
    if (tensor.is_complex() || tensor.scalar_type() == at::kBool) continue;
    const double number = tensor.item<double>();
    if (std::isfinite(number) && number == std::floor(number)) counters.push_back(value);
  }
  return counters;
}

namespace {

// Whether a value is only added to, and what comes of that only added to or kept.
bool only_counts(const Graph& graph, const GraphUses& uses, int value) {
  const auto counts = [&](int user) {
    const GraphNode& node = graph.nodes[static_cast<size_t>(user)];
    const auto name = short_name(node);
    if (name == "copy_") return true;
    return (name == "add" || name == "add_") && std::all_of(node.outputs.begin(), node.outputs.end(), [&](int output) {
             return output < 0 || output == value || only_counts(graph, uses, output);
           });
  };
  const auto& users = uses.users(value);
  return std::all_of(users.begin(), users.end(), counts);
}

}  // namespace

bool reads_whole_numbers_in(const Graph& graph, const GraphUses& uses, int value) {
  const bool is_whole = graph.values[static_cast<size_t>(value)].dtype.find("int") != std::string::npos;
  return is_whole && !only_counts(graph, uses, value);
}

bool reads_whole_numbers(const Reference& reference, const GraphUses& uses) {
  const Graph& graph = reference.forward;
  return std::any_of(reference.parameters.begin(), reference.parameters.end(), [&](const auto& parameter) {
    return parameter.value >= 0 && parameter.is_buffer && reads_whole_numbers_in(graph, uses, parameter.value);
  });
}

std::map<size_t, int64_t> steps_to_the_end(const std::vector<size_t>& counters, const Replay& eager, const State& given,
                                           const std::vector<c10::IValue>& leaves, c10::Device device, uint64_t seed) {
  constexpr int64_t kLatest = 1'000'000;
  constexpr double kMostSeconds = 1;
  at::NoGradGuard no_grad;
  std::mt19937_64 random(seed);
  std::map<size_t, int64_t> steps_by_value;
  const double begin = monotonic_seconds();
  for (const size_t value : counters) {
    const auto result = [&](int64_t steps) -> std::optional<std::string> {
      if (monotonic_seconds() - begin > kMostSeconds) return std::nullopt;
      try {
        State state = copy_state(given, false, device);
        state[value] = state[value].add(steps);
        at::manual_seed(0);
        const auto made = eager.run(copy_leaves(leaves, device), state);
        if (!made.ok()) return std::nullopt;
        std::string digests;
        for (const at::Tensor& output : *made) digests += digest_of(output) + " ";
        return digests;
      } catch (const std::exception&) { return std::nullopt; }
    };
    const auto end = end_of_transition(result, kLatest);
    if (!end || monotonic_seconds() - begin > kMostSeconds) continue;
    const double share = std::uniform_real_distribution(0.6, 0.95)(random);
    steps_by_value[value] = static_cast<int64_t>(share * static_cast<double>(*end));
  }
  return steps_by_value;
}

}  // namespace tilepilot::eval
