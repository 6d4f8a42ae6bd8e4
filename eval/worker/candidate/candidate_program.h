// A candidate inside its own process: its text, parsed and run by the evaluator, and the ModelNew it makes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/runtime/target.h"
#include "compiler/stage/tile/tile.h"
#include "eval/graph/reference.h"
#include "eval/host/tensors/kept_tensors.h"
#include "eval/worker/candidate/aten_policy.h"
#include "eval/worker/candidate/fresh_shared_memory.h"
#include "eval/worker/candidate/launches/watched_backend.h"
#include "eval/worker/candidate/weight_transfer.h"
#include "eval/worker/profile/observed_backend.h"
#include "eval/worker/staged_backend.h"

namespace tilepilot::eval {

struct CandidateOptions {
  std::string source, name;
  uint64_t seed = 0;  // before ModelNew(*init_inputs)
  bool training = true;
  std::optional<at::ScalarType> type;  // as model.to(type); none: as it was built
  std::filesystem::path cache;         // of compiled kernels
  runtime::Target target;              // none of `auto`
  bool allow_foreign = false;          // device source of its own
  std::optional<int> compiler_socket;  // who compiles; none: this process
  AtenPolicy aten = AtenPolicy::hybrid;
};

// What forward returned: its structure as JSON ({"tensor": i} where tensors stand) and the tensors in order.
struct ForwardResult {
  nlohmann::json structure;
  std::vector<at::Tensor> tensors;
};

class CandidateProgram {
 public:
  CandidateProgram(CandidateOptions options, CrashMarker& marker);

  // Gets ready for its target. Errors: those of open_target.
  Status open();
  // Where the tensors of calls live.
  c10::Device device() const { return device_; }
  const std::shared_ptr<const runtime::cuda::Device>& gpu() const { return gpu_; }
  // Of a GPU: now, and before each launch that is waited for.
  void renew_shared_memory(uint64_t seed);
  // Waits for what runs on it, and tells of its faults.
  Status finish();
  // Parses the text and runs its top level.
  Status load();
  // ModelNew(*init_inputs), built on the processor and moved to device(), in training mode and element type as the
  // options say; finds out which of its tensors hold `weights`, or that it lacks some: transfer() says.
  Status construct(const GraphArgument& init_inputs, std::vector<ModelWeight> weights);
  // `values`: by weight, of the set with this number. If it is another set than the last one, what `forward` keeps in
  // the model goes: it may be computed from the old ones. Gives the names.
  Result<std::vector<std::string>> load_weights(int set, const std::vector<at::Tensor>& values);
  const WeightTransfer& transfer() const { return *transfer_; }
  // Forward, without looking at what it returns.
  Result<stage::Value> call(const stage::CallArgs& arguments);
  // Whether the last call did what the policy of ATen's operators does not allow.
  bool broke_aten_policy() const { return broke_aten_policy_; }
  // What forward returned.
  Result<ForwardResult> flatten(const stage::Value& value);
  stage::CallArgs arguments(const GraphArgument& arguments, const std::vector<at::Tensor>& tensors);

  std::vector<NamedTensor> weights() const { return named_tensors(model_); }
  void seed(uint64_t seed) { host_.seed(seed); }
  SourceMap& sources() { return sources_; }
  DiagnosticList& diagnostics() { return interpreter_.diagnostics(); }
  LaunchLog& log() { return log_; }
  // Watches calls when it is asked to; made at the first use. @pre open()
  PartRecorder& recorder();
  // Errors of the parser, beyond the first.
  const DiagnosticList& parse_errors() const { return parse_errors_; }

 private:
  Status open_backend();
  void fill_shared_memory() const;
  Result<stage::Value> build(const GraphArgument& init_inputs, Construction& construction);
  Result<nlohmann::json> flatten(const stage::Value& value, std::vector<at::Tensor>& tensors, int depth);
  Result<nlohmann::json> flatten_dict(const stage::Value& value, std::vector<at::Tensor>& tensors, int depth);

  CandidateOptions options_;
  SourceMap sources_;
  CrashMarker& marker_;
  LaunchLog log_;
  std::unique_ptr<PartRecorder> recorder_;
  Profiled profiled_;
  c10::Device device_ = c10::DeviceType::CPU;
  std::shared_ptr<const runtime::cuda::Device> gpu_;
  std::optional<FreshSharedMemory> shared_memory_;
  uint64_t shared_seed_ = 0;  // of the last batch
  HostMemoryUse host_memory_;
  std::unique_ptr<runtime::KernelBackend> backend_;
  TorchHost host_{{.device = "cpu", .shows_cuda = true}};  // the programs are written for a GPU
  stage::Interpreter interpreter_;
  DiagnosticList parse_errors_;
  std::shared_ptr<stage::ModuleObject> module_;
  std::vector<std::string> attributes_;  // that become buffers
  stage::Value model_;
  std::optional<WeightTransfer> transfer_;
  std::optional<KeptTensors> kept_;
  int loaded_set_ = 0;
  bool broke_aten_policy_ = false;
};

}  // namespace tilepilot::eval
