// The red team: a catalogue of candidates that cheat, and of honest programs that look like them, as files; and what a
// judge makes of each. An attack names what must catch it: to be caught by accident does not count.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "eval/judge.h"

namespace tilepilot::agent {

// One file of the catalogue. Its head is comments "# key: value": row, level (host, tile, foreign), model, expect,
// twin, and where needed timed, target, dtype, aten, time_limit, memory, escapes.
struct Attack {
  std::string name;    // of the file, without ".py"
  std::string row;     // of the catalogue: "A1"; empty: an honest program
  std::string level;   // what cheats: the host program, the tile program, foreign source
  std::string model;   // a file of the folder `models`
  std::string source;  // the whole file
  // What may catch it, in the words of caught_by(). Or "harmless": the cheat comes to nothing, and what remains is
  // right.
  std::vector<std::string> expected;
  std::string twin;  // the honest program that does the same without the cheat
  std::string
      escapes;  // known not to be caught for its reason (or, if honest, not to pass), always or "sometimes", and why
  std::string escapes_on_gpu;  // the same, sometimes, on a GPU
  bool timed = false;
  std::string target, dtype, aten;  // where it works only with these
  double time_limit_s = 0;          // 0: the judge's own
  double memory_gib = 0;            // the same

  bool honest() const { return row.empty(); }
};

// All files of the folder, by model and name. Errors: a file without the keys it needs, a twin that is none.
Result<std::vector<Attack>> read_catalogue(const std::filesystem::path& folder);

enum class Standing {
  caught,          // for the reason it names
  caught_somehow,  // for another
  escaped,
  known_escape,   // marked
  mark_outdated,  // marked, and caught or passed
  passed,         // an honest program
  false_alarm,    // an honest program that did not pass
  skipped,        // not for this target
};
std::string_view to_string(Standing standing);
// What the command and the tests must not see.
bool is_failure(Standing standing);

struct AttackResult {
  const Attack* attack = nullptr;
  Standing standing = Standing::skipped;
  std::string caught_by;
  std::string mark;  // why it is known to escape, where it was judged
  eval::Verdict verdict;
  double seconds = 0;
};

// The guard's name for a rejected program, the outcome's for one that is not verified. For verified ones "degenerate"
// or "given_inputs_only" if the verdict says so, "no_gain" if it was timed and is no faster than `twin` (may be null),
// else nothing: such a program got what it wanted. Nothing for `worker_failed`, too: then the attack hit the judge.
std::string caught_by(const eval::Verdict& verdict, const eval::Verdict* twin);

struct RedTeamOptions {
  eval::JudgeOptions judge;
  std::filesystem::path catalogue;   // tests/attacks
  std::filesystem::path exporter;    // scripts/export_reference.py
  std::filesystem::path many;        // tests/torch/export_models.py
  std::filesystem::path references;  // where exported models are kept
};

// Keeps one judge open, that of the last attack: ask for attacks of one model one after the other.
class RedTeam {
 public:
  explicit RedTeam(RedTeamOptions options) : options_(std::move(options)) {}

  // Exports what these attacks need and is not there yet, in one process. Errors: the exporter's.
  Status prepare(const std::vector<Attack>& attacks);
  // `twin`: that of the attack, or null.
  AttackResult run(const Attack& attack, const Attack* twin);

 private:
  std::filesystem::path reference_of(const Attack& attack) const;
  eval::JudgeOptions judge_options(const Attack& attack) const;
  Result<eval::Judge*> judge_of(const Attack& attack);
  eval::Verdict check(const Attack& attack);

  RedTeamOptions options_;
  std::string judge_key_;
  std::unique_ptr<eval::Judge> judge_;
  std::map<std::string, eval::Verdict> twins_;  // timed ones, by name
};

}  // namespace tilepilot::agent
