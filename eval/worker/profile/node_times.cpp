#include "eval/worker/profile/node_times.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "compiler/runtime/process.h"
#include "eval/host/edge.h"
#include "eval/process/wire.h"
#include "eval/samples.h"
#include "eval/torch/replay.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/profile/part_clock.h"
#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {
namespace {

constexpr double kSecondsOfCalls = 0.5;
constexpr size_t kMostCallsOfNodes = 30;
constexpr uint64_t kSeedOfCalls = 1;

// While it lives, memory is kept for the next call, as allocators of PyTorch's do.
class KeptMemory {
 public:
  KeptMemory() : before_(set_fresh_memory(FreshMemory::pooled)) {}
  ~KeptMemory() {
    set_fresh_memory(before_);
    release_fresh_memory();
  }
  KeptMemory(const KeptMemory&) = delete;

 private:
  FreshMemory before_;
};

class NodeTimes {
 public:
  NodeTimes(const Reference& reference, c10::Device device)
      : reference_(reference),
        device_(device),
        clock_(part_clock_for(device)),
        nodes_(reference.forward.nodes.size()) {}

  Result<EagerTimes> run() {
    const KeptMemory kept;
    const TensorMap stored = TRY(load_safetensors(reference_.weights));
    const State state = copy_state(TRY(make_state(reference_.forward, reference_, stored)), false, device_);
    const State constants = TRY(make_state(reference_.inputs, reference_, stored));
    const Replay replay = TRY(Replay::prepare(reference_.forward, Precision::exported, device_));
    const auto leaves = TRY(make_inputs(reference_, constants, kSeedOfCalls, device_));
    const double first = TRY(call(replay, leaves, state));
    if (first > kLongestFirstCall)
      return make_error(DiagnosticKind::worker_unavailable, {}, fmt::format("a call of it takes {:.1f} s", first));
    for (auto& seconds : nodes_) seconds.clear();
    calls_.clear();
    const double begin = monotonic_seconds(), queued = runtime::queued_seconds_of_threads(getpid());
    while (calls_.empty() || (calls_.size() < kMostCallsOfNodes && monotonic_seconds() - begin < kSecondsOfCalls))
      TRY(call(replay, leaves, state));
    EagerTimes times{timing_of(calls_), {}};
    times.waited = (runtime::queued_seconds_of_threads(getpid()) - queued) / (monotonic_seconds() - begin);
    for (const auto& seconds : nodes_) times.node_us.push_back(timing_of(seconds).low_us);
    return times;
  }

 private:
  // How long the host was busy with it.
  Result<double> call(const Replay& replay, const std::vector<c10::IValue>& leaves, const State& state) {
    const auto inputs = copy_leaves(leaves, device_);
    at::manual_seed(kSeedOfCalls);
    clock_->begin(host_seconds_);
    const double begin = monotonic_seconds();
    clock_->mark();
    TRY(replay.run(inputs, state, [&](const auto&, const auto&, auto&) { clock_->mark(); }));
    host_seconds_ = monotonic_seconds() - begin;
    const std::vector<double> marks = clock_->read();
    for (size_t i = 0; i + 1 < marks.size() && i < nodes_.size(); ++i) nodes_[i].push_back(marks[i + 1] - marks[i]);
    calls_.push_back(marks.back());
    return monotonic_seconds() - begin;
  }

  const Reference& reference_;
  const c10::Device device_;
  std::unique_ptr<PartClock> clock_;
  std::vector<std::vector<double>> nodes_;  // seconds, by node
  std::vector<double> calls_;
  double host_seconds_ = 0;  // of the last call
};

}  // namespace

Result<EagerTimes> time_nodes(const Reference& reference, c10::Device device) {
  return TRY(guarded("the model", {}, [&] { return NodeTimes(reference, device).run(); }));
}

}  // namespace tilepilot::eval
