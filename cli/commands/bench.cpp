// tilepilot bench run|report|list: whole problem sets, and what came of them. Its other commands are in files of their
// own (cli/flags/bench_flags.h).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/export_server.h"
#include "agent/store/run_store.h"
#include "agent/store/transcript.h"
#include "agent/work_folder.h"
#include "cli/flags/bench_flags.h"
#include "cli/live_lines.h"
#include "cli/store_warning.h"
#include "compiler/runtime/cuda/visible_gpus.h"
#include "compiler/runtime/machine.h"
#include "kernelbench/batch_hold.h"
#include "kernelbench/generate_process.h"
#include "kernelbench/report.h"

namespace tilepilot::cli {
namespace {

using namespace kernelbench;
using nlohmann::json;

struct ReportFlags {
  int64_t batch = 0, against = 0;
  std::string csv, html;
};

json environment_json(const Session& session) {
  return {{"tilepilot", kVersion},
          {"commit", session.environment.commit},
          {"host", runtime::host_name()},
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

// One at a time where the processor is timed; beside GPUs others compile meanwhile.
int default_jobs(const std::string& target, size_t gpus) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return target == "cpu" ? 1 : std::clamp(cores / 4, 1, 8 * std::max<int>(1, static_cast<int>(gpus)));
}

// Those that a batch uses, if there are several: alike, so that it does not matter which one a problem gets.
std::vector<std::string> gpus_of(const std::string& target, int most, LiveLines& lines) {
  if (target == "cpu") return {};
  const auto visible = runtime::cuda::visible_gpus();
  if (visible.size() < 2) return {};
  std::vector<std::string> ids;
  for (const auto& gpu : visible)
    if (gpu.name == visible[0].name) ids.push_back(gpu.id);
  if (const size_t others = visible.size() - ids.size(); others > 0)
    lines.say(fmt::format("{} GPU{} no {}: not used", others, others == 1 ? " is" : "s are", visible[0].name));
  if (most > 0 && ids.size() > static_cast<size_t>(most)) ids.resize(static_cast<size_t>(most));
  return ids;
}

Result<BatchResult> run_one_batch(Session& session, BenchFlags& flags, int64_t& batch) {
  TRY(check_flags(session, flags));
  if (!flags.share.empty()) flags.batch.share = TRY(parse_share(flags.share));
  const ProblemSet set = TRY(find_problems(flags.problems, TRY(selection_of(flags))));
  const Settings settings = TRY(settings_of(session, flags));
  warn_of_shared_store(session);
  auto store = TRY(BatchStore::open(session.store_file()));
  batch = TRY(find_or_begin(session, *store, flags, set, settings.options.dump()));
  const auto hold = TRY(
      BatchHold::take(session.store_file(), batch, [&session](const std::string& line) { session.progress(line); }));
  flags.batch.still_ours = [&hold] { return !hold->lost(); };
  auto work = TRY(agent::WorkFolder::make(session.work_folder()));
  if (flags.llm.dollars_given()) flags.batch.dollars = flags.llm.dollars;
  GenerateProcessOptions process{
      session.environment.program, settings.arguments, flags.output, work.path(), flags.author != "builtin", {}, {}};
  if (!session.environment.api_key.empty())
    process.environment.push_back("TILEPILOT_API_KEY=" + session.environment.api_key);
  agent::ExportServer exports(session.python(), session.exporter_options().script);
  process.environment.push_back(exports.variable());
  LiveLines lines(isatty(STDERR_FILENO) != 0, session.common.quiet);
  process.gpus = gpus_of(settings.options["target"], flags.gpus, lines);
  if (flags.jobs->count() == 0) flags.batch.jobs = default_jobs(settings.options["target"], process.gpus.size());
  lines.say(fmt::format("batch {}: {} problems of {}{}, {} at a time{}", batch, set.problems.size(), set.root.string(),
                        flags.share.empty() ? "" : ", share " + flags.share, flags.batch.jobs,
                        process.gpus.size() > 1 ? fmt::format(" on {} GPUs", process.gpus.size()) : ""));
  auto runner = generate_processes(std::move(process));
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
  std::string answer = fmt::format("batch {}{}: {} of {} problems done, {} verified", batch,
                                   flags.share.empty() ? "" : ", share " + flags.share, progress.done, progress.total,
                                   progress.verified);
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

// The programs that each problem's run has tried, and what was said to a language model meanwhile.
Result<std::vector<ProblemPage>> pages_of(const Session& session, const Batch& batch) {
  auto runs = TRY(agent::RunStore::open(session.store_file(), /*read_only*/ true));
  std::vector<ProblemPage> pages;
  for (const BatchProblem& problem : batch.problems) {
    ProblemPage page;
    auto transcript = problem.outcome.run == 0 ? std::optional<agent::Transcript>()
                                               : TRY(agent::load_transcript(*runs, problem.outcome.run));
    if (transcript) {
      for (const agent::Attempt& attempt : transcript->run.attempts) page.sources.push_back(attempt.candidate.source);
      for (const agent::Exchange& exchange : transcript->exchanges) {
        const auto messages = agent::messages_in(exchange.request);
        page.talks.push_back({exchange.attempt, messages.empty() ? "" : messages.back().content,
                              exchange.failure.empty() ? agent::reply_text(*transcript, exchange) : exchange.failure});
      }
    }
    pages.push_back(std::move(page));
  }
  return pages;
}

Status tell_report(Session& session, const ReportFlags& flags) {
  auto store = TRY(BatchStore::open(session.store_file(), /*read_only*/ true));
  Report report{TRY(load(*store, flags.batch)), {}};
  if (flags.against != 0) report.against = TRY(load(*store, flags.against));
  if (!flags.csv.empty()) TRY(session.write_output(flags.csv, report_csv(report)));
  if (!flags.html.empty())
    TRY(session.write_output(flags.html, report_html(report, TRY(pages_of(session, report.batch)))));
  std::string text = report_text(report);
  text.pop_back();
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
  add_batch_options(*command, session, *flags);
  command->add_flag("--new", flags->begin_new, "Begin another batch, whatever was done before");
  command->add_option(
      "--shard", flags->share,
      "Work on one share of the problems, as `2/8`; each in a database of its own (see `bench submit`)");
  command
      ->add_option("--gpus", flags->gpus, "Most GPUs to use, of those like the first (default: all that are visible)")
      ->check(CLI::Range(1, 64));
  command->footer("Example:\n  tilepilot bench run --problems KernelBench --levels 1 --ids 1-20 --scale 1/8");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_run(session, *flags); }; });
}

void add_bench_report(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<ReportFlags>();
  auto* command = bench.add_subcommand("report", "Scores of a batch: fast_p, means, quartiles, what failed and why");
  command->add_option("batch", flags->batch, "Number of the batch (default: the newest)");
  command->add_option("--against", flags->against, "Compare with this earlier batch");
  command->add_option("--csv", flags->csv, "Write a line for each problem to this file (-: standard output)")
      ->type_name("FILE");
  command->add_option("--html", flags->html, "Write one self-contained page to this file")->type_name("FILE");
  command->footer("Example:\n  tilepilot bench report 3 --html report.html");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_report(session, *flags); }; });
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  auto* bench = app.add_subcommand("bench", "Whole problem sets (KernelBench), and what came of them");
  bench->require_subcommand(1);
  add_bench_run(*bench, session);
  add_bench_report(*bench, session);
  add_bench_merge(*bench, session);
  add_bench_submit(*bench, session);
  auto* list = bench->add_subcommand("list", "Batches in the database");
  list->callback([&session] { session.run = [&session] { return run_list(session); }; });
}

}  // namespace tilepilot::cli
