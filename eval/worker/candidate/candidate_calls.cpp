#include "eval/worker/candidate/candidate_calls.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "eval/host/edge.h"
#include "eval/torch/gpu.h"
#include "eval/torch/span.h"
#include "eval/worker/graph_replays.h"
#include "eval/worker/kernelbench_trials.h"
#include "eval/worker/truth/compare/digest.h"

namespace tilepilot::eval {
namespace {

// Dense tensors may be parts of one piece of memory.
bool share_elements(const at::Tensor& one, const at::Tensor& other) {
  if (one.numel() == 0 || other.numel() == 0 || !one.is_alias_of(other)) return false;
  if (!one.is_non_overlapping_and_dense() || !other.is_non_overlapping_and_dense()) return true;
  const auto begin = [](const at::Tensor& tensor) { return static_cast<const char*>(tensor.const_data_ptr()); };
  return begin(one) < begin(other) + other.nbytes() && begin(other) < begin(one) + one.nbytes();
}

bool changed(const std::vector<std::pair<at::Tensor, std::string>>& kept) {
  return std::any_of(kept.begin(), kept.end(), [](const auto& one) { return digest_of(one.first) != one.second; });
}

}  // namespace

CandidateCalls::CandidateCalls(CandidateProgram& program)
    : program_(program), stopwatch_(stopwatch_for(program.device())) {
  if (!program.device().is_cpu()) device_memory_.emplace(program.device().type());
}

Status CandidateCalls::prepare(Batch batch) {
  at::NoGradGuard no_grad;
  batch_ = std::move(batch);
  renew_fresh_memory(batch_.memory);
  renew_stacks();
  TRY(guarded("", {}, [&] {
    const at::DisableRecordFunctionGuard unobserved;
    for (const Call& call : batch_.calls) {
      if (!batch_.kept.empty() && !inputs_.empty()) {
        inputs_.push_back(inputs_.front());
        calls_.push_back(calls_.front());
        continue;
      }
      inputs_.push_back(inputs_of(batch_, call, bases_.at(call.base), program_.device()));
      calls_.push_back(program_.arguments(arguments_, inputs_.back()));
    }
    // After the inputs, which would take the memory that it leaves for the calls.
    if (device_memory_) device_memory_->renew(batch_.kept.empty() ? static_cast<int64_t>(batch_.calls.size()) : 1);
  }));
  results_.reserve(calls_.size());
  program_.log().waits = batch_.waits;
  program_.log().worked = false;
  program_.renew_shared_memory(batch_.memory);
  program_.seed(batch_.seed);
  return run(0, static_cast<size_t>(batch_.lead), false);
}

Status CandidateCalls::run(size_t begin, size_t end, bool timed) {
  program_.log().ghost = batch_.ghost;
  program_.log().looks = batch_.looks;
  program_.log().fills = batch_.fills;
  program_.log().order = batch_.backwards ? runtime::BlockOrder::last_to_first : runtime::BlockOrder::first_to_last;
  program_.log().device = program_.device();
  if (batch_.records) recorded_.emplace(program_.device());
  program_.log().recorded = batch_.records ? &*recorded_ : nullptr;
  Status status;
  for (size_t i = begin; i < end && status.ok(); ++i) {
    if (timed) TRY(guarded("", {}, [&] { stopwatch_->start(); }));
    auto result = program_.call(calls_[i]);
    if (result.ok()) {
      results_.push_back(*std::move(result));
      if (timed) TRY(guarded("", {}, [&] { stopwatch_->stop(); }));
    } else {
      status = std::move(result).take_error();
    }
  }
  program_.log().ghost = Ghost::none;
  program_.log().looks = program_.log().fills = false;
  program_.log().recorded = nullptr;
  return status;
}

Result<RanCalls> CandidateCalls::go() {
  at::NoGradGuard no_grad;
  if (!batch_.kept.empty()) return go_as_kernelbench();
  if (batch_.graph) return go_as_graph();
  if (batch_.profile) return go_as_profile();
  const double kernels = program_.log().seconds;
  TRY(run(results_.size(), calls_.size(), true));
  TRY(program_.finish());
  if (device_memory_) device_memory_->note();
  return RanCalls{stopwatch_->read(), program_.log().seconds - kernels};
}

Result<RanCalls> CandidateCalls::go_as_kernelbench() {
  results_.resize(calls_.size());
  const double kernels = program_.log().seconds;
  const auto stopwatch = kernelbench_stopwatch_for(program_.device());
  stage::Value last;  // lives until the next call has returned, as in KernelBench's loop
  const auto call = [&](size_t number) -> Status {
    auto result = TRY(program_.call(calls_[number]));
    if (keeps(batch_, number)) results_[number] = result;
    last = std::move(result);
    return {};
  };
  const auto settle = [&] { settle_gpu(program_.device()); };
  RanCalls ran;
  ran.trials = TRY(run_kernelbench_trials({*stopwatch, settle, call}));
  TRY(program_.finish());
  ran.kernel_seconds = program_.log().seconds - kernels;
  ran.seconds = std::accumulate(ran.trials.begin(), ran.trials.end(), 0.0);
  return ran;
}

Result<RanCalls> CandidateCalls::go_as_graph() {
  results_.resize(1);
  const auto call = [this]() -> Status {
    results_[0] = TRY(program_.call(calls_.at(0)));
    return {};
  };
  const double seconds = TRY(replay_on_gpu(program_.gpu(), program_.device(), call));
  TRY(program_.finish());
  return RanCalls{seconds, 0};
}

Result<RanCalls> CandidateCalls::go_as_profile() {
  PartRecorder& recorder = program_.recorder();
  const auto make = [&](const stage::CallArgs& arguments) -> Status {
    results_.push_back(TRY(program_.call(arguments)));
    return {};
  };
  const auto make_all = [&]() -> Status {
    for (const stage::CallArgs& arguments : calls_) TRY(make(arguments));
    return program_.finish();
  };
  if (batch_.by_device) return RanCalls{0, 0, {}, TRY(recorder.record_by_device(calls_.size(), make_all))};
  for (const stage::CallArgs& arguments : calls_) TRY(recorder.watch([&] { return make(arguments); }));
  TRY(program_.finish());
  return RanCalls{0, 0, {}, recorder.record()};
}

std::string CandidateCalls::input_behind(const at::Tensor& tensor, size_t call) const {
  if (tensor.numel() == 0) return "";
  auto& inputs = inputs_[call];
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (tensor.is_alias_of(inputs[i])) return fmt::format("input {}", i);
  }
  return "";
}

// "input 0" or the name of a weight; empty: none.
std::string CandidateCalls::alias_of(const at::Tensor& tensor, size_t call) const {
  if (tensor.numel() == 0) return "";
  if (std::string input = input_behind(tensor, call); !input.empty()) return input;
  for (auto& weight : program_.weights()) {
    if (tensor.is_alias_of(weight.tensor)) return fmt::format("weight `{}`", weight.name);
  }
  return "";
}

// Whether another call of the batch, or a kept one, returned the same memory.
bool CandidateCalls::is_shared(size_t call, const std::vector<at::Tensor>& tensors) {
  auto meets = [&](const at::Tensor& other) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
      return tensor.numel() > 0 && tensor.is_alias_of(other) && alias_of(tensor, call).empty();
    });
  };
  for (size_t i = 0; i < results_.size(); ++i) {
    if (i == call) continue;
    auto others = program_.flatten(results_[i]);
    if (others.ok() && std::any_of(others->tensors.begin(), others->tensors.end(), meets)) return true;
  }
  return std::any_of(kept_.begin(), kept_.end(), [&](const auto& one) { return meets(one.first); });
}

Result<FetchedCall> CandidateCalls::fetch(size_t call, int64_t most_bytes) {
  at::NoGradGuard no_grad;
  if (call >= results_.size())
    return make_error(DiagnosticKind::worker_unavailable, {}, "there is no such call to fetch");
  FetchedCall fetched{TRY(program_.flatten(results_[call])), inputs_[call], {}, changed(kept_)};
  auto& tensors = fetched.result.tensors;
  fetched.earlier_changed = fetched.earlier_changed || is_shared(call, tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    fetched.aliases.push_back(alias_of(tensors[i], call));
    for (size_t k = 0; k < i && fetched.aliases.back().empty(); ++k)
      if (share_elements(tensors[i], tensors[k])) fetched.aliases.back() = fmt::format("output {}", k);
  }
  fetched_.clear();
  for (auto& tensor : tensors)
    if (alias_of(tensor, call).empty() && bytes_of_elements(tensor) <= most_bytes)
      fetched_.emplace_back(tensor, digest_of(tensor));
  if (is_large()) release_unused_gpu_memory();  // they go to the judge in other memory
  return fetched;
}

// Whether the judge, or another program, cannot do without what is free here.
bool CandidateCalls::is_large() const {
  if (program_.device().is_cpu()) return false;
  int64_t bytes = 0;
  for (auto& inputs : inputs_) bytes += bytes_of(inputs);
  const auto calls = static_cast<int64_t>(calls_.size());
  for (auto& [tensor, digest] : fetched_) bytes += calls * static_cast<int64_t>(tensor.nbytes());
  return bytes > kLargeOnGpu;
}

void CandidateCalls::finish() {
  const bool large = is_large();
  if (!fetched_.empty() || !calls_.empty()) kept_ = std::exchange(fetched_, {});
  results_.clear();
  recorded_.reset();
  calls_.clear();
  inputs_.clear();
  const bool on_gpu = !program_.device().is_cpu();
  std::erase_if(bases_,
                [&](const auto& base) { return base.first < 0 || (on_gpu && bytes_of(base.second) > kLargeOnGpu); });
  batch_ = {};
  if (large) release_unused_gpu_memory();
}

}  // namespace tilepilot::eval
