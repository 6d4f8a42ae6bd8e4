#include "eval/worker/candidate_process.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <new>

#include "compiler/diagnostics/render.h"
#include "eval/argument_json.h"
#include "eval/diagnostic_json.h"
#include "eval/host/edge.h"
#include "eval/judge.h"
#include "eval/torch/element_type.h"
#include "eval/worker/candidate_program.h"
#include "eval/worker/digest.h"
#include "eval/worker/poison.h"
#include "eval/worker/tensor_passage.h"
#include "eval/worker/timed_candidate.h"
#include "eval/worker_process.h"

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

Result<std::vector<at::Tensor>> received_tensors(const Message& message, size_t descriptor, const json& description) {
  if (descriptor < message.descriptors.size()) return unpack_tensors(description, message.descriptors[descriptor]);
  return make_error(DiagnosticKind::worker_unavailable, {}, "tensors did not arrive");
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors, c10::Device device) {
  std::vector<at::Tensor> result;
  for (auto& tensor : tensors) {
    at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device));
    result.push_back(copy.copy_(tensor));
  }
  return result;
}

class CandidateServer {
 public:
  CandidateServer(Wire& wire, SharedCrumb& crumb) : wire_(wire), crumb_(crumb) {}

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
    if (op == "forward") return forward(message);
    if (op == "prepare_timing") return wire_.send(prepare_timing(message));
    if (op == "turn") return turn(message);
    if (op == "time") return time(message);
    return false;
  }

  json failure(const Diagnostic& diagnostic) {
    Verdict verdict;
    verdict.outcome = outcome_of(diagnostic.kind);
    verdict.detail = diagnostic.message;
    if (!program_) return {{"failure", to_json(verdict)}};
    if (diagnostic.span.valid() && diagnostic.span.file == 0) {
      verdict.line = program_->sources().position(0, diagnostic.span.begin).line;
    }
    add_diagnostics(diagnostic, verdict);
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
    if (auto threads = body.value("threads", 0); threads > 0) at::set_num_threads(threads);
    CandidateOptions options{.source = body.at("source"),
                             .name = body.at("name"),
                             .seed = body.at("seed"),
                             .training = body.at("training"),
                             .type = type_of_option(body.at("dtype").get<std::string>()),
                             .cache = body.at("cache").get<std::string>(),
                             .target = {}};
    auto target = runtime::parse_target(body.at("target").get<std::string>());
    if (!target.ok()) return failure(Outcome::worker_failed, target.error().message);
    options.target = *target;
    program_ = std::make_unique<CandidateProgram>(std::move(options), crumb_);
    if (auto opened = program_->open(); !opened.ok()) return failure(opened.error());
    limit_resources(body.at("memory_limit_bytes"));
    auto init_inputs = argument_from_json(body.at("init_inputs"));
    if (!init_inputs.ok()) return failure(init_inputs.error());
    if (auto loaded = program_->load(); !loaded.ok()) return failure(loaded.error());
    auto tensors = received_tensors(message, 0, body.at("tensors"));
    if (!tensors.ok()) return failure(tensors.error());
    std::vector<ModelWeight> weights;
    for (auto& each : body.at("weights")) {
      weights.push_back(
          {each.at("name"), tensors->at(weights.size()), each.at("buffer"), each.at("storage"), each.at("used")});
    }
    if (auto made = program_->construct(*init_inputs, std::move(weights)); !made.ok()) return failure(made.error());
    auto& transfer = program_->transfer();
    if (!transfer.mismatch().empty()) return failure(Outcome::weights_mismatch, transfer.mismatch());
    if (auto loaded = program_->load_weights(0, *tensors); !loaded.ok()) return failure(loaded.error());
    return {{"notes", transfer.notes()}, {"lacking", transfer.lacking()}};
  }

  json weights(const Message& message) {
    auto tensors = received_tensors(message, 0, message.body.at("tensors"));
    if (!tensors.ok()) return failure(tensors.error());
    auto loaded = program_->load_weights(message.body.at("set"), *tensors);
    return loaded.ok() ? json{{"dropped", *loaded}} : failure(loaded.error());
  }

  // "input 0" or the name of a weight whose memory a tensor shares; empty: none.
  std::string alias_of(const at::Tensor& tensor, const std::vector<at::Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (tensor.numel() > 0 && tensor.is_alias_of(inputs[i])) return fmt::format("input {}", i);
    }
    for (auto& weight : program_->weights()) {
      if (tensor.numel() > 0 && tensor.is_alias_of(weight.tensor)) return fmt::format("weight `{}`", weight.name);
    }
    return "";
  }

  json aliases_of(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& inputs) {
    json aliases = json::array();
    for (auto& tensor : tensors) aliases.push_back(alias_of(tensor, inputs));
    return aliases;
  }

  // What the timed calls are compared with. The first two calls have different weights: a program that remembers
  // answers has to compute both. What the first one prepares for good is left out by the second.
  void remember(const std::vector<at::Tensor>& inputs, std::optional<int64_t> launches) {
    seen_.inputs.insert(digest_of_all(inputs));
    if (launches && trial_calls_++ < 2) seen_.add_launches(*launches);
  }

  // Outputs of earlier calls must stay as they were.
  bool earlier_changed() const {
    for (auto& [tensor, digest] : kept_) {
      if (digest_of(tensor) != digest) return true;
    }
    return false;
  }

  bool forward(const Message& message) {
    auto& body = message.body;
    auto received = received_tensors(message, 0, body.at("tensors"));
    auto arguments = argument_from_json(body.at("arguments"));
    if (!received.ok()) return wire_.send(failure(received.error()));
    if (!arguments.ok()) return wire_.send(failure(arguments.error()));
    auto inputs = copies(*received, program_->device());
    bool ghost = body.value("ghost", false);
    program_->seed(body.at("seed"));
    int64_t launches = program_->log().launches;
    program_->log().ghost = ghost;
    set_poison(body.at("poison").get<uint8_t>());
    auto result = program_->forward(program_->arguments(*arguments, inputs));
    set_poison(std::nullopt);
    program_->log().ghost = false;
    if (!result.ok()) return wire_.send(failure(result.error()));
    remember(*received, ghost ? std::nullopt : std::optional(program_->log().launches - launches));
    json digests = json::array();
    for (auto& input : inputs) digests.push_back(digest_of(input));
    json answer = {{"structure", result->structure},     {"aliases", aliases_of(result->tensors, inputs)},
                   {"input_digests", digests},           {"earlier_changed", earlier_changed()},
                   {"kernels", program_->log().kernels}, {"low_precision", program_->log().low_precision},
                   {"outputs", result->tensors.size()}};
    if (body.value("keep", false)) {
      for (auto& tensor : result->tensors) kept_.emplace_back(tensor, digest_of(tensor));
    }
    auto returned = result->tensors;
    for (size_t index : body.at("return_inputs")) returned.push_back(inputs.at(index));
    return send_tensors(std::move(answer), returned);
  }

  bool send_tensors(json answer, const std::vector<at::Tensor>& tensors) {
    auto packed = pack_tensors(tensors);
    if (!packed.ok()) return wire_.send(failure(Outcome::out_of_memory, packed.error().message));
    answer["tensors"] = packed->description;
    return wire_.send(answer, {packed->file.number()});
  }

  json prepare_timing(const Message& message) {
    kept_.clear();
    auto& body = message.body;
    auto arguments = argument_from_json(body.at("arguments"));
    if (!arguments.ok()) return failure(arguments.error());
    TimingSetup setup{*std::move(arguments), {}, body.at("mutates")};
    auto& descriptions = body.at("sets");
    for (size_t i = 0; i < descriptions.size(); ++i) {
      auto received = received_tensors(message, i, descriptions[i]);
      if (!received.ok()) return failure(received.error());
      setup.contents.push_back(*std::move(received));
    }
    timed_ = std::make_unique<TimedCandidate>(*program_, seen_, std::move(setup));
    auto begun = timed_->begin();
    return begun.ok() ? json::object() : failure(begun.error());
  }

  bool turn(const Message& message) {
    auto& body = message.body;
    auto received = received_tensors(message, 0, body.at("tensors"));
    if (!received.ok()) return wire_.send(failure(received.error()));
    auto checked = timed_->turn(body.at("content"), *received, body.at("seed"));
    if (!checked.ok()) return wire_.send(failure(checked.error()));
    return send_checked(json::object(), *checked);
  }

  bool time(const Message& message) {
    auto& body = message.body;
    TimedCalls calls{.calls = body.at("calls"),
                     .lead = body.at("lead"),
                     .restore = body.at("restore"),
                     .watch_kernels = body.at("watch_kernels")};
    if (body.contains("content")) {
      calls.content = body.at("content").get<size_t>();
      calls.before = body.at("before");
      calls.seed = body.at("seed");
    }
    auto timed = timed_->time(calls);
    if (!timed.ok()) return wire_.send(failure(timed.error()));
    json answer = {{"seconds", timed->seconds},
                   {"kernel_seconds", timed->kernel_seconds},
                   {"complaint", timed->complaint},
                   {"earlier_changed", timed->earlier_changed}};
    return timed->checked ? send_checked(std::move(answer), *timed->checked) : wire_.send(answer);
  }

  bool send_checked(json answer, const CheckedCall& checked) {
    answer["structure"] = checked.result.structure;
    answer["aliases"] = aliases_of(checked.result.tensors, checked.inputs);
    return send_tensors(std::move(answer), checked.result.tensors);
  }

  Wire& wire_;
  SharedCrumb& crumb_;
  std::unique_ptr<CandidateProgram> program_;
  std::vector<std::pair<at::Tensor, std::string>> kept_;
  SeenCalls seen_;
  int trial_calls_ = 0;
  std::unique_ptr<TimedCandidate> timed_;
};

[[noreturn]] void out_of_memory() { _exit(kOutOfMemoryExit); }

}  // namespace

int run_candidate() {
  std::set_new_handler(out_of_memory);
  install_poison();
  CrumbPage crumb{Descriptor(kFirstInherited)};
  if (!crumb.get()) return kOutOfMemoryExit;
  Wire wire{Descriptor(kWorkerSocket)};
  CandidateServer(wire, *crumb.get()).serve();
  // Kernels may have damaged the heap: no destructor of LibTorch's runs on it.
  _exit(0);
}

}  // namespace tilepilot::eval
