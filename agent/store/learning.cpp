#include "agent/store/learning.h"

#include <fmt/ranges.h>

#include "agent/generate/finalists.h"
#include "agent/store/line_diff.h"
#include "retrieval/patterns.h"

namespace tilepilot::agent {
namespace {

constexpr size_t kMostChanged = 60;   // lines; more of them say nothing about one failure
constexpr size_t kMostLines = 2'000;  // of a program that is compared

std::string line_at(const std::string& source, int line) {
  const auto lines = lines_of(source);
  if (line < 1 || static_cast<size_t>(line) > lines.size()) return {};
  const std::string_view text = lines[static_cast<size_t>(line) - 1];
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin));
}

std::string message_of(const eval::Verdict& verdict) {
  if (!verdict.diagnostics.empty()) return verdict.diagnostics.front().message;
  return verdict.given_inputs_only ? fmt::format("{}", fmt::join(verdict.notes, "; ")) : verdict.detail;
}

bool is_failure(const eval::Verdict& verdict) {
  return !is_right(verdict) && verdict.outcome != eval::Outcome::worker_failed;
}

// Times were measured, and the intervals of both lie apart.
bool is_faster(const eval::Verdict& after, const eval::Verdict& before) {
  return before.candidate && after.candidate && before.speedup_high > 0 && after.speedup_low > before.speedup_high;
}

}  // namespace

std::string line_changes(const std::string& before, const std::string& after, size_t most_lines) {
  if (lines_of(before).size() > kMostLines || lines_of(after).size() > kMostLines) return {};
  std::string text;
  size_t changed = 0;
  for (const DiffLine& line : diff_lines(before, after)) {
    if (line.kind == DiffLine::Kind::same || line.text.find_first_not_of(" \t\r") == std::string::npos) continue;
    text += (line.kind == DiffLine::Kind::removed ? "- " : "+ ") + line.text + "\n";
    ++changed;
  }
  return changed > most_lines ? std::string() : text;
}

bool teaches(const eval::Verdict& verdict) { return is_right(verdict) && !verdict.degenerate; }

std::string failure_kind(const eval::Verdict& verdict) {
  if (verdict.given_inputs_only) return "given_inputs_only";
  if (!verdict.diagnostics.empty()) return std::string(info(verdict.diagnostics.front().kind).name);
  return verdict.guard.empty() ? std::string(eval::to_string(verdict.outcome)) : verdict.guard;
}

retrieval::FixQuery fix_query(const Attempt& attempt) {
  const eval::Verdict& verdict = attempt.verdict;
  return {.kind = failure_kind(verdict),
          .message = message_of(verdict),
          .line = line_at(attempt.candidate.source, verdict.line)};
}

Learnt learn(const std::vector<Attempt>& attempts, const LearnFacts& facts) {
  Learnt learnt;
  const auto patterns = retrieval::patterns_of(facts.structure);
  const std::string graph = retrieval::graph_fingerprint(facts.structure);
  for (size_t at = 0; at < attempts.size(); ++at) {
    const auto& changes = attempts[at].candidate.changes;
    if (!changes || *changes >= at || !teaches(attempts[at].told())) continue;
    const Attempt &before = attempts[*changes], &after = attempts[at];
    const eval::Verdict &was = before.told(), &is = after.told();
    const bool fixed = is_failure(was), faster = teaches(was) && is_faster(is, was);
    if (!fixed && !faster) continue;
    const std::string change = line_changes(before.candidate.source, after.candidate.source, kMostChanged);
    if (change.empty()) continue;
    const retrieval::LearntFrom from{is.target, graph, facts.run, static_cast<int>(at)};
    if (fixed)
      learnt.fixes.push_back(
          {failure_kind(was), message_of(was), line_at(before.candidate.source, was.line), change, from, 1});
    else
      learnt.lessons.push_back({after.candidate.summary,
                                change,
                                {patterns.begin(), patterns.end()},
                                was.candidate->median_us,
                                is.candidate->median_us,
                                is.speedup_low / was.speedup_high,
                                from});
  }
  return learnt;
}

Status remember(retrieval::Lessons& memory, const Learnt& learnt) {
  for (const retrieval::Fix& fix : learnt.fixes) TRY(memory.remember(fix));
  for (const retrieval::Lesson& lesson : learnt.lessons) TRY(memory.remember(lesson));
  return {};
}

}  // namespace tilepilot::agent
