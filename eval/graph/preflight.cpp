#include "eval/graph/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "eval/graph/graph_slices.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

bool draws_random_numbers(const GraphNode& node) {
  static const std::set<std::string_view> names = {
      "rand",   "randn",    "randint", "rand_like", "randn_like", "bernoulli",  "multinomial",
      "normal", "randperm", "uniform", "normal_",   "uniform_",   "bernoulli_", "randint_like"};
  auto name = short_name(node);
  if (names.count(name) != 0) return true;
  if (name.find("dropout") == std::string_view::npos) return false;
  auto* share = argument_of(node, 1, "p");
  auto* training = argument_of(node, 2, "train");
  auto* flag = training ? std::get_if<bool>(&training->data) : nullptr;
  return number_of(share).value_or(0.5) > 0 && flag && *flag;
}

// Values that an output depends on.
std::vector<char> influential(const GraphUses& uses) {
  auto& graph = uses.graph();
  std::vector<char> matters(graph.values.size());
  for_each_value(graph.outputs, [&](int id) { matters[static_cast<size_t>(id)] = 1; });
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!uses.is_live(static_cast<int>(i))) continue;
    for (int id : operands(graph.nodes[i])) matters[static_cast<size_t>(id)] = 1;
  }
  return matters;
}

int64_t free_of_group() {
  auto number = [](const char* path) {
    std::ifstream file(path);
    int64_t value = -1;
    return file >> value ? value : int64_t{-1};
  };
  const int64_t limit = number("/sys/fs/cgroup/memory.max"), used = number("/sys/fs/cgroup/memory.current");
  return limit < 0 || used < 0 ? INT64_MAX : std::max<int64_t>(0, limit - used);
}

// Inputs and weights that no output depends on. Of tied weights one name is used.
std::vector<std::string> unused_names(const Reference& reference, const std::vector<char>& matters) {
  std::set<std::string> used;  // names in the weights file
  for (auto& parameter : reference.parameters) {
    if (parameter.value >= 0 && matters[static_cast<size_t>(parameter.value)] != 0) used.insert(parameter.tensor);
  }
  std::vector<std::string> unused;
  std::set<int> tied;
  for (auto& parameter : reference.parameters) {
    if (used.count(parameter.tensor) > 0) tied.insert(parameter.value);
  }
  for (size_t i = 0; i < matters.size(); ++i) {
    auto& value = reference.forward.values[i];
    const bool given = value.kind == GraphValue::Kind::input || value.kind == GraphValue::Kind::parameter;
    if (given && value.is_tensor && matters[i] == 0 && tied.count(static_cast<int>(i)) == 0)
      unused.push_back(value.name);
  }
  for (auto& parameter : reference.parameters) {
    if (parameter.value < 0 && !parameter.is_buffer && used.count(parameter.tensor) == 0)
      unused.push_back(parameter.name);
  }
  return unused;
}

constexpr int64_t kProcess = int64_t{400} << 20;  // LibTorch, in each process
constexpr int64_t kContext = int64_t{600} << 20;  // of CUDA, in each process
// Of both sides on a GPU: what is written between timed calls, and what libraries take for convolutions and products.
constexpr int64_t kFlushed = int64_t{256} << 20, kWorkspace = int64_t{512} << 20;
constexpr int64_t kKeptTrials = int64_t{1} << 30;
constexpr int64_t kSpareOnGpu = int64_t{4} << 30;     // of a candidate
constexpr int64_t kGpuProcess = int64_t{1600} << 20;  // with LibTorch's libraries for it

int64_t elements_of_largest_weight(const Graph& graph) {
  int64_t most = 0;
  for (const GraphValue& value : graph.values)
    if (value.kind == GraphValue::Kind::parameter && value.is_tensor) most = std::max(most, value.numel());
  return most;
}

// What a check (eval/worker) has in memory at a time, in bytes.
struct Held {
  Held(const GraphUses& uses, bool on_gpu) : largest_weight(elements_of_largest_weight(uses.graph())) {
    const GraphCost cost = cost_of(uses);
    need.inputs = cost.input_bytes;
    need.weights = cost.weight_bytes;
    need.outputs = cost.output_bytes;
    need.eager_peak = live_peak(uses).eager;
    run = plan_exact_run(uses, on_gpu ? kExactBytesOnGpu : kExactBytes);
    need.exact_peak = run.peak;
    exact = run.inputs + run.weights + run.peak;
    call = std::max(need.eager_peak, need.outputs);
    trial = need.inputs + need.outputs + run.outputs;
  }

  // On a GPU the judge has the weights, those of a trial, and a few other sets while they are small.
  int64_t weights_on_gpu() const { return 2 * need.weights + std::min(6 * need.weights, int64_t{1} << 30); }

  // Trials that are kept for the candidates to come.
  int64_t kept_on_gpu() const {
    constexpr int64_t kMost = 20;
    return std::min(kMost * trial, kKeptTrials);
  }

  // On a GPU: other weights are drawn, in float64, beside those that eager and the candidate have.
  int64_t drawing_on_gpu() const {
    constexpr int64_t kNumbers = 5;
    return weights_on_gpu() + 3 * need.weights + kNumbers * 8 * largest_weight + candidate_on_gpu();
  }

  // On a GPU: a trial, and its truth once more, of what is given moved, or eager on copies of what it is given.
  int64_t measuring_on_gpu() const {
    constexpr int64_t kNumbers = 12, kElements = int64_t{1} << 25;  // that comparing works on at a time
    const int64_t comparing = kNumbers * std::min<int64_t>(8 * kElements, 2 * need.outputs);
    return weights_on_gpu() + std::max(2 * need.inputs + need.weights + call, trial + exact) + comparing;
  }
  // What the judge has freed and keeps, for what it does next.
  int64_t idle_on_gpu() const { return std::clamp(measuring_on_gpu(), int64_t{512} << 20, int64_t{4} << 30); }
  int64_t candidate_on_gpu() const { return need.inputs + need.weights + call + need.outputs; }

  // On a GPU, the most at once: a call in the timed rounds is compared with the truth. The judge has the draw that it
  // starts from, eager's inputs and outputs, a copy of the candidate's, and the trial; inputs and outputs are on their
  // way; the candidate has copies of the inputs, what the call made, and what the last call returned; another one, that
  // waits for its turn, weights and that.
  int64_t round_on_gpu() const {
    const int64_t judge = 2 * need.inputs + need.weights + call + need.outputs + need.inputs + need.outputs + exact;
    const int64_t on_the_way = need.inputs + need.outputs;
    const int64_t candidate = candidate_on_gpu();
    const int64_t other = need.weights + need.outputs;
    // A second call on both sides, where calls are no larger than that.
    const int64_t second = 2 * std::min(need.inputs + need.outputs, int64_t{1} << 30);
    return weights_on_gpu() + judge + on_the_way + candidate + other + second;
  }

  MemoryNeed need;
  ExactRun run;
  int64_t largest_weight = 0;  // elements
  int64_t exact = 0;           // a float64 run
  int64_t call = 0;            // what a call makes
  int64_t trial = 0;           // inputs, what eager gives, and the truth
};

}  // namespace

// The phases of a check, one after another (eval/worker): eager beside the inputs it got and its own copies, the
// float64 replay beside eager's outputs, the candidate beside what its outputs are compared with.
MemoryNeed memory_need(const GraphUses& uses, bool on_gpu) {
  const Held held(uses, on_gpu);
  MemoryNeed need = held.need;
  if (on_gpu) {
    // Everything but the weights stays there. On the host, weights lie in the judge, on their way and in the candidate,
    // and inputs are drawn once as KernelBench does.
    need.gpu_idle = held.idle_on_gpu();
    need.gpu = std::max({held.measuring_on_gpu(), held.round_on_gpu(), held.drawing_on_gpu()}) + 3 * kContext +
               need.gpu_idle + held.kept_on_gpu() + 2 * (kFlushed + kWorkspace);
    need.host = need.inputs + 5 * need.weights + 2 * kGpuProcess;
    // A program may do the work in more steps than the model, and LibTorch keeps what it frees.
    need.gpu_limit = kSpareOnGpu + 2 * held.candidate_on_gpu();
    return need;
  }
  // Weights as exported, and moved; inputs as drawn.
  const int64_t kept = need.inputs + 2 * need.weights;
  const int64_t eager = need.inputs + need.weights + need.eager_peak;
  // A second run moves what is given; its outputs are compared with those of the first.
  const int64_t exact = held.exact + held.run.outputs + need.outputs;
  const int64_t expected = 3 * need.outputs;  // eager's, and the truth in float64
  const int64_t candidate = need.inputs + need.weights + held.call;
  need.host = kept + std::max({eager, exact, expected + need.outputs + candidate}) + 2 * kProcess;
  return need;
}

MemoryNeed reference_need(const GraphUses& uses, bool on_gpu) {
  if (!on_gpu) return memory_need(uses, false);
  const Held held(uses, true);
  MemoryNeed need = held.need;
  need.gpu_idle = held.idle_on_gpu();
  need.gpu = std::max(held.measuring_on_gpu(), held.drawing_on_gpu()) + kContext + need.gpu_idle + held.kept_on_gpu() +
             kWorkspace;
  need.host = 3 * need.weights + kGpuProcess;
  return need;
}

// Python builds the model on the host; weights and inputs come by there.
MemoryNeed with_compiled_modes(MemoryNeed need, bool on_gpu) {
  constexpr int64_t kCompiledModes = 2;
  const int64_t call = need.inputs + need.weights + need.eager_peak;
  const int64_t arriving = need.inputs + need.weights;
  need.host += kCompiledModes * (on_gpu ? need.weights + kGpuProcess : call + kProcess) + arriving;
  if (on_gpu) need.gpu += kCompiledModes * (call + kContext);
  return need;
}

json to_json(const MemoryNeed& need) {
  return {{"inputs", need.inputs},
          {"weights", need.weights},
          {"outputs", need.outputs},
          {"eager_peak", need.eager_peak},
          {"exact_peak", need.exact_peak},
          {"host", need.host},
          {"gpu", need.gpu},
          {"gpu_limit", need.gpu_limit}};
}

MemoryAvailable memory_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string field;
    int64_t kilobytes = 0;
    if (words >> field >> kilobytes && field == "MemAvailable:")
      return {std::min(kilobytes * 1024, free_of_group()), 0};
  }
  return {INT64_MAX, 0};
}

Status check_memory(const MemoryNeed& need, const MemoryAvailable& available) {
  const char* advice = "give `--scale 1/4` for smaller sizes, or use a machine with more memory";
  if (need.host > available.host) {
    return make_error(DiagnosticKind::out_of_memory, {},
                      fmt::format("judging this model needs about {:.1f} GB of memory, {:.1f} GB are free here",
                                  gigabytes(need.host), gigabytes(available.host)),
                      advice);
  }
  if (available.gpu > 0 && need.gpu > available.gpu) {
    return make_error(DiagnosticKind::out_of_memory, {},
                      fmt::format("judging this model needs about {:.1f} GB of the GPU's memory, {:.1f} GB are free",
                                  gigabytes(need.gpu), gigabytes(available.gpu)),
                      advice);
  }
  return {};
}

Preflight preflight(const Reference& reference, const MachineRates& rates, bool on_gpu) {
  GraphUses uses(reference.forward);
  Preflight result;
  result.cost = cost_of(uses);
  result.shortcuts = find_shortcuts(uses);
  result.product_flops = result.cost.product_flops;
  for (auto& shortcut : result.shortcuts) {
    result.product_flops -= shortcut.saved_flops;
    if (shortcut.kind == ShortcutKind::constant && shortcut.whole_output)
      result.degenerate.push_back(shortcut.sentence);
  }
  result.product_flops = std::max(0.0, result.product_flops);
  result.rates = rates;
  leave_out_units_for_halves(reference.forward, result.rates);
  result.least = roofline(result.cost, result.product_flops, result.rates);
  result.bound = least_time(result.cost, result.product_flops, result.rates);
  result.eager_s = eager_estimate_s(uses, result.rates);
  for (auto& node : reference.forward.nodes) result.random = result.random || draws_random_numbers(node);
  result.unused = unused_names(reference, influential(uses));
  result.memory = memory_need(uses, on_gpu);
  return result;
}

json to_json(const Preflight& preflight) {
  json shortcuts = json::array();
  for (auto& shortcut : preflight.shortcuts) {
    shortcuts.push_back({{"kind", to_string(shortcut.kind)},
                         {"line", shortcut.line},
                         {"sentence", shortcut.sentence},
                         {"saved_flops", shortcut.saved_flops}});
  }
  auto& cost = preflight.cost;
  return {{"product_flops", cost.product_flops},
          {"other_flops", cost.other_flops},
          {"dead_flops", cost.dead_flops},
          {"product_flops_after_shortcuts", preflight.product_flops},
          {"input_bytes", cost.input_bytes},
          {"weight_bytes", cost.weight_bytes},
          {"output_bytes", cost.output_bytes},
          {"least_bytes", cost.least_bytes},
          {"eager_bytes", cost.eager_bytes},
          {"eager_launches", cost.launches},
          {"machine",
           {{"name", preflight.rates.name},
            {"bytes_per_s", preflight.rates.bytes_per_s},
            {"product_flops", preflight.rates.product_flops},
            {"cache_bytes", preflight.rates.cache_bytes},
            {"assumed", preflight.rates.assumed}}},
          {"roofline_us", preflight.least.least_s() * 1e6},
          {"bound", preflight.least.bound()},
          {"least_us", preflight.bound.s * 1e6},
          {"least_of", preflight.bound.words},
          {"eager_modelled_us", preflight.eager_s * 1e6},
          {"shortcuts", shortcuts},
          {"random", preflight.random},
          {"unused", preflight.unused},
          {"degenerate", preflight.degenerate},
          {"memory", to_json(preflight.memory)}};
}

}  // namespace tilepilot::eval
