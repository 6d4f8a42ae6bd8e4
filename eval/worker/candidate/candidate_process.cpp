#include "eval/worker/candidate/candidate_process.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <new>
#include <unordered_map>

#include "compiler/diagnostics/render.h"
#include "eval/diagnostic_json.h"
#include "eval/graph/argument_json.h"
#include "eval/host/edge.h"
#include "eval/judge.h"
#include "eval/process/candidate_confinement.h"
#include "eval/process/worker_process.h"
#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/torch/gpu_memory_limit.h"
#include "eval/torch/span.h"
#include "eval/worker/candidate/candidate_calls.h"
#include "eval/worker/candidate/candidate_program.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/tensor_transfer.h"
#include "eval/worker/truth/compare/digest.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

// No other program would fare better.
bool is_our_fault(DiagnosticKind kind) {
  using Kind = DiagnosticKind;
  return kind == Kind::compiler_missing || kind == Kind::nvrtc_missing || kind == Kind::driver_missing ||
         kind == Kind::load_failed || kind == Kind::cache_unwritable || kind == Kind::worker_unavailable;
}

// What a diagnostic means for the verdict.
Outcome outcome_of(DiagnosticKind kind) {
  using Kind = DiagnosticKind;
  if (kind == Kind::step_limit) return Outcome::timed_out;
  if (kind == Kind::out_of_memory) return Outcome::out_of_memory;
  if (kind == Kind::device_failed) return Outcome::crashed;
  if (kind == Kind::forbidden) return Outcome::rejected;
  if (is_our_fault(kind)) return Outcome::worker_failed;
  // The registry is ordered by phase (kinds.def): reading, evaluating, building tile programs to loading, calling.
  if (kind <= Kind::unsupported_syntax || kind == Kind::unknown_module) return Outcome::compile_error;
  bool builds = kind >= Kind::unknown_tile_name && kind <= Kind::cache_degraded;
  return builds ? Outcome::compile_error : Outcome::runtime_error;
}

// The bytes of data this process has now, as RLIMIT_DATA counts them.
int64_t data_in_use() {
  int64_t pages[6] = {};
  std::ifstream file("/proc/self/statm");
  for (auto& field : pages) file >> field;
  return pages[5] * sysconf(_SC_PAGESIZE);
}

void limit_resources(int64_t memory_bytes) {
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  auto total = static_cast<rlim_t>(data_in_use() + memory_bytes);
  rlimit data{total, total};
  setrlimit(RLIMIT_DATA, &data);
}

class CandidateServer {
 public:
  CandidateServer(Wire& wire, CrashMarker& marker, bool in_namespaces)
      : wire_(wire), marker_(marker), in_namespaces_(in_namespaces) {}

  void serve() {
    while (auto message = wire_.receive()) {
      if (!guarded_answer(*message)) return;
    }
  }

 private:
  // What LibTorch throws where the candidate's code does not run: memory for its inputs, copies from a GPU.
  bool guarded_answer(const Message& message) {
    auto answered = guarded("", {}, [&] { return answer(message); });
    return answered.ok() ? *answered : wire_.send(failure(answered.error()));
  }

  bool answer(const Message& message) {
    auto op = message.body.value("op", "");
    if (op == "load") return wire_.send(load(message));
    if (op == "weights") return wire_.send(weights(message));
    if (op == "prepare") return wire_.send(prepare(message));
    if (op == "go") return wire_.send(go());
    if (op == "fetch") return fetch(message);
    if (op == "launches") return launches();
    if (op == "rest") return wire_.send(rest());
    return false;
  }

  json failure(const Diagnostic& diagnostic) {
    Verdict verdict;
    verdict.outcome = outcome_of(diagnostic.kind);
    verdict.detail = diagnostic.message;
    if (const auto refused = refused_gpu_memory(); refused && verdict.outcome == Outcome::out_of_memory)
      verdict.detail = fmt::format(
          "the candidate asked for {:.2f} GB of the GPU's memory beside {:.2f} GB that it held: "
          "for this model it may have {:.2f} GB",
          1e-9 * refused->asked, 1e-9 * refused->held, 1e-9 * refused->limit);
    if (verdict.outcome == Outcome::rejected)
      verdict.guard = program_ && program_->broke_aten_policy() ? "aten_policy" : "forbidden";
    if (!program_) return {{"failure", to_json(verdict)}};
    if (diagnostic.span.valid() && diagnostic.span.file == 0) {
      verdict.line = program_->sources().position(0, diagnostic.span.begin).line;
    }
    add_diagnostics(diagnostic, verdict);
    if (program_->log().refused_foreign) verdict.guard = "foreign_source";
    return {{"failure", to_json(verdict)}};
  }

  // All errors of a parse, or the one that stopped the run and then those beside it.
  void add_diagnostics(const Diagnostic& diagnostic, Verdict& verdict) {
    bool parsing = program_->parse_errors().has_errors();
    for (auto& item : program_->parse_errors().items()) verdict.diagnostics.push_back(item);
    auto add_others = [&](Severity severity) {
      for (auto& item : program_->diagnostics().items())
        if (item.severity() == severity) verdict.diagnostics.push_back(item);
    };
    add_others(Severity::warning);
    if (!parsing) verdict.diagnostics.push_back(diagnostic);
    add_others(Severity::error);
    for (auto& item : verdict.diagnostics) verdict.rendered.push_back(render(program_->sources(), item));
  }

  static json failure(Outcome outcome, std::string detail) {
    Verdict verdict;
    verdict.outcome = outcome;
    verdict.detail = std::move(detail);
    return {{"failure", to_json(verdict)}};
  }

  json load(const Message& message) {
    auto& body = message.body;
    auto target = runtime::parse_target(body.at("target").get<std::string>());
    if (!target.ok()) return failure(Outcome::worker_failed, target.error().message);
    const bool uses_gpu = target->place == runtime::Place::gpu;
    if (!uses_gpu) confine_candidate(in_namespaces_, false, {});
    if (auto threads = body.value("threads", 0); threads > 0) at::set_num_threads(threads);
    CandidateOptions options{.source = body.at("source"),
                             .name = body.at("name"),
                             .seed = body.at("seed"),
                             .training = body.at("training"),
                             .type = type_of_option(body.at("dtype").get<std::string>()),
                             .cache = body.at("cache").get<std::string>(),
                             .target = *target,
                             .allow_foreign = body.at("allow_foreign"),
                             .compiler_socket = {},
                             .aten = parse_aten_policy(body.at("aten").get<std::string>()).value_or(AtenPolicy::none)};
    if (fcntl(kCompilerSocket, F_GETFD) >= 0) options.compiler_socket = kCompilerSocket;
    program_ = std::make_unique<CandidateProgram>(std::move(options), marker_);
    if (auto opened = program_->open(); !opened.ok()) return failure(opened.error());
    if (uses_gpu) confine_candidate(false, true, {libtorch_packages()});
    if (uses_gpu) limit_gpu_memory(body.at("gpu_limit_bytes"));
    limit_resources(body.at("memory_limit_bytes"));
    most_bytes_ = body.at("most_bytes");
    auto init_inputs = argument_from_json(body.at("init_inputs"));
    if (!init_inputs.ok()) return failure(init_inputs.error());
    if (auto loaded = program_->load(); !loaded.ok()) return failure(loaded.error());
    auto tensors = received_tensors(message);
    if (!tensors.ok()) return failure(tensors.error());
    std::vector<ModelWeight> weights;
    for (auto& each : body.at("weights"))
      weights.push_back({.name = each.at("name"),
                         .tensor = tensors->at(weights.size()),
                         .is_buffer = each.at("buffer"),
                         .storage = each.at("storage"),
                         .is_used = each.at("used"),
                         .is_attribute = each.at("attribute")});
    if (auto made = program_->construct(*init_inputs, std::move(weights)); !made.ok()) return failure(made.error());
    auto& transfer = program_->transfer();
    if (!transfer.mismatch().empty()) return failure(Outcome::weights_mismatch, transfer.mismatch());
    if (auto loaded = program_->load_weights(0, *tensors); !loaded.ok()) return failure(loaded.error());
    for (auto& each : body.at("weights")) model_weights_.push_back(each.at("name"));
    weight_digests_ = digests_of_weights();
    return {{"notes", transfer.notes()}, {"lacking", transfer.lacking()}};
  }

  json weights(const Message& message) {
    auto tensors = received_tensors(message);
    if (!tensors.ok()) return failure(tensors.error());
    auto loaded = program_->load_weights(message.body.at("set"), *tensors);
    weight_digests_ = digests_of_weights();
    return loaded.ok() ? json{{"dropped", *loaded}} : failure(loaded.error());
  }

  json prepare(const Message& message) {
    auto& body = message.body;
    auto received = received_tensors(message);
    if (!received.ok()) return failure(received.error());
    auto arguments = argument_from_json(body.at("arguments"));
    if (!arguments.ok()) return failure(arguments.error());
    if (!calls_) calls_ = std::make_unique<CandidateCalls>(*program_);
    calls_->finish();
    calls_->set_arguments(*std::move(arguments));
    auto next = received->begin();
    for (auto& base : body.at("bases")) {
      const auto count = body.at("tensors_of_a_base").get<std::ptrdiff_t>();
      if (received->end() - next < count) return failure(Outcome::worker_failed, "inputs did not arrive whole");
      calls_->set_base(base, {next, next + count});
      next += count;
    }
    auto prepared = calls_->prepare(batch_from_json(body.at("batch")));
    return prepared.ok() ? json::object() : failure(prepared.error());
  }

  json go() {
    if (!calls_) return json::object();
    auto ran = calls_->go();
    if (!ran.ok()) return failure(ran.error());
    json answer = {{"seconds", ran->seconds}, {"kernel_seconds", ran->kernel_seconds}, {"trials", ran->trials}};
    if (ran->profile) answer["profile"] = to_json(*ran->profile);
    return answer;
  }

  json rest() {
    if (calls_) calls_->finish();
    return json::object();
  }

  // What the batch's launches wrote.
  bool launches() {
    const RecordedLaunches* recorded = calls_ ? calls_->recorded() : nullptr;
    if (!recorded) return wire_.send(failure(Outcome::worker_failed, "no launches were recorded"));
    json answer = {{"launches", json::array()}, {"complete", recorded->is_complete()}};
    std::vector<at::Tensor> written;
    for (const RecordedLaunch& launch : recorded->all()) {
      const bool known = launch.span.valid() && launch.span.file == 0;
      answer["launches"].push_back({{"kernel", launch.kernel},
                                    {"line", known ? program_->sources().position(0, launch.span.begin).line : 0},
                                    {"tensors", launch.written.size()}});
      written.insert(written.end(), launch.written.begin(), launch.written.end());
    }
    return written.empty() || !recorded->is_complete() ? wire_.send(answer) : send_tensors(std::move(answer), written);
  }

  bool fetch(const Message& message) {
    auto fetched = calls_->fetch(message.body.at("call"), most_bytes_);
    if (!fetched.ok()) return wire_.send(failure(fetched.error()));
    json digests = json::array();
    for (auto& input : fetched->inputs) digests.push_back(digest_within_limit(input));
    json answer = {{"structure", fetched->result.structure},
                   {"aliases", fetched->aliases},
                   {"input_digests", digests},
                   {"earlier_changed", fetched->earlier_changed},
                   {"kernels", program_->log().kernels},
                   {"worked", program_->log().worked},
                   {"low_precision", program_->log().low_precision},
                   {"outputs", fetched->result.tensors.size()}};
    for (auto& item : program_->diagnostics().items())
      if (item.severity() == Severity::warning) answer["warnings"].push_back(to_json(item));
    if (message.body.at("look_at_weights")) answer["changed_weights"] = changed_weights();
    auto returned = fetched->result.tensors;
    for (size_t index : message.body.at("return_inputs")) returned.push_back(fetched->inputs.at(index));
    const size_t before = returned.size();
    answer["state"] = add_state(message.body.at("return_state"), returned);
    answer["state_aliases"] = json::array();
    for (size_t k = before; k < returned.size(); ++k)
      answer["state_aliases"].push_back(calls_->input_behind(returned[k], message.body.at("call")));
    return send_tensors(std::move(answer), returned);
  }

  // Adds the buffers of these names that the candidate has, under its own names or those it was paired by; gives which.
  json add_state(const json& names, std::vector<at::Tensor>& returned) {
    json found = json::array();
    const auto held = tensors_by_name();
    for (auto& item : names) {
      const auto name = item.get<std::string>();
      const auto tensor = held.find(own_name(name));
      if (tensor == held.end()) continue;
      found.push_back(name);
      returned.push_back(tensor->second);
    }
    return found;
  }

  std::unordered_map<std::string, at::Tensor> tensors_by_name() const {
    std::unordered_map<std::string, at::Tensor> tensors;
    for (auto& each : program_->weights()) tensors.emplace(each.name, each.tensor);
    return tensors;
  }

  // The candidate's name of a weight of the model's.
  const std::string& own_name(const std::string& weight) const {
    const std::string* holder = program_->transfer().holder_of(weight);
    return holder ? *holder : weight;
  }

  // By the model's name; of those that the candidate has, unless they are so large that each look takes too long.
  std::map<std::string, std::string> digests_of_weights() const {
    constexpr size_t kMostBytes = size_t{1} << 30;
    const auto held = tensors_by_name();
    std::map<std::string, std::string> digests;
    size_t bytes = 0;
    for (auto& name : model_weights_) {
      const auto tensor = held.find(own_name(name));
      if (tensor == held.end()) continue;
      if (bytes_of_elements(tensor->second) > most_bytes_) {  // only its form is compared
        digests.emplace(name, digest_within_limit(tensor->second));
        continue;
      }
      bytes += tensor->second.nbytes();
      if (bytes > kMostBytes) break;
      digests.emplace(name, digest_of(tensor->second));
    }
    return digests;
  }

  json changed_weights() const {
    json changed = json::array();
    const auto now = digests_of_weights();
    for (auto& [name, digest] : weight_digests_) {
      const auto found = now.find(name);
      if (found == now.end() || found->second != digest) changed.push_back(name);
    }
    return changed;
  }

  bool send_tensors(json answer, const std::vector<at::Tensor>& tensors) {
    auto packed = pack_tensors(tensors, tensor_transfer(Direction::from_candidate));
    if (!packed.ok()) return wire_.send(failure(Outcome::out_of_memory, packed.error().message));
    answer["tensors"] = packed->description;
    return wire_.send(answer, packed->descriptors());
  }

  TensorTransfer tensor_transfer(Direction direction) const {
    return {direction, program_->gpu(), program_->device(), most_bytes_};
  }
  // Of what has more elements than the judge takes, the form alone: to look at all of them is to have memory for them.
  std::string digest_within_limit(const at::Tensor& tensor) const {
    const int64_t bytes = bytes_of_elements(tensor);
    return bytes > most_bytes_ ? fmt::format("{} bytes", bytes) : digest_of(tensor);
  }
  Result<std::vector<at::Tensor>> received_tensors(const Message& message) const {
    return unpack_tensors(message.body.at("tensors"), message.descriptors, tensor_transfer(Direction::to_candidate));
  }

  Wire& wire_;
  CrashMarker& marker_;
  bool in_namespaces_;
  int64_t most_bytes_ = INT64_MAX;  // of the tensors of an answer
  std::unique_ptr<CandidateProgram> program_;
  std::unique_ptr<CandidateCalls> calls_;
  std::vector<std::string> model_weights_;             // names
  std::map<std::string, std::string> weight_digests_;  // as they were loaded
};

[[noreturn]] void out_of_memory() { _exit(kOutOfMemoryExit); }

// The first process of a namespace gets no signal that it does not handle, but for faults.
[[noreturn]] void aborted(int) { _exit(kAbortedExit); }

}  // namespace

int run_candidate(bool in_namespaces) {
  signal(SIGABRT, aborted);
  std::set_new_handler(out_of_memory);
  install_fresh_memory();
  set_fresh_memory(FreshMemory::pooled);
  CrashMarkerPage marker{Descriptor(kFirstInherited)};
  if (!marker.get()) return kOutOfMemoryExit;
  Wire wire{Descriptor(kWorkerSocket)};
  CandidateServer(wire, *marker.get(), in_namespaces).serve();
  // Kernels may have damaged the heap: no destructor of LibTorch's runs on it.
  _exit(0);
}

}  // namespace tilepilot::eval
