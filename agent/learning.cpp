#include "agent/learning.h"

#include <algorithm>
#include <sstream>

#include "retrieval/patterns.h"

namespace tilepilot::agent {
namespace {

constexpr size_t kMostChanged = 60;   // lines; more of them say nothing about one failure
constexpr size_t kMostLines = 2'000;  // of a program that is compared

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

// Lengths of the longest common subsequences of all ends of both.
class CommonLines {
 public:
  CommonLines(const std::vector<std::string>& before, const std::vector<std::string>& after)
      : columns_(after.size() + 1), lengths_((before.size() + 1) * columns_) {
    for (size_t i = before.size(); i-- > 0;)
      for (size_t j = after.size(); j-- > 0;)
        cell(i, j) = before[i] == after[j] ? cell(i + 1, j + 1) + 1 : std::max(cell(i + 1, j), cell(i, j + 1));
  }
  uint16_t& cell(size_t i, size_t j) { return lengths_[i * columns_ + j]; }

 private:
  size_t columns_;
  std::vector<uint16_t> lengths_;
};

std::string line_at(const std::string& source, int line) {
  const auto lines = lines_of(source);
  if (line < 1 || static_cast<size_t>(line) > lines.size()) return {};
  const std::string& text = lines[static_cast<size_t>(line) - 1];
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? std::string() : text.substr(begin);
}

std::string message_of(const eval::Verdict& verdict) {
  return verdict.diagnostics.empty() ? verdict.detail : verdict.diagnostics.front().message;
}

bool is_failure(const eval::Verdict& verdict) {
  return verdict.outcome != eval::Outcome::verified && verdict.outcome != eval::Outcome::worker_failed;
}

bool is_verified(const eval::Verdict& verdict) {
  return verdict.outcome == eval::Outcome::verified && !verdict.degenerate && !verdict.given_inputs_only;
}

// Times were measured, and the intervals of both lie apart.
bool is_faster(const eval::Verdict& after, const eval::Verdict& before) {
  return before.candidate && after.candidate && before.speedup_high > 0 && after.speedup_low > before.speedup_high;
}

}  // namespace

std::string line_changes(const std::string& before, const std::string& after, size_t most_lines) {
  const auto old_lines = lines_of(before), new_lines = lines_of(after);
  if (old_lines.size() > kMostLines || new_lines.size() > kMostLines) return {};
  CommonLines common(old_lines, new_lines);
  std::string text;
  size_t changed = 0, i = 0, j = 0;
  auto put = [&](const char* mark, const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    text += mark + line + "\n";
    ++changed;
  };
  while (i < old_lines.size() || j < new_lines.size()) {
    if (i < old_lines.size() && j < new_lines.size() && old_lines[i] == new_lines[j]) {
      ++i, ++j;
    } else if (i < old_lines.size() && (j == new_lines.size() || common.cell(i + 1, j) >= common.cell(i, j + 1))) {
      put("- ", old_lines[i++]);
    } else {
      put("+ ", new_lines[j++]);
    }
  }
  return changed > most_lines ? std::string() : text;
}

std::string failure_kind(const eval::Verdict& verdict) {
  if (!verdict.diagnostics.empty()) return std::string(info(verdict.diagnostics.front().kind).name);
  return verdict.guard.empty() ? std::string(eval::to_string(verdict.outcome)) : verdict.guard;
}

Learnt learn(const std::vector<Attempt>& attempts, const LearnFacts& facts) {
  Learnt learnt;
  const auto patterns = retrieval::patterns_of(facts.structure);
  const std::string graph = retrieval::graph_fingerprint(facts.structure);
  for (size_t at = 0; at < attempts.size(); ++at) {
    const int parent = facts.parents.empty() ? static_cast<int>(at) - 1 : facts.parents[at];
    if (parent < 0 || static_cast<size_t>(parent) >= attempts.size() || !is_verified(attempts[at].told())) continue;
    const Attempt &before = attempts[static_cast<size_t>(parent)], &after = attempts[at];
    const eval::Verdict &was = before.told(), &is = after.told();
    const bool fixed = is_failure(was), faster = is_verified(was) && is_faster(is, was);
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
