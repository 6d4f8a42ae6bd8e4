#include "kernelbench/generate_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "compiler/runtime/last_line.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/stop_switch.h"
#include "compiler/source/file.h"

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;

// Beside the minutes that a problem has: its export, its last candidate's trials and the comparison of finalists.
constexpr double kBesidesMinutes = 15;

// Which GPU a process may use.
class GpuPool {
 public:
  explicit GpuPool(std::vector<std::string> gpus) : gpus_(std::move(gpus)), users_(gpus_.size()) {}

  // One of a process, while it lives.
  class Use {
   public:
    explicit Use(GpuPool& pool) : pool_(pool), place_(pool.take()) {}
    ~Use() { pool_.give_back(place_); }
    Use(const Use&) = delete;
    std::vector<std::string> environment() const {
      if (pool_.gpus_.empty()) return {};
      return {"CUDA_VISIBLE_DEVICES=" + pool_.gpus_[place_]};
    }

   private:
    GpuPool& pool_;
    size_t place_;
  };

 private:
  size_t take() {
    std::lock_guard lock(mutex_);
    if (gpus_.empty()) return 0;
    const auto least = std::min_element(users_.begin(), users_.end());
    ++*least;
    return static_cast<size_t>(least - users_.begin());
  }
  void give_back(size_t place) {
    std::lock_guard lock(mutex_);
    if (!gpus_.empty()) --users_[place];
  }

  const std::vector<std::string> gpus_;
  std::vector<int> users_;  // of each
  std::mutex mutex_;
};

class GenerateProcesses final : public ProblemRunner {
 public:
  explicit GenerateProcesses(GenerateProcessOptions options) : options_(std::move(options)), gpus_(options_.gpus) {}
  GenerateProcesses(const GenerateProcesses&) = delete;

  std::optional<Outcome> run(int64_t batch, const Problem& problem, const Allowance& allowance,
                             const std::function<void(const std::string&)>& stage) override {
    auto model = model_file(problem);
    if (!model) return Outcome{Ending::not_judged, model.error().message, 0, 0, 0, {}};
    runtime::LastLine last(stage);
    runtime::ProcessOptions process;
    process.time_limit_s = (allowance.minutes + kBesidesMinutes) * 60;
    process.abandon = stop_.watched();
    const GpuPool::Use gpu(gpus_);
    process.more_environment = gpu.environment();
    process.more_environment.insert(process.more_environment.end(), options_.environment.begin(),
                                    options_.environment.end());
    process.watch_err = [&last](std::string_view text) { last.add(text); };
    auto ended = runtime::run_process(command(batch, problem, *model, allowance), process);
    if (!ended) return Outcome{Ending::not_judged, ended.error().message, 0, 0, 0, {}};
    if (ended->abandoned) return std::nullopt;
    return outcome_of(ended->out, ended->exit_code, runtime::ending_of(*ended));
  }

  void stop() override { stop_.pull(); }

 private:
  static std::string stem(const Problem& problem) {
    std::string name = problem.level > 0 ? fmt::format("level{}_", problem.level) : "";
    name += problem.file.empty() ? fmt::format("{}_{}", problem.id, problem.name) : problem.name;
    std::replace_if(
        name.begin(), name.end(),
        [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '_' && letter != '-'; }, '_');
    return name.substr(0, 120);
  }

  // The problem's own file, or one in the work folder. A file that has changed since the batch began is not its
  // problem.
  Result<std::filesystem::path> model_file(const Problem& problem) const {
    std::string text, why;
    if (!problem.file.empty() && read_file(problem.file, text) && text == problem.source) return problem.file;
    const auto file = options_.work / (stem(problem) + ".py");
    if (!write_file(file, problem.source, &why))
      return make_error(DiagnosticKind::output_unwritable, {},
                        fmt::format("cannot write `{}`: {}", file.string(), why));
    return file;
  }

  std::vector<std::string> command(int64_t batch, const Problem& problem, const std::filesystem::path& model,
                                   const Allowance& allowance) const {
    const auto folder = options_.output.empty() ? options_.work : options_.output;
    std::vector<std::string> arguments = {options_.program.string(),
                                          "generate",
                                          model.string(),
                                          "--json",
                                          "-o",
                                          (folder / (stem(problem) + "_new.py")).string(),
                                          "--batch",
                                          std::to_string(batch),
                                          "--minutes",
                                          fmt::format("{}", allowance.minutes)};
    if (options_.costs_money) arguments.insert(arguments.end(), {"--dollars", fmt::format("{}", allowance.dollars)});
    if (options_.output.empty()) arguments.emplace_back("--no-cert");
    arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
    return arguments;
  }

  GenerateProcessOptions options_;
  GpuPool gpus_;
  runtime::StopSwitch stop_;
};

std::string first_message(const json& answer) {
  const auto errors = answer.find("errors");
  if (errors == answer.end() || !errors->is_array() || errors->empty()) return "";
  return (*errors)[0].value("message", "");
}

// Kinds of errors that are the problem's own, or this machine's memory's.
Ending ending_of_error(const json& answer) {
  const auto errors = answer.find("errors");
  if (errors == answer.end() || !errors->is_array() || errors->empty()) return Ending::not_judged;
  const std::string kind = (*errors)[0].value("kind", "");
  if (kind == "model_invalid" || kind == "reference_invalid" || kind == "unsupported") return Ending::not_loaded;
  if (kind == "out_of_memory") return Ending::does_not_fit;
  return Ending::not_judged;
}

std::string reason_of_attempts(const json& attempts) {
  const json& verdict = attempts.back().at("verdict");
  return fmt::format("none of {} attempts: {}{}", attempts.size(), verdict.value("outcome", ""),
                     verdict.value("detail", "").empty() ? "" : ": " + verdict.value("detail", ""));
}

// Of an answer that is one.
void read_answer(const json& answer, Outcome& outcome) {
  outcome.run = answer.value("run", int64_t{0});
  outcome.dollars = answer.value("dollars", 0.0);
  const json attempts = answer.value("attempts", json::array());
  const std::string ending = answer.value("ending", "");
  outcome.lacks_money = ending == "money spent";
  if (answer.value("ok", false)) {
    const bool partly = answer.at("verdict").value("given_inputs_only", false);
    outcome.ending = partly ? Ending::given_inputs_only : Ending::verified;
    if (partly) outcome.reason = "verified for the given inputs only";
  } else if (!answer.contains("ending")) {  // it ended before there was a run
    outcome.ending = ending_of_error(answer);
    outcome.reason = first_message(answer);
  } else if (ending == "the worker failed") {
    outcome.ending = Ending::not_judged;
    outcome.reason = attempts.empty() ? ending : reason_of_attempts(attempts);
  } else if (ending == "the author failed") {
    // The builtin author fails where a model is beyond it; a language model's, where there is no answer.
    const bool beyond = answer.value("author", "") == "builtin";
    outcome.ending = beyond ? (attempts.empty() ? Ending::abstained : Ending::failed) : Ending::not_judged;
    outcome.reason = first_message(answer);
  } else if (attempts.empty()) {
    outcome.ending = Ending::abstained;
    outcome.reason = ending.ends_with(" spent")
                         ? fmt::format("no candidate: {} before there was one", ending)
                         : "the author sees nothing that a kernel could compute faster than PyTorch";
  } else {
    outcome.ending = Ending::failed;
    outcome.reason = reason_of_attempts(attempts);
  }
}

}  // namespace

Outcome outcome_of(const std::string& text, int exit_code, const std::string& how) {
  Outcome outcome;
  outcome.record = json::parse(text, nullptr, /*allow_exceptions*/ false);
  if (!outcome.record.is_object()) {
    outcome.record = nullptr;
    outcome.reason = fmt::format("`generate` gave no answer: {}", how);
    return outcome;
  }
  try {
    read_answer(outcome.record, outcome);
  } catch (const json::exception&) {
    outcome.ending = Ending::not_judged;
    outcome.reason = fmt::format("`generate` gave an answer of another form, and exit code {}", exit_code);
  }
  return outcome;
}

std::unique_ptr<ProblemRunner> generate_processes(GenerateProcessOptions options) {
  return std::make_unique<GenerateProcesses>(std::move(options));
}

}  // namespace tilepilot::kernelbench
