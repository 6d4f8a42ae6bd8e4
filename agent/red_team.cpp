#include "agent/red_team.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "agent/work_folder.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/sha256.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using eval::Outcome;
using eval::Verdict;

// A timed attack that only hopes to skip work has gained nothing if it is less than this faster than its twin.
constexpr double kGain = 2;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string file_text(const fs::path& path) {
  std::string text;
  read_file(path, text);
  return text;
}

bool escapes(const AttackResult& result) {
  return result.verdict.outcome == Outcome::verified && result.caught_by.empty();
}

// The exported model changes when one of these does.
fs::path export_key(const RedTeamOptions& options, const Attack& attack) {
  runtime::Sha256 key;
  std::set<fs::path> sources = {options.exporter};
  std::error_code error;
  for (auto& entry : fs::directory_iterator(options.exporter.parent_path() / "tilepilot_export", error))
    if (entry.path().extension() == ".py") sources.insert(entry.path());
  for (const fs::path& source : sources) key.add_field(file_text(source));
  key.add_field(attack.model).add_field(attack.dtype);
  key.add_field(file_text(options.catalogue / "models" / (attack.model + ".py")));
  return key.hex().substr(0, 16);
}

// Held by one of several processes that export into the same folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& file) : descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    flock(descriptor_, LOCK_EX);
  }
  ~FolderLock() { close(descriptor_); }
  FolderLock(const FolderLock&) = delete;

 private:
  int descriptor_;
};

bool expects(const Attack& attack, std::string_view what) {
  return std::find(attack.expected.begin(), attack.expected.end(), what) != attack.expected.end();
}

Standing standing_of(const AttackResult& result) {
  const Attack& attack = *result.attack;
  const Verdict& verdict = result.verdict;
  const std::string& caught = result.caught_by;
  const bool right = attack.honest() ? verdict.outcome == Outcome::verified && caught.empty() : expects(attack, caught);
  const bool sometimes = result.mark != attack.escapes || result.mark.rfind("sometimes", 0) == 0;
  if (!result.mark.empty() && !right) return Standing::known_escape;
  if (!result.mark.empty() && !sometimes) return Standing::mark_outdated;
  if (attack.honest()) return right ? Standing::passed : Standing::false_alarm;
  if (right) return Standing::caught;
  return caught.empty() ? Standing::escaped : Standing::caught_somehow;
}

}  // namespace

std::string_view to_string(Standing standing) {
  switch (standing) {
    case Standing::caught:
      return "caught";
    case Standing::caught_somehow:
      return "caught for another reason";
    case Standing::escaped:
      return "escaped";
    case Standing::known_escape:
      return "known to escape";
    case Standing::mark_outdated:
      return "marked as escaping, but does not";
    case Standing::passed:
      return "passed";
    case Standing::false_alarm:
      return "false alarm";
    case Standing::skipped:
      return "skipped";
  }
  return "";
}

bool is_failure(Standing standing) {
  return standing != Standing::caught && standing != Standing::passed && standing != Standing::skipped;
}

std::string caught_by(const Verdict& verdict, const Verdict* twin) {
  if (verdict.outcome == Outcome::worker_failed) return "";
  if (verdict.outcome == Outcome::rejected && !verdict.guard.empty()) return verdict.guard;
  if (verdict.outcome != Outcome::verified) return std::string(eval::to_string(verdict.outcome));
  if (verdict.degenerate) return "degenerate";
  if (verdict.given_inputs_only) return "given_inputs_only";
  const bool timed = twin && twin->candidate && verdict.candidate;
  if (timed && verdict.speedup() < kGain * twin->speedup()) return "no_gain";
  return "";
}

Status RedTeam::prepare(const std::vector<Attack>& attacks) {
  std::error_code error;
  fs::create_directories(options_.references, error);
  FolderLock lock(options_.references / ".lock");
  WorkFolder work = TRY(WorkFolder::make(options_.references / "work"));
  std::vector<std::string> command = {options_.judge.python, options_.many.string(), options_.exporter.string()};
  std::set<fs::path> missing;
  for (const Attack& attack : attacks) {
    const fs::path folder = reference_of(attack);
    if (fs::exists(folder) || !missing.insert(folder).second) continue;
    const fs::path model = options_.catalogue / "models" / (attack.model + ".py");
    command.insert(command.end(), {model.string(), attack.dtype.empty() ? "model" : attack.dtype,
                                   (work.path() / folder.filename()).string()});
  }
  if (missing.empty()) return {};
  auto ran = TRY(runtime::run_process(command, {.time_limit_s = 600, .working_directory = {}}));
  if (ran.exit_code != 0) {
    Error failure = make_error(DiagnosticKind::not_installed, {}, "the models of the attacks cannot be exported",
                               "run `scripts/setup`");
    failure->note({}, ran.err.substr(ran.err.size() > 400 ? ran.err.size() - 400 : 0));
    return failure;
  }
  for (const fs::path& folder : missing) fs::rename(work.path() / folder.filename() / "reference", folder, error);
  return {};
}

fs::path RedTeam::reference_of(const Attack& attack) const {
  return options_.references / export_key(options_, attack);
}

eval::JudgeOptions RedTeam::judge_options(const Attack& attack) const {
  eval::JudgeOptions options = options_.judge;
  if (!attack.dtype.empty()) options.dtype = attack.dtype;
  if (!attack.aten.empty()) options.aten = attack.aten;
  if (attack.level == "foreign" && options.target == "cpu") options.target = "emulate:sm_90a";
  if (attack.time_limit_s > 0) options.time_limit_s = attack.time_limit_s;
  if (attack.memory_gib > 0) options.memory_limit_bytes = static_cast<int64_t>(attack.memory_gib * (1 << 30));
  return options;
}

Result<eval::Judge*> RedTeam::judge_of(const Attack& attack) {
  const eval::JudgeOptions options = judge_options(attack);
  const std::string key = fmt::format("{} {} {} {} {} {}", attack.model, options.dtype, options.aten, options.target,
                                      options.time_limit_s, options.memory_limit_bytes);
  if (judge_ && judge_key_ == key) return judge_.get();
  judge_.reset();
  judge_ = TRY(eval::open_judge(reference_of(attack), options));
  judge_key_ = key;
  return judge_.get();
}

Verdict RedTeam::check(const Attack& attack) {
  auto judge = judge_of(attack);
  if (judge.ok()) return (*judge)->check({.source = attack.source, .name = attack.name + ".py", .time = attack.timed});
  Verdict verdict;
  verdict.detail = judge.error().message;
  return verdict;
}

AttackResult RedTeam::run(const Attack& attack, const Attack* twin) {
  AttackResult result;
  result.attack = &attack;
  if (!attack.target.empty() && options_.judge.target.rfind(attack.target, 0) != 0) return result;
  const double begin = seconds_now();
  const bool beside_twin = attack.timed && twin && twin->timed;
  // A lucky time on a busy machine is no gain: what gains does so each time.
  constexpr int kMeasurements = 3;
  for (int i = 0; i == 0 || (beside_twin && i < kMeasurements && escapes(result)); ++i) {
    if (beside_twin && (i > 0 || !twins_.contains(twin->name))) twins_.insert_or_assign(twin->name, check(*twin));
    result.verdict = check(attack);
    result.caught_by = caught_by(result.verdict, beside_twin ? &twins_.at(twin->name) : nullptr);
  }
  if (escapes(result) && expects(attack, "harmless")) result.caught_by = "harmless";
  const bool on_gpu = options_.judge.target.rfind("cuda", 0) == 0;
  result.mark = on_gpu && !attack.escapes_on_gpu.empty() ? attack.escapes_on_gpu : attack.escapes;
  result.standing = standing_of(result);
  result.seconds = seconds_now() - begin;
  if (attack.honest() && attack.timed) twins_.emplace(attack.name, result.verdict);
  return result;
}

}  // namespace tilepilot::agent
