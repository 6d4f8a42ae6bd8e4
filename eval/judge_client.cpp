// The program's side of the judge: starts `tilepilot-worker`, asks it, and turns its end into a verdict.
#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <random>

#include "eval/diagnostic_json.h"
#include "eval/graph/reference.h"
#include "eval/judge.h"
#include "eval/process/compiled_process.h"
#include "eval/process/worker_process.h"
#include "eval/profile/eager_times.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

json options_json(const JudgeOptions& options, uint64_t seed) {
  json result = {{"dtype", options.dtype},
                 {"precision", options.precision},
                 {"target", options.target},
                 {"aten", options.aten},
                 {"trials", options.trials},
                 {"time_limit_s", options.time_limit_s},
                 {"memory_limit_bytes", options.memory_limit_bytes},
                 {"timing_samples", options.timing_samples},
                 {"timing_budget_s", options.timing_budget_s},
                 {"kernelbench_timing", options.kernelbench_timing},
                 {"baseline_compile", options.baseline_compile},
                 {"compile_limit_s", options.compile_limit_s},
                 {"threads", options.threads},
                 {"cache", options.cache.string()},
                 {"allow_foreign", options.allow_foreign},
                 {"reference_only", options.reference_only},
                 {"eager_only", options.eager_only},
                 {"seed", seed}};
  return result;
}

uint64_t secret_seed() {
  std::random_device entropy;
  return (uint64_t{entropy()} << 32) | entropy();
}

// How long the worker may take to load a reference and compute the expected values.
constexpr double kOpenLimit = 3600;
// What judging one candidate may take beyond the candidate's own limits: this, and some times what the reference took,
// since the worker replays it again beside the timed calls.
constexpr double kCheckMargin = 300;
constexpr double kReplays = 10;
constexpr double kCompiledModes = 2;  // of `torch.compile`
constexpr double kEagerLimit = 300;   // others may be timed first

// The candidate's trials, then its longest requests in timing (first calls, warming up, the last sample), each with the
// whole limit, and the samples.
double check_limit(const JudgeOptions& options, double open_seconds) {
  const double compiling = options.baseline_compile ? kCompiledModes * 3 * options.compile_limit_s : 0;
  return 4 * kPatience * options.time_limit_s + 20 * options.timing_budget_s + kReplays * open_seconds + compiling +
         kCheckMargin;
}

class JudgeClient final : public Judge {
 public:
  JudgeClient(std::filesystem::path folder, JudgeOptions options)
      : folder_(std::move(folder)), options_(std::move(options)) {}

  Status start() {
    worker_ = TRY(WorkerProcess::start(
        {.executable = options_.worker, .role = "judge", .threads = options_.threads, .dies_with_thread = true}));
    const double begin = monotonic_seconds();
    seed_ = options_.seed ? *options_.seed : secret_seed();
    worker_->wire().send({{"op", "open"}, {"folder", folder_.string()}, {"options", options_json(options_, seed_)}});
    auto answer = worker_->wire().receive(kOpenLimit);
    while (answer && answer->body.contains(kJudgeWaits)) {
      if (options_.waits) options_.waits(answer->body[kJudgeWaits].get<std::string>());
      answer = worker_->wire().receive(kOpenLimit);
    }
    if (!answer) return Status(worker_gone("while it loaded the reference"));
    open_seconds_ = monotonic_seconds() - begin - answer->body.value("waited", 0.0);
    if (answer->body.contains("diagnostic")) {
      worker_.reset();
      return Status(make_error(diagnostic_from_json(answer->body["diagnostic"])));
    }
    options_.target = answer->body.value("target", options_.target);
    options_.threads = answer->body.value("threads", options_.threads);
    return {};
  }

  Status ready() override { return worker_ ? Status() : start(); }

  std::string target() const override { return options_.target; }

  Result<EagerTimes> eager_times() override {
    TRY(ready());
    worker_->wire().send({{"op", "eager"}});
    auto answer = worker_->wire().receive(kEagerLimit);
    if (!answer) return worker_gone("while it measured eager");
    if (answer->body.contains("diagnostic")) return make_error(diagnostic_from_json(answer->body["diagnostic"]));
    try {
      return eager_times_from_json(answer->body);
    } catch (const json::exception& error) {
      end_worker();
      return make_error(DiagnosticKind::worker_unavailable, {},
                        fmt::format("the worker's answer cannot be read: {}", error.what()));
    }
  }

  Verdict check(const CheckRequest& request) override {
    auto read = [](const json& answer) { return std::vector{verdict_from_json(answer)}; };
    Verdict verdict = ask(request_json("check", request), 1, read)[0];
    return completed(std::move(verdict));
  }

  std::vector<Verdict> compare(const std::vector<CheckRequest>& finalists) override {
    if (finalists.empty()) return {};
    json request = {{"op", "compare"}, {"requests", json::array()}};
    for (auto& finalist : finalists) request["requests"].push_back(request_json("check", finalist));
    auto read = [](const json& answer) {
      std::vector<Verdict> verdicts;
      for (auto& each : answer.at("verdicts")) verdicts.push_back(verdict_from_json(each));
      return verdicts;
    };
    auto verdicts = ask(request, finalists.size(), read);
    for (Verdict& verdict : verdicts) verdict = completed(std::move(verdict));
    return verdicts;
  }

 private:
  static Verdict failed(std::string detail) {
    Verdict verdict;
    verdict.detail = std::move(detail);
    return verdict;
  }

  Error worker_gone(std::string_view when) {
    bool hung = worker_->wire().trouble() == Wire::Trouble::timed_out;
    auto ending = worker_->stop(hung ? 0 : 1);
    end_worker();
    std::string how = hung                       ? "did not answer in time"
                      : ending.signal == SIGKILL ? "was killed (signal 9), as the system does where memory is short,"
                      : ending.signal != 0       ? fmt::format("died of signal {}", ending.signal)
                                                 : fmt::format("ended with code {}", ending.exit_code);
    return make_error(DiagnosticKind::worker_unavailable, {}, fmt::format("the worker {} {}", how, when),
                      ending.exit_code == 127 ? "can `tilepilot-worker` find LibTorch's libraries?" : "");
  }

  static json request_json(std::string_view op, const CheckRequest& request) {
    return {{"op", op},
            {"source", request.source},
            {"name", request.name},
            {"time", request.time},
            {"profile", static_cast<int>(request.profile)}};
  }

  Verdict completed(Verdict verdict) {
    verdict.target = options_.target;
    verdict.aten = options_.aten;
    verdict.seed = seed_;
    verdict.seconds["reference"] = open_seconds_;
    return verdict;
  }

  // `count` verdicts, whatever happens.
  template <class Read>
  std::vector<Verdict> ask(const json& request, size_t count, const Read& read) {
    if (const Status started = ready(); !started.ok())
      return std::vector<Verdict>(count, failed(started.error().message));
    std::string trouble;
    send(request, trouble);
    auto answer = worker_->wire().receive(static_cast<double>(count) * check_limit(options_, open_seconds_));
    if (!answer) return std::vector<Verdict>(count, failed(worker_gone("while it judged a candidate")->message));
    if (answer->body.value(kJudgeEnds, false)) end_worker();  // the next check starts another
    try {
      auto verdicts = read(answer->body);
      for (Verdict& verdict : verdicts)
        if (!trouble.empty() && verdict.candidate) verdict.notes.push_back(trouble);
      if (verdicts.size() == count) return verdicts;
    } catch (const json::exception& error) {
      end_worker();
      return std::vector<Verdict>(count, failed(fmt::format("the worker's answer cannot be read: {}", error.what())));
    }
    return std::vector<Verdict>(count, failed("the worker's answer lacks verdicts"));
  }

  // The judge gets the sockets of processes that it has not got yet. Where they cannot be started, `trouble` says why.
  bool send(json request, std::string& trouble) {
    const bool timed = request.value("op", "") == "compare" || request.value("time", false);
    if (!timed || !options_.baseline_compile || compiled_) return worker_->wire().send(request);
    const auto start_compiled = [&]() -> Result<CompiledProcesses> {
      return CompiledProcesses::start(TRY(load_reference(folder_)), options_);
    };
    auto started = start_compiled();
    if (!started.ok()) {
      trouble = "`torch.compile` could not be timed: " + started.error().message;
      return worker_->wire().send(request);
    }
    compiled_ = *std::move(started);
    request[kCompiledProcesses] = compiled_->description();
    return worker_->wire().send(request, compiled_->descriptors());
  }

  void end_worker() {
    compiled_.reset();
    worker_.reset();
  }

  std::filesystem::path folder_;
  JudgeOptions options_;
  std::unique_ptr<WorkerProcess> worker_;
  uint64_t seed_ = 0;  // of this worker's trials: another worker gets another, unless the user named one
  double open_seconds_ = 0;
  std::optional<CompiledProcesses> compiled_;  // that this worker has the sockets of
};

}  // namespace

std::vector<Verdict> Judge::compare(const std::vector<CheckRequest>& finalists) {
  std::vector<Verdict> verdicts;
  for (const CheckRequest& finalist : finalists) verdicts.push_back(check(finalist));
  return verdicts;
}

Result<EagerTimes> Judge::eager_times() {
  return make_error(DiagnosticKind::worker_unavailable, {}, "this judge does not measure eager");
}

Result<std::unique_ptr<Judge>> open_judge(const std::filesystem::path& reference_folder, const JudgeOptions& options) {
  auto judge = TRY(judge_on_demand(reference_folder, options));
  TRY(judge->ready());
  return judge;
}

Result<std::unique_ptr<Judge>> judge_on_demand(const std::filesystem::path& reference_folder,
                                               const JudgeOptions& options) {
  TRY(check_options(options));
  return std::unique_ptr<Judge>(std::make_unique<JudgeClient>(reference_folder, options));
}

}  // namespace tilepilot::eval
