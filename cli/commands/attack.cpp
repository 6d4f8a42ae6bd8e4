// tilepilot attack: the red team against the judge of this build, or of another.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/red_team.h"
#include "cli/command.h"

namespace tilepilot::cli {
namespace {

using agent::Attack;
using agent::AttackResult;
using agent::Standing;

struct AttackFlags {
  std::string judge, level, only;
  int jobs = 1;
};

bool is_asked_for(const Attack& attack, const AttackFlags& flags) {
  if (!flags.level.empty() && attack.level != flags.level) return false;
  return flags.only.empty() || fnmatch(fmt::format("*{}*", flags.only).c_str(), attack.name.c_str(), 0) == 0;
}

Result<agent::RedTeamOptions> red_team_options(const Session& session, const AttackFlags& flags) {
  agent::RedTeamOptions options;
  options.judge = TRY(session.judge_options());
  if (options.judge.target == "auto") options.judge.target = "cpu";
  if (!flags.judge.empty()) {
    options.judge.worker = std::filesystem::path(flags.judge) / "tilepilot-worker";
    std::error_code ignored;
    if (!std::filesystem::exists(options.judge.worker, ignored))
      return make_error(DiagnosticKind::worker_unavailable, {},
                        fmt::format("there is no judge at `{}`", options.judge.worker.string()),
                        "give the folder that holds `tilepilot-worker`");
  }
  // Enough to catch what is to be caught: the catalogue's models are small.
  options.judge.trials = 4;
  options.judge.timing_samples = 9;
  options.judge.timing_budget_s = 0.3;
  options.judge.time_limit_s = 20;
  options.judge.memory_limit_bytes = int64_t{2} << 30;
  options.catalogue = session.environment.root / "tests/attacks";
  options.exporter = session.exporter_options().script;
  options.many = session.environment.root / "tests/torch/export_models.py";
  options.references = session.environment.cache / "attacks";
  return options;
}

// What speaks against the program.
std::string why_of(const eval::Verdict& verdict) {
  if (!verdict.given_inputs_only) return verdict.detail;
  const auto found = std::find_if(verdict.notes.begin(), verdict.notes.end(), [](const std::string& note) {
    return note.starts_with("verified for these inputs only: ");
  });
  return found == verdict.notes.end() ? verdict.detail : *found;
}

nlohmann::json json_of(const AttackResult& result) {
  return {{"attack", result.attack->name},    {"row", result.attack->row},
          {"level", result.attack->level},    {"standing", agent::to_string(result.standing)},
          {"caught_by", result.caught_by},    {"expected", result.attack->expected},
          {"detail", why_of(result.verdict)}, {"seconds", result.seconds}};
}

std::string row_of(const AttackResult& result) {
  const Attack& attack = *result.attack;
  std::string said = result.standing == Standing::caught ? result.caught_by
                     : result.caught_by.empty()          ? std::string(agent::to_string(result.standing))
                                                : fmt::format("{}: {}", to_string(result.standing), result.caught_by);
  if (!result.mark.empty()) said += fmt::format(" ({})", result.mark);
  std::string row =
      fmt::format("{:<44} {:<4} {:<8} {:<34} {:>6.1f} s", attack.name, attack.row, attack.level, said, result.seconds);
  if (!agent::is_failure(result.standing) || result.standing == Standing::known_escape) return row;
  row += fmt::format("\n    expected {}",
                     attack.honest() ? "to pass" : fmt::format("{}", fmt::join(attack.expected, ", ")));
  const std::string why = why_of(result.verdict);
  return why.empty() ? row : fmt::format("{}; {}", row, why);
}

struct Counts {
  int attacks = 0, caught = 0, escaped = 0, honest = 0, passed = 0, skipped = 0;

  void add(const AttackResult& result) {
    const bool good = !agent::is_failure(result.standing) || result.standing == Standing::mark_outdated;
    if (result.standing == Standing::skipped) {
      ++skipped;
    } else if (result.attack->honest()) {
      ++honest;
      passed += good ? 1 : 0;
    } else {
      ++attacks;
      const bool somehow = !result.caught_by.empty();
      caught += good || somehow ? 1 : 0;
      escaped += good || somehow ? 0 : 1;
    }
  }
  bool is_clean() const { return escaped == 0 && passed == honest; }
};

// Attacks of one model, one after the other, so that they can share a judge; not all, so that others need not wait.
using Part = std::vector<const Attack*>;
std::vector<Part> parts_of(const std::vector<Attack>& attacks) {
  constexpr size_t kAtMost = 8;
  std::vector<Part> parts;
  for (const Attack& attack : attacks) {
    if (parts.empty() || parts.back().size() == kAtMost || parts.back().back()->model != attack.model)
      parts.emplace_back();
    parts.back().push_back(&attack);
  }
  return parts;
}

// Each job has a judge of its own. `tell` hears of one result at a time.
std::vector<AttackResult> run_all(const agent::RedTeamOptions& options, const std::vector<Attack>& asked,
                                  const std::vector<Attack>& catalogue, int jobs,
                                  const std::function<void(const AttackResult&)>& tell) {
  const std::vector<Part> parts = parts_of(asked);
  std::vector<AttackResult> results(asked.size());
  std::atomic<size_t> next = 0;
  std::mutex telling;
  const auto work = [&] {
    agent::RedTeam team(options);
    for (size_t part = next++; part < parts.size(); part = next++) {
      for (const Attack* attack : parts[part]) {
        const auto twin = std::find_if(catalogue.begin(), catalogue.end(),
                                       [&](const Attack& other) { return other.name == attack->twin; });
        AttackResult result = team.run(*attack, twin == catalogue.end() ? nullptr : &*twin);
        const std::lock_guard lock(telling);
        tell(result);
        results[static_cast<size_t>(attack - asked.data())] = std::move(result);
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return results;
}

int run_attack(Session& session, const AttackFlags& flags) {
  auto options = red_team_options(session, flags);
  if (!options) return session.fail(options.error());
  auto catalogue = agent::read_catalogue(options->catalogue);
  if (!catalogue) return session.fail(catalogue.error());
  std::vector<Attack> asked;
  std::copy_if(catalogue->begin(), catalogue->end(), std::back_inserter(asked),
               [&](const Attack& attack) { return is_asked_for(attack, flags); });
  if (asked.empty())
    return session.fail(
        {DiagnosticKind::bad_usage, {}, fmt::format("no attack is called `{}`", flags.only), {}, "leave out `--only`"});
  session.progress("exporting the models");
  if (auto prepared = agent::RedTeam(*options).prepare(asked); !prepared.ok()) return session.fail(prepared.error());
  session.answer(fmt::format("{:<44} {:<4} {:<8} {:<34} {:>8}", "attack", "row", "level", "caught by", "time"));
  Counts counts;
  const auto results = run_all(*options, asked, *catalogue, flags.jobs, [&](const AttackResult& result) {
    counts.add(result);
    session.answer(row_of(result));
  });
  nlohmann::json rows = nlohmann::json::array();
  for (const AttackResult& result : results) rows.push_back(json_of(result));
  session.answer(fmt::format("{} attacks: {} caught, {} escaped; {} honest programs: {} passed; {} skipped",
                             counts.attacks, counts.caught, counts.escaped, counts.honest, counts.passed,
                             counts.skipped));
  session.finish({{"ok", counts.is_clean()},
                  {"attacks", counts.attacks},
                  {"caught", counts.caught},
                  {"escaped", counts.escaped},
                  {"honest", counts.honest},
                  {"passed", counts.passed},
                  {"skipped", counts.skipped},
                  {"results", rows}});
  return counts.is_clean() ? kDone : kNotVerified;
}

}  // namespace

void add_attack(CLI::App& app, Session& session) {
  auto flags = std::make_shared<AttackFlags>();
  auto* command = app.add_subcommand("attack", "Let programs that cheat, and honest ones, try this build's judge");
  command->add_option("--judge", flags->judge, "Build folder with the `tilepilot-worker` to attack (default: this one)")
      ->check(CLI::ExistingDirectory);
  command->add_option("--level", flags->level, "Only attacks of this level: host, tile, foreign")
      ->check(CLI::IsMember({"host", "tile", "foreign"}));
  command->add_option("--only", flags->only, "Only attacks whose names contain this pattern");
  command->add_option("--jobs", flags->jobs, "Attacks at a time; one at a time is timed")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->footer(
      "Example:\n  tilepilot attack --only A1_\nExit code 1: something escaped, or an honest program did not pass.");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_attack(session, *flags); }; });
}

}  // namespace tilepilot::cli
