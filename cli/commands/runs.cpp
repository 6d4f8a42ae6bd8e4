// tilepilot runs: what earlier runs of `generate` left in the database, and how to get a program out of it.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "agent/store/run_store.h"
#include "cli/command.h"
#include "cli/verdict_text.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct RunsFlags {
  int64_t run = 0;
  int attempt = 0;  // from 1; 0: the best
  int count = 20;
  std::string output;
};

// A store that can be read but not written serves as well.
Result<std::unique_ptr<agent::RunStore>> open_runs(const Session& session) {
  auto store = agent::RunStore::open(session.store_file());
  if (store || store.error().kind != DiagnosticKind::store_unusable) return store;
  auto as_it_is = agent::RunStore::open(session.store_file(), /*read_only*/ true);
  return as_it_is ? std::move(as_it_is) : std::move(store);
}

std::string ending_of(const agent::RunSummary& run) { return run.finished.empty() ? "did not end" : run.ending; }

json to_json(const agent::RunSummary& run) {
  return {{"run", run.id},           {"model", run.model},       {"author", run.author},
          {"started", run.started},  {"finished", run.finished}, {"ending", ending_of(run)},
          {"attempts", run.attempts}};
}

int list_runs(Session& session, const RunsFlags& options) {
  auto store = open_runs(session);
  if (!store) return session.fail(store.error());
  auto runs = (*store)->list(options.count);
  if (!runs) return session.fail(runs.error());
  json object = {{"ok", true}, {"runs", json::array()}};
  for (const agent::RunSummary& run : *runs) {
    session.answer(fmt::format("{:>4}  {}  {:<8}  {:>2} attempts  {:<20}  {}", run.id, run.started, run.author,
                               run.attempts, ending_of(run), run.model));
    object["runs"].push_back(to_json(run));
  }
  if (runs->empty()) session.answer("no run yet");
  session.finish(object);
  return kDone;
}

Result<agent::StoredRun> find_run(const Session& session, int64_t id) {
  auto store = TRY(open_runs(session));
  auto run = TRY(store->find(id));
  if (!run) return make_error(session.no_run(id));
  return std::move(*run);
}

std::string attempt_text(const agent::StoredRun& run, size_t number) {
  const agent::Attempt& attempt = run.attempts[number];
  std::string text = fmt::format("{} attempt {}: {}\n    {}", run.best == number ? "*" : " ", number + 1,
                                 attempt.candidate.summary, one_line(attempt.verdict));
  if (attempt.compared) text += "\n    beside the others: " + one_line(*attempt.compared);
  return text;
}

int show_run(Session& session, const RunsFlags& options) {
  auto run = find_run(session, options.run);
  if (!run) return session.fail(run.error());
  json object = to_json(run->summary);
  object.update({{"ok", true}, {"options", json::parse(run->options, nullptr, false)}, {"attempts", json::array()}});
  session.answer(fmt::format("run {}: {}, author {}, {} ({})", run->summary.id, run->summary.model, run->summary.author,
                             run->summary.started, ending_of(run->summary)));
  for (size_t number = 0; number < run->attempts.size(); ++number) {
    const agent::Attempt& attempt = run->attempts[number];
    session.answer(attempt_text(*run, number));
    json one = {{"summary", attempt.candidate.summary},
                {"verdict", verdict_json(attempt.verdict, attempt.candidate.source)}};
    if (attempt.compared) one["compared"] = verdict_json(*attempt.compared, attempt.candidate.source);
    object["attempts"].push_back(std::move(one));
  }
  if (run->best) object["best_attempt"] = *run->best;
  session.finish(object);
  return kDone;
}

// The attempt that was asked for, else the best. Errors: there is none.
Result<size_t> chosen_attempt(const agent::StoredRun& run, int number) {
  if (number > 0 && static_cast<size_t>(number) <= run.attempts.size()) return static_cast<size_t>(number) - 1;
  if (number > 0)
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("run {} has {} attempts, not {}", run.summary.id, run.attempts.size(), number));
  if (run.best) return *run.best;
  return make_error(DiagnosticKind::bad_usage, {}, fmt::format("run {} has no verified program", run.summary.id),
                    "`--attempt N` saves one that is not");
}

int save_run(Session& session, const RunsFlags& options) {
  auto run = find_run(session, options.run);
  if (!run) return session.fail(run.error());
  auto number = chosen_attempt(*run, options.attempt);
  if (!number) return session.fail(number.error());
  const agent::Attempt& attempt = run->attempts[*number];
  if (const Status written = session.write_output(options.output, attempt.candidate.source); !written)
    return session.fail(written.error());
  session.answer(fmt::format("{}: attempt {} of run {}, {}", options.output, *number + 1, run->summary.id,
                             one_line(attempt.told())));
  session.finish({{"ok", true},
                  {"run", run->summary.id},
                  {"attempt", *number},
                  {"output", options.output},
                  {"verdict", verdict_json(attempt.told(), attempt.candidate.source)}});
  return kDone;
}

}  // namespace

void add_runs(CLI::App& app, Session& session) {
  auto options = std::make_shared<RunsFlags>();
  auto* command = app.add_subcommand("runs", "Earlier runs of generate: list, show, save");
  command->require_subcommand(1);
  auto add = [&](const char* name, const char* help, int (*action)(Session&, const RunsFlags&)) {
    auto* sub = command->add_subcommand(name, help);
    sub->callback([&session, options, action] {
      session.run = [&session, options, action] { return action(session, *options); };
    });
    return sub;
  };
  add("list", "The newest runs, a line each", list_runs)
      ->add_option("-n,--count", options->count, "Most runs to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add("show", "The attempts of one run and their verdicts", show_run)
      ->add_option("run", options->run, "Number of the run")
      ->required();
  auto* save = add("save", "Write a program that a run has kept to a file", save_run);
  save->add_option("run", options->run, "Number of the run")->required();
  save->add_option("-o,--output", options->output, "Where the program goes")->type_name("FILE")->required();
  save->add_option("--attempt", options->attempt, "Which attempt (default: the best)")->check(CLI::PositiveNumber);
  command->footer("Example:\n  tilepilot runs save 12 -o fast.py");
}

}  // namespace tilepilot::cli
