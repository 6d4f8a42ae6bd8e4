// tilepilot bench run|report|list: whole problem sets, and what came of them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/run_store.h"
#include "agent/work_folder.h"
#include "cli/chosen_target.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/judge_flags.h"
#include "cli/live_lines.h"
#include "cli/llm_flags.h"
#include "compiler/source/file.h"
#include "kernelbench/batch_lock.h"
#include "kernelbench/generate_process.h"
#include "kernelbench/report.h"

namespace tilepilot::cli {
namespace {

using namespace kernelbench;
using nlohmann::json;

struct BenchFlags {
  std::string problems, levels, ids, output;
  std::string author = "builtin";
  int attempts = 12;
  bool begin_new = false;
  BatchOptions batch;
  JudgeFlags judge;
  LlmFlags llm;
  const CLI::Option* jobs = nullptr;
  const CLI::Option* problem_dollars = nullptr;
  const CLI::App* command = nullptr;
};

struct ReportFlags {
  int64_t batch = 0, against = 0;
  std::string csv, html;
};

// Options that decide results go to each `generate` as they were given, and into the batch's own.
bool decides_results(const CLI::Option& option) {
  const std::string group = option.get_group(), name = option.get_name();
  if (name == "--dollars" || name == "--problem-dollars") return false;  // told to each `generate` as they are left
  return group == "Judge" || group == "Language model" || name == "--attempts" || name == "--scale";
}

struct Settings {
  std::vector<std::string> arguments;  // of every `generate`
  json options = json::object();       // the same, with what the command adds
};

Result<Settings> settings_of(const Session& session, const BenchFlags& flags) {
  Settings settings;
  auto add = [&](const std::string& name, const std::string& value) {
    settings.arguments.insert(settings.arguments.end(), {name, value});
    settings.options[name.substr(2)] = value;
  };
  const CommonOptions& common = session.common;
  add("--author", flags.author);
  add("--target", runtime::to_string(chosen_target(TRY(runtime::parse_target(common.target)))));
  add("--dtype", common.dtype);
  if (common.seed) add("--seed", std::to_string(*common.seed));
  if (common.threads > 0) add("--threads", std::to_string(common.threads));
  for (const CLI::Option* option : flags.command->get_options())
    if (option->count() > 0 && decides_results(*option)) add(option->get_name(), option->results().front());
  if (!flags.levels.empty()) settings.options["levels"] = flags.levels;
  if (!flags.ids.empty()) settings.options["ids"] = flags.ids;
  settings.options["problem-minutes"] = flags.batch.each.minutes;
  settings.options["problem-dollars"] = flags.batch.each.dollars;
  // Where things are decides nothing.
  settings.arguments.insert(settings.arguments.end(),
                            {"--store", session.store_file().string(), "--python", session.python()});
  return settings;
}

json environment_json(const Session& session) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return {{"tilepilot", kVersion},
          {"commit", session.environment.commit},
          {"host", host},
          {"processors", std::thread::hardware_concurrency()}};
}

// The batch that this command is about: the newest of the same problems and options, or a new one.
Result<int64_t> find_or_begin(const Session& session, BatchStore& store, const BenchFlags& flags, const ProblemSet& set,
                              const std::string& options) {
  const std::string root = set.root.string(), digest = set.digest();
  if (!flags.begin_new) {
    auto id = TRY(store.find(root, options));
    if (id) {
      auto batch = TRY(store.load(*id));
      if (batch && batch->header.digest == digest) return *id;
      if (batch && batch->finished.empty())
        return make_error(DiagnosticKind::bad_usage, {},
                          fmt::format("the problems of `{}` have changed since batch {} began", root, *id),
                          "begin another batch with `--new`");
    }
  }
  return store.begin({root, digest, options, environment_json(session).dump()}, set.problems);
}

std::string outcome_text(const Outcome& outcome) {
  if (outcome.ending != Ending::verified)
    return fmt::format("{}{}", to_string(outcome.ending), outcome.reason.empty() ? "" : ": " + outcome.reason);
  return fmt::format("verified, {:.2f}x", outcome.record.value("speedup", 0.0));
}

std::string status_text(const Progress& progress) {
  std::string text = fmt::format("{}/{} done, {} verified, {} running", progress.done, progress.total,
                                 progress.verified, progress.running);
  if (progress.dollars > 0) text += fmt::format(", {:.2f} dollars", progress.dollars);
  if (progress.seconds_left > 0) text += fmt::format(", about {:.0f} min left", progress.seconds_left / 60);
  return text;
}

BatchEvents events_of(LiveLines& lines) {
  BatchEvents events;
  events.on_begin = [&lines](const Problem& problem) { lines.set(problem.label(), problem.name); };
  events.on_stage = [&lines](const Problem& problem, const std::string& stage) {
    lines.set(problem.label(), problem.name + "  " + stage);
  };
  events.on_end = [&lines](const Problem& problem, const Outcome& outcome, const Progress& progress) {
    lines.set(problem.label(), "");
    lines.say(
        fmt::format("{} {}: {} ({:.0f} s)", problem.label(), problem.name, outcome_text(outcome), outcome.seconds));
    lines.set_status(status_text(progress));
  };
  return events;
}

// One at a time where the processor is timed; on a GPU others compile meanwhile.
int default_jobs(const std::string& target) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return target == "cpu" ? 1 : std::clamp(cores / 4, 1, 8);
}

Result<Selection> selection_of(const BenchFlags& flags) {
  Selection selection;
  if (!flags.levels.empty()) selection.levels = TRY(parse_ranges(flags.levels));
  if (!flags.ids.empty()) selection.ids = TRY(parse_ranges(flags.ids));
  return selection;
}

Status check_flags(const Session& session, const BenchFlags& flags) {
  TRY(flags.llm.check(session, flags.author));
  if (flags.author != "llm" && flags.problem_dollars->count() > 0)
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`--problem-dollars` has no meaning for the author `{}`", flags.author),
                      "add `--author llm`");
  if (session.common.target.starts_with("emulate"))
    return make_error(DiagnosticKind::bad_usage, {},
                      "a batch looks for what is fastest, and the emulator tells no times",
                      "run it for `cpu` or a GPU");
  if (flags.output.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(flags.output, error);
  if (!std::filesystem::is_directory(flags.output, error))
    return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("`{}` is no folder", flags.output),
                      "give `--output` a folder");
  return {};
}

Result<BatchResult> run_one_batch(Session& session, BenchFlags& flags, int64_t& batch) {
  TRY(check_flags(session, flags));
  const ProblemSet set = TRY(find_problems(flags.problems, TRY(selection_of(flags))));
  const Settings settings = TRY(settings_of(session, flags));
  auto store = TRY(BatchStore::open(session.store_file()));
  batch = TRY(find_or_begin(session, *store, flags, set, settings.options.dump()));
  const auto lock = TRY(lock_batch(session.store_file(), batch));
  auto work = TRY(agent::WorkFolder::make(session.work_folder()));
  if (flags.jobs->count() == 0) flags.batch.jobs = default_jobs(settings.options["target"]);
  if (flags.llm.dollars_given()) flags.batch.dollars = flags.llm.dollars;
  GenerateProcessOptions process{
      session.environment.program, settings.arguments, flags.output, work.path(), flags.author == "llm", {}};
  if (!session.environment.api_key.empty())
    process.environment.push_back("TILEPILOT_API_KEY=" + session.environment.api_key);
  auto runner = generate_processes(std::move(process));
  LiveLines lines(isatty(STDERR_FILENO) != 0, session.common.quiet);
  lines.say(fmt::format("batch {}: {} problems of {}, {} at a time", batch, set.problems.size(), set.root.string(),
                        flags.batch.jobs));
  return run_batch(*store, batch, *runner, flags.batch, events_of(lines));
}

int run_run(Session& session, BenchFlags& flags) {
  int64_t batch = 0;
  session.last_words.set([&] {
    fmt::print(stderr, "interrupted: what is done is kept, and the same command goes on\n");
    session.finish({{"ok", false}, {"interrupted", true}, {"batch", batch}});
    std::fflush(stdout);
  });
  auto result = run_one_batch(session, flags, batch);
  session.last_words.set(nullptr);
  if (!result) return session.fail(result.error());
  const Progress& progress = result->progress;
  const bool complete = result->end == BatchEnd::complete;
  std::string answer = fmt::format("batch {}: {} of {} problems done, {} verified", batch, progress.done,
                                   progress.total, progress.verified);
  if (!complete)
    answer += fmt::format(" ({}{}); the same command goes on", to_string(result->end),
                          result->why.empty() ? "" : ": " + result->why);
  session.answer(answer + fmt::format("\n`tilepilot bench report {}` tells the scores", batch));
  session.finish({{"ok", complete},
                  {"batch", batch},
                  {"end", to_string(result->end)},
                  {"why", result->why},
                  {"total", progress.total},
                  {"done", progress.done},
                  {"verified", progress.verified},
                  {"dollars", progress.dollars}});
  return complete ? kDone : result->end == BatchEnd::halted ? kMissing : kNotVerified;
}

Result<Batch> load(BatchStore& store, int64_t id) {
  auto batch = TRY(store.load(id));
  if (batch) return *std::move(batch);
  return make_error(DiagnosticKind::bad_usage, {},
                    id == 0 ? "there is no batch yet" : fmt::format("there is no batch {}", id),
                    id == 0 ? "`tilepilot bench run` makes one" : "`tilepilot bench list` shows those that there are");
}

// The programs that each problem's run has tried.
Result<std::vector<ProblemPage>> pages_of(const Session& session, const Batch& batch) {
  auto runs = TRY(agent::RunStore::open(session.store_file(), /*read_only*/ true));
  std::vector<ProblemPage> pages;
  for (const BatchProblem& problem : batch.problems) {
    ProblemPage page;
    auto run = problem.outcome.run == 0 ? std::optional<agent::StoredRun>() : TRY(runs->find(problem.outcome.run));
    if (run)
      for (const agent::Attempt& attempt : run->attempts) page.sources.push_back(attempt.candidate.source);
    pages.push_back(std::move(page));
  }
  return pages;
}

Status write_report(const std::string& file, const std::string& text) {
  std::string why;
  if (write_file(file == "-" ? "/dev/stdout" : file, text, &why)) return {};
  return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", file, why));
}

Status tell_report(Session& session, const ReportFlags& flags) {
  auto store = TRY(BatchStore::open(session.store_file(), /*read_only*/ true));
  Report report{TRY(load(*store, flags.batch)), {}};
  if (flags.against != 0) report.against = TRY(load(*store, flags.against));
  if (!flags.csv.empty()) TRY(write_report(flags.csv, report_csv(report)));
  if (!flags.html.empty()) TRY(write_report(flags.html, report_html(report, TRY(pages_of(session, report.batch)))));
  std::string text = report_text(report);
  text.pop_back();
  session.output_is_taken = flags.csv == "-" || flags.html == "-";
  session.answer(text);
  session.finish(report_json(report));
  return {};
}

int run_report(Session& session, const ReportFlags& flags) {
  const Status status = tell_report(session, flags);
  return status ? static_cast<int>(kDone) : session.fail(status.error());
}

int run_list(Session& session) {
  auto store = BatchStore::open(session.store_file(), /*read_only*/ true);
  if (!store) return session.fail(store.error());
  auto batches = (*store)->list();
  if (!batches) return session.fail(batches.error());
  json object = {{"ok", true}, {"batches", json::array()}};
  for (const BatchSummary& batch : *batches) {
    session.answer(fmt::format("{:>4}  {}  {:>3}/{:<3} done  {:>3} verified  {}  {}", batch.id, batch.started,
                               batch.done, batch.total, batch.verified, batch.problems, batch.options));
    object["batches"].push_back({{"batch", batch.id},
                                 {"problem_set", batch.problems},
                                 {"started", batch.started},
                                 {"finished", batch.finished},
                                 {"total", batch.total},
                                 {"done", batch.done},
                                 {"verified", batch.verified}});
  }
  if (batches->empty()) session.answer("no batch yet");
  session.finish(object);
  return kDone;
}

void add_bench_run(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<BenchFlags>();
  auto* command = bench.add_subcommand("run", "Generate programs for a set of problems; the same command goes on");
  flags->command = command;
  command
      ->add_option("--problems", flags->problems,
                   "A checkout of KernelBench, a folder of Python files in its form, or a JSON list")
      ->required();
  command->add_option("--levels", flags->levels, "Levels of the set, as `1,2` (default: all)");
  command->add_option("--ids", flags->ids, "Problems of each level, as `1-20,33` (default: all)");
  command
      ->add_option("--author", flags->author,
                   "Who writes candidates: builtin plans from the op graph, llm asks a language model")
      ->check(CLI::IsMember({"builtin", "llm"}))
      ->capture_default_str();
  flags->jobs = command
                    ->add_option("--jobs", flags->batch.jobs,
                                 "Problems at a time (default: 1 on a processor, a quarter of the cores beside a GPU)")
                    ->check(CLI::Range(1, 256));
  command->add_option("--attempts", flags->attempts, "Most candidates to judge for a problem")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--problem-minutes", flags->batch.each.minutes, "Longest time for a problem's candidates")
      ->check(number_within(0.001, 1e6))
      ->capture_default_str();
  flags->problem_dollars = command
                               ->add_option("--problem-dollars", flags->batch.each.dollars,
                                            "Most money for a problem; `--dollars` is for the whole batch")
                               ->check(number_within(0, 1e9))
                               ->group("Language model")
                               ->capture_default_str();
  command->add_option("--minutes", flags->batch.minutes, "Longest time for this command (default: no limit)")
      ->check(number_within(0.001, 1e6));
  command->add_flag("--shuffle", flags->batch.shuffle,
                    "Problems in random order: what `--minutes` leaves undone is then a random sample");
  command->add_option("--output", flags->output,
                      "Folder for verified programs and their certificates (default: they stay in the database)");
  command->add_flag("--new", flags->begin_new, "Begin another batch, whatever was done before");
  flags->judge.add_to(*command);
  add_scale(*command, session);
  flags->llm.add_to(*command, /*with_replay*/ false);
  command->footer("Example:\n  tilepilot bench run --problems KernelBench --levels 1 --ids 1-20 --scale 1/8");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_run(session, *flags); }; });
}

void add_bench_report(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<ReportFlags>();
  auto* command = bench.add_subcommand("report", "Scores of a batch: fast_p, means, quartiles, what failed and why");
  command->add_option("batch", flags->batch, "Number of the batch (default: the newest)");
  command->add_option("--against", flags->against, "Compare with this earlier batch");
  command->add_option("--csv", flags->csv, "Write a line for each problem to this file (-: standard output)");
  command->add_option("--html", flags->html, "Write one self-contained page to this file");
  command->footer("Example:\n  tilepilot bench report 3 --html report.html");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_report(session, *flags); }; });
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  auto* bench = app.add_subcommand("bench", "Whole problem sets (KernelBench), and what came of them");
  bench->require_subcommand(1);
  add_bench_run(*bench, session);
  add_bench_report(*bench, session);
  auto* list = bench->add_subcommand("list", "Batches in the database");
  list->callback([&session] { session.run = [&session] { return run_list(session); }; });
}

}  // namespace tilepilot::cli
