// The judge's hold on one candidate's process: requests with a deadline, and what the process's end means.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "eval/judge.h"
#include "eval/process/compiler_broker.h"
#include "eval/process/fork_server.h"
#include "eval/process/output_tap.h"
#include "eval/process/worker_process.h"
#include "eval/worker/crash_marker.h"
#include "eval/worker/tensor_transfer.h"

namespace tilepilot::eval {

struct CandidateLaunch {
  std::filesystem::path executable = {};
  int threads = 0;
  std::string source = {};  // the candidate's text, to turn the place of a crash into a line
  std::string name = "candidate";
  // Null: the processor. A process that uses the GPU cannot have namespaces.
  std::shared_ptr<const runtime::cuda::Device> gpu = nullptr;
  c10::Device device = c10::DeviceType::CPU;  // as LibTorch names it
  CompilerBroker* broker = nullptr;           // compiles for it; null: it does so itself
  ForkServer* fork_server = nullptr;          // forks it, if it can; null, or with a GPU: it is started anew
  int64_t most_bytes = INT64_MAX;             // of the tensors of an answer (TensorTransfer)
  // For the broker.
  std::filesystem::path cache = {};
  std::vector<std::filesystem::path> cuda_folders = {};
};

class CandidateLink {
 public:
  static Result<std::unique_ptr<CandidateLink>> start(const CandidateLaunch& launch);

  // All requests until the next call share `seconds` of the candidate's own time: neither what the judge does in
  // between counts, nor compiling kernels and waiting for a processor, up to kPatience times as long.
  void set_limit(double seconds) { limit_ = left_ = seconds; }
  // What is left of it.
  double left() const { return left_; }
  // Sends the request, with tensors beside it. Nullopt: see failure().
  std::optional<Message> ask(const nlohmann::json& request);
  std::optional<Message> ask(const nlohmann::json& request, const std::vector<at::Tensor>& tensors);
  // Tensors that were packed before, `to_candidate`: for those that are sent often.
  std::optional<Message> ask(const nlohmann::json& request, const PackedTensors& tensors);
  // The tensors of an answer. Errors: those of unpack_tensors.
  Result<std::vector<at::Tensor>> tensors_of(const Message& answer) const;
  // Whether the candidate's process still answers.
  bool is_open() const { return !ended_; }
  // A verdict of the outcome that ended the last request. It is never `verified`: of what the candidate's process says,
  // only kinds of failure count (candidate_answer.h).
  const Verdict& failure() const { return failure_; }
  // See add_told_warnings.
  void add_warnings(const nlohmann::json& warnings, Verdict& verdict) const;
  // For how long the process's first thread has waited for a processor.
  double queued_seconds() const { return process_->queued_seconds(); }
  double queued_seconds_of_threads() const { return process_->queued_seconds_of_threads(); }

  // What the candidate's process has taken, by this side's clock and the kernel's account. The process cannot change
  // either.
  struct Usage {
    double cpu_seconds = 0;           // of all its threads since it began, those that have ended as well
    double last_request_seconds = 0;  // from sending the last request to the end of its answer
  };
  Usage usage() const;
  // How long its answers were waited for in all, and what of that it says it spent on compiling kernels.
  double seconds() const { return seconds_; }
  double compiling_seconds() const;

 private:
  CandidateLink() = default;
  std::optional<Message> exchange(const nlohmann::json& body, const std::vector<int>& descriptors);
  TensorTransfer tensor_transfer(Direction direction) const { return {direction, gpu_, device_, most_bytes_}; }
  double spared_seconds() const;
  std::optional<Message> refuse(std::string_view fault);
  void explain_end();
  std::string place() const;

  std::unique_ptr<OutputTap> output_;  // outlives the process
  std::unique_ptr<WorkerProcess> process_;
  std::unique_ptr<CrashMarkerPage> marker_;
  std::shared_ptr<const runtime::cuda::Device> gpu_;
  c10::Device device_ = c10::DeviceType::CPU;
  int64_t most_bytes_ = INT64_MAX;
  SourceMap sources_;
  double limit_ = 0, left_ = 0;
  double request_seconds_ = 0, seconds_ = 0;
  bool ended_ = false;
  Verdict failure_;
};

}  // namespace tilepilot::eval
