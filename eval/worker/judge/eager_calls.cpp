#include "eval/worker/judge/eager_calls.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include "eval/process/wire.h"
#include "eval/worker/graph_replays.h"
#include "eval/worker/kernelbench_trials.h"
#include "eval/worker/truth/compare/digest.h"

namespace tilepilot::eval {
namespace {

constexpr int kWatched = 2;  // batches: none that counts, as watching takes time

// While it lives, memory behaves as in the candidate's process.
class Pooled {
 public:
  Pooled() : before_(set_fresh_memory(FreshMemory::pooled)) {}
  ~Pooled() { set_fresh_memory(before_); }
  Pooled(const Pooled&) = delete;

 private:
  FreshMemory before_;
};

}  // namespace

EagerCalls::EagerCalls(const ReferenceSide& side) : side_(side), stopwatch_(stopwatch_for(side.device())) {
  if (!side.device().is_cpu()) device_memory_.emplace(side.device().type(), kWatched);
  use_weights(0);
}

EagerCalls::~EagerCalls() { release_fresh_memory(); }

void EagerCalls::use_weights(int set) {
  set_ = set;
  state_.clear();
  state_ = copy_state(side_.weights(set), false, side_.device());
}

Result<EagerBatch> EagerCalls::run(const Batch& batch, const CallSource& source) {
  at::NoGradGuard no_grad;
  const Pooled pooled;
  renew_fresh_memory(batch.memory);
  EagerBatch result;
  std::vector<std::vector<c10::IValue>> leaves;
  for (const Call& call : batch.calls) {
    auto& base = source.leaves(call.base);
    result.inputs.push_back(inputs_of(batch, call, tensors_of(base), side_.device()));
    leaves.push_back(with_tensors(base, result.inputs.back()));
  }
  if (device_memory_) device_memory_->renew(static_cast<int64_t>(batch.calls.size()));
  result.outputs.reserve(leaves.size());
  at::manual_seed(batch.seed);
  const auto lead = static_cast<size_t>(batch.lead);
  for (size_t i = 0; i < lead; ++i) result.outputs.push_back(TRY(side_.eager().run(leaves[i], state_)));
  const double begin = monotonic_seconds();
  for (size_t i = lead; i < leaves.size(); ++i) {
    stopwatch_->start();
    result.outputs.push_back(TRY(side_.eager().run(leaves[i], state_)));
    stopwatch_->stop();
  }
  const double passed = monotonic_seconds() - begin, stopped = stopwatch_->read();
  if (device_memory_) {
    device_memory_->note();
    device_memory_->end();
  }
  result.seconds = side_.device().is_cpu() ? passed : stopped;
  return result;
}

Result<EagerBatch> EagerCalls::run_as_kernelbench(const Batch& batch, const CallSource& source) {
  at::NoGradGuard no_grad;
  const Pooled pooled;
  renew_fresh_memory(batch.memory);
  auto& base = source.leaves(batch.calls[0].base);
  EagerBatch result;
  result.inputs.assign(batch.calls.size(), inputs_of(batch, batch.calls[0], tensors_of(base), side_.device()));
  result.outputs.resize(batch.calls.size());
  auto leaves = with_tensors(base, result.inputs[0]);
  if (device_memory_) device_memory_->renew(1);
  at::manual_seed(batch.seed);
  std::vector<at::Tensor> last;  // lives until the next call has returned, as in KernelBench's loop
  const auto call = [&](size_t number) -> Status {
    auto outputs = TRY(side_.eager().run(leaves, state_));
    if (keeps(batch, number)) result.outputs[number] = outputs;
    last = std::move(outputs);
    return {};
  };
  const auto stopwatch = kernelbench_stopwatch_for(side_.device());
  const auto settle = [&] { settle_gpu(side_.device()); };
  result.trials = TRY(run_kernelbench_trials({*stopwatch, settle, call}));
  if (device_memory_) device_memory_->end();
  last.clear();
  settle();  // the candidates need the memory
  return result;
}

Result<EagerBatch> EagerCalls::run_as_graph(const Batch& batch, const CallSource& source) {
  at::NoGradGuard no_grad;
  const Pooled pooled;
  auto& base = source.leaves(batch.calls.at(0).base);
  EagerBatch result;
  result.inputs.push_back(inputs_of(batch, batch.calls[0], tensors_of(base), side_.device()));
  const auto leaves = with_tensors(base, result.inputs[0]);
  result.outputs.resize(1);
  at::manual_seed(batch.seed);
  const auto call = [&]() -> Status {
    auto own = leaves;
    result.outputs[0] = TRY(side_.eager().run(own, state_));
    return {};
  };
  result.seconds = TRY(replay_on_gpu(side_.gpu(), side_.device(), call));
  return result;
}

Status EagerCalls::run_profiled(const Batch& batch, const CallSource& source, PartRecorder& recorder) {
  at::NoGradGuard no_grad;
  const Pooled pooled;
  renew_fresh_memory(batch.memory);
  std::vector<std::vector<c10::IValue>> leaves;
  for (const Call& call : batch.calls) leaves.push_back(source.leaves_of(batch, call));
  at::manual_seed(batch.seed);
  for (std::vector<c10::IValue>& inputs : leaves)
    TRY(recorder.watch([&]() -> Status {
      TRY(side_.eager().run(inputs, state_));
      return {};
    }));
  return {};
}

void EagerCalls::drop(EagerBatch batch) {
  const Pooled pooled;
  batch = {};
}

// Each call alone, and after one on other inputs: on the same ones it may give the same again.
Result<bool> EagerCalls::remembers() {
  at::NoGradGuard no_grad;
  constexpr uint64_t kAnother = 1, kCall = 2;
  const auto call = [&](uint64_t seed) -> Result<std::string> {
    auto leaves = copy_leaves(TRY(side_.fresh_inputs(seed)), side_.device());
    at::manual_seed(seed);
    std::string digests;
    for (auto& output : TRY(side_.eager().run(leaves, state_))) digests += digest_of(output);
    return digests;
  };
  const std::string alone = TRY(call(kCall));
  use_weights(set_);
  TRY(call(kAnother));
  const std::string after = TRY(call(kCall));
  use_weights(set_);
  return alone != after;
}

}  // namespace tilepilot::eval
