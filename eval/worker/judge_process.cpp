#include "eval/worker/judge_process.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <random>

#include "compiler/runtime/target.h"
#include "eval/diagnostic_json.h"
#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/worker/examination.h"
#include "eval/worker/target_backend.h"
#include "eval/worker_process.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

JudgeOptions read_options(const json& node) {
  JudgeOptions options;
  node.at("dtype").get_to(options.dtype);
  node.at("precision").get_to(options.precision);
  node.at("target").get_to(options.target);
  node.at("trials").get_to(options.trials);
  node.at("time_limit_s").get_to(options.time_limit_s);
  node.at("memory_limit_bytes").get_to(options.memory_limit_bytes);
  node.at("timing_samples").get_to(options.timing_samples);
  node.at("timing_budget_s").get_to(options.timing_budget_s);
  node.at("threads").get_to(options.threads);
  options.cache = node.at("cache").get<std::string>();
  if (node.contains("seed")) options.seed = node.at("seed").get<uint64_t>();
  return options;
}

int64_t bytes_of_memory() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

uint64_t secret_seed() {
  std::random_device entropy;
  return (uint64_t{entropy()} << 32) | entropy();
}

// Reference, eager and candidate run in the element type that the model was exported in.
Status check_dtype(const Reference& reference, const JudgeOptions& options) {
  if (reference.dtype == options.dtype) return {};
  return make_error(DiagnosticKind::reference_invalid, {},
                    fmt::format("the reference was exported as `{}`, not as `{}`", reference.dtype, options.dtype),
                    "export the model again");
}

class JudgeServer {
 public:
  JudgeServer(Wire& wire, std::filesystem::path executable) : wire_(wire), executable_(std::move(executable)) {}

  void serve() {
    while (auto message = wire_.receive()) {
      auto op = message->body.value("op", "");
      if (op == "open") {
        auto opened = open(message->body);
        wire_.send(opened.ok() ? json{{"target", options_.target}} : json{{"diagnostic", to_json(opened.error())}});
      } else if (op == "check") {
        json answer = to_json(check(message->body));
        answer[kJudgeEnds] = gpu_is_lost();
        wire_.send(answer);
        if (answer[kJudgeEnds]) return;
      }
    }
  }

 private:
  Status open(const json& body) {
    options_ = read_options(body.at("options"));
    if (options_.threads > 0) at::set_num_threads(options_.threads);
    if (options_.memory_limit_bytes <= 0) options_.memory_limit_bytes = bytes_of_memory() / 4 * 3;
    // What candidates will need, so that what this machine lacks is said once.
    auto opened = TRY(open_target(TRY(runtime::parse_target(options_.target)), {options_.cache, nullptr}));
    options_.target = runtime::to_string(opened.target);
    measures_ = opened.target.place != runtime::Place::emulator;
    gpu_ = std::move(opened.gpu);
    auto reference = TRY(load_reference(body.at("folder").get<std::string>()));
    TRY(check_dtype(reference, options_));
    ReferenceOptions reference_options{.seed = options_.seed ? *options_.seed : secret_seed(),
                                       .trials = std::max(1, options_.trials),
                                       .memory_bytes = bytes_of_memory() / 2,
                                       .precision = type_of_option(options_.precision)};
    try {
      if (gpu_) reference_options.device = gpu_device();
      side_ = TRY(ReferenceSide::make(std::move(reference), reference_options));
    } catch (const std::exception& error) {
      return make_error(DiagnosticKind::reference_invalid, {},
                        fmt::format("the reference cannot be replayed: {}", error.what()));
    }
    return {};
  }

  // A context that failed never works again; another judge has another one.
  bool gpu_is_lost() const {
    if (!gpu_) return false;
    try {
      synchronize_gpu();
      release_unused_gpu_memory();  // to the next candidate
      return false;
    } catch (const std::exception&) { return true; }
  }

  Verdict check(const json& body) {
    CheckRequest request{.source = body.at("source"), .name = body.at("name"), .time = body.at("time") && measures_};
    try {
      auto known = verified_.find(request.source);
      auto verdict =
          examine(*side_, request, {options_, executable_}, known == verified_.end() ? nullptr : &known->second);
      if (verdict.outcome == Outcome::verified) verified_.insert_or_assign(request.source, verdict);
      return verdict;
    } catch (const std::exception& error) {
      Verdict verdict;
      verdict.detail = fmt::format("the judge failed: {}", error.what());
      return verdict;
    }
  }

  Wire& wire_;
  std::filesystem::path executable_;
  JudgeOptions options_;
  bool measures_ = true;                              // times in the emulator tell nothing
  std::shared_ptr<const runtime::cuda::Device> gpu_;  // kept, as its context is LibTorch's too
  std::unique_ptr<ReferenceSide> side_;
  std::map<std::string, Verdict> verified_;  // by source
};

}  // namespace

int run_judge(const std::filesystem::path& executable) {
  Wire wire{Descriptor(kWorkerSocket)};
  JudgeServer(wire, executable).serve();
  return 0;
}

}  // namespace tilepilot::eval
