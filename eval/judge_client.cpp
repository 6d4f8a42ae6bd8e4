// The program's side of the judge: starts `tilepilot-worker`, asks it, and turns its end into a verdict.
#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <random>

#include "compiler/runtime/process.h"
#include "eval/diagnostic_json.h"
#include "eval/judge.h"
#include "eval/reference.h"
#include "eval/worker_process.h"

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
                 {"threads", options.threads},
                 {"cache", options.cache.string()},
                 {"allow_foreign", options.allow_foreign},
                 {"reference_only", options.reference_only},
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

// The candidate's trials, then its longest requests in timing (first calls, warming up, the last sample), each with the
// whole limit, and the samples.
double check_limit(const JudgeOptions& options, double open_seconds) {
  return 4 * kPatience * options.time_limit_s + 20 * options.timing_budget_s + kReplays * open_seconds + kCheckMargin;
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

  std::string target() const override { return options_.target; }

  Verdict check(const CheckRequest& request) override {
    auto read = [](const json& answer) { return std::vector{verdict_from_json(answer)}; };
    Verdict verdict = ask(request_json("check", request), 1, read)[0];
    return completed(std::move(verdict), request.time);
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
    for (Verdict& verdict : verdicts) verdict = completed(std::move(verdict), true);
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
    worker_.reset();
    std::string how = hung                       ? "did not answer in time"
                      : ending.signal == SIGKILL ? "was killed (signal 9), as the system does where memory is short,"
                      : ending.signal != 0       ? fmt::format("died of signal {}", ending.signal)
                                                 : fmt::format("ended with code {}", ending.exit_code);
    return make_error(DiagnosticKind::worker_unavailable, {}, fmt::format("the worker {} {}", how, when),
                      ending.exit_code == 127 ? "can `tilepilot-worker` find LibTorch's libraries?" : "");
  }

  static json request_json(std::string_view op, const CheckRequest& request) {
    return {{"op", op}, {"source", request.source}, {"name", request.name}, {"time", request.time}};
  }

  Verdict completed(Verdict verdict, bool timed) {
    verdict.target = options_.target;
    verdict.aten = options_.aten;
    verdict.seed = seed_;
    verdict.seconds["reference"] = open_seconds_;
    if (timed && options_.baseline_compile && verdict.outcome == Outcome::verified) add_compiled(verdict);
    return verdict;
  }

  // `count` verdicts, whatever happens.
  template <class Read>
  std::vector<Verdict> ask(const json& request, size_t count, const Read& read) {
    if (!worker_) {
      auto started = start();
      if (!started.ok()) return std::vector<Verdict>(count, failed(started.error().message));
    }
    worker_->wire().send(request);
    auto answer = worker_->wire().receive(static_cast<double>(count) * check_limit(options_, open_seconds_));
    if (!answer) return std::vector<Verdict>(count, failed(worker_gone("while it judged a candidate")->message));
    if (answer->body.value(kJudgeEnds, false)) worker_.reset();  // the next check starts another
    try {
      auto verdicts = read(answer->body);
      if (verdicts.size() == count) return verdicts;
    } catch (const json::exception& error) {
      worker_.reset();
      return std::vector<Verdict>(count, failed(fmt::format("the worker's answer cannot be read: {}", error.what())));
    }
    return std::vector<Verdict>(count, failed("the worker's answer lacks verdicts"));
  }

  // torch.compile is timed once, in the exporter's Python; it does not run beside the candidate.
  void add_compiled(Verdict& verdict) {
    if (!compile_tried_) time_compile();
    compile_tried_ = true;
    verdict.compiled = compiled_;
    if (!compile_note_.empty()) verdict.notes.push_back(compile_note_);
  }

  void time_compile() {
    auto reference = load_reference(folder_);
    if (!reference.ok()) return;
    std::vector<std::string> command = {options_.python,
                                        options_.exporter.string(),
                                        reference->model_path,
                                        "--time-compile",
                                        "--threads",
                                        std::to_string(options_.threads),
                                        "--dtype",
                                        options_.dtype,
                                        "--samples",
                                        std::to_string(options_.timing_samples),
                                        "--device",
                                        options_.target.starts_with("cuda") ? "cuda" : "cpu"};
    if (reference->scale != "1") command.insert(command.end(), {"--scale", reference->scale});
    auto run = runtime::run_process(command, {.time_limit_s = kOpenLimit, .working_directory = {}});
    json answer = run.ok() ? json::parse(run->out, nullptr, false) : json();
    if (!answer.is_object()) {
      compile_note_ = "`torch.compile` could not be timed: Python did not answer";
    } else if (!answer.value("ok", false)) {
      compile_note_ = answer.value("message", "`torch.compile` could not be timed");
    } else {
      compiled_ = Timing{answer.at("median_us"), answer.at("low_us"), answer.at("high_us"), answer.at("samples")};
    }
  }

  std::filesystem::path folder_;
  JudgeOptions options_;
  std::unique_ptr<WorkerProcess> worker_;
  uint64_t seed_ = 0;  // of this worker's trials: another worker gets another, unless the user named one
  double open_seconds_ = 0;
  bool compile_tried_ = false;
  std::optional<Timing> compiled_;
  std::string compile_note_;
};

}  // namespace

std::vector<Verdict> Judge::compare(const std::vector<CheckRequest>& finalists) {
  std::vector<Verdict> verdicts;
  for (const CheckRequest& finalist : finalists) verdicts.push_back(check(finalist));
  return verdicts;
}

Result<std::unique_ptr<Judge>> open_judge(const std::filesystem::path& reference_folder, const JudgeOptions& options) {
  TRY(check_options(options));
  auto judge = std::make_unique<JudgeClient>(reference_folder, options);
  TRY(judge->start());
  return judge;
}

}  // namespace tilepilot::eval
