#include "agent/generate/finalists.h"

#include <algorithm>

namespace tilepilot::agent {
namespace {

constexpr double kEqualRatios = 0.02;  // less than a measurement tells

bool has_interval(const eval::Verdict& verdict) { return verdict.speedup_high > 0; }

// Unknown intervals are points.
double lowest(const eval::Verdict& verdict) { return has_interval(verdict) ? verdict.speedup_low : verdict.speedup(); }
double highest(const eval::Verdict& verdict) {
  return has_interval(verdict) ? verdict.speedup_high : verdict.speedup();
}

bool overlap(const eval::Verdict& one, const eval::Verdict& other) {
  if (!has_interval(one) || !has_interval(other)) return false;
  return lowest(one) <= highest(other) && lowest(other) <= highest(one);
}

// What is right on all inputs stands before what is right on the given ones alone; then the higher ratio wins.
bool better(const eval::Verdict& one, const eval::Verdict& other) {
  if (one.given_inputs_only != other.given_inputs_only) return other.given_inputs_only;
  return one.speedup() > other.speedup();
}

}  // namespace

bool is_verified(const Attempt& attempt) { return attempt.told().outcome == eval::Outcome::verified; }

bool is_right(const eval::Verdict& verdict) {
  return verdict.outcome == eval::Outcome::verified && !verdict.given_inputs_only;
}

std::vector<size_t> choose_finalists(const std::vector<Attempt>& attempts) {
  std::vector<size_t> order;
  for (size_t i = 0; i < attempts.size(); ++i)
    if (is_verified(attempts[i]) && !attempts[i].compared) order.push_back(i);
  auto verdict = [&](size_t i) -> const eval::Verdict& { return attempts[i].verdict; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return better(verdict(a), verdict(b)); });
  std::vector<size_t> finalists;
  for (size_t i : order) {
    const eval::Verdict& leader = verdict(order.front());
    const bool of_its_kind = verdict(i).given_inputs_only == leader.given_inputs_only;
    const bool near = finalists.size() < 2 || highest(verdict(i)) >= lowest(leader);
    if (of_its_kind && near && finalists.size() < kMostFinalists) finalists.push_back(i);
  }
  return finalists;
}

std::optional<Ranking> rank_finalists(const std::vector<Attempt>& attempts, const std::vector<size_t>& finalists) {
  std::vector<size_t> order;
  for (size_t i : finalists)
    if (attempts[i].compared && is_verified(attempts[i])) order.push_back(i);
  if (order.empty()) return std::nullopt;
  auto verdict = [&](size_t i) -> const eval::Verdict& { return *attempts[i].compared; };
  auto is_better = [&](size_t a, size_t b) { return better(verdict(a), verdict(b)); };
  const size_t leader = *std::min_element(order.begin(), order.end(), is_better);
  Ranking ranking{leader, {}};
  auto ties_with = [&](size_t i, size_t other) {
    return verdict(i).given_inputs_only == verdict(other).given_inputs_only && overlap(verdict(i), verdict(other));
  };
  const double enough = (1 - kEqualRatios) * verdict(leader).speedup();
  for (size_t i : order)
    if (i < ranking.best && ties_with(i, leader) && verdict(i).speedup() >= enough) ranking.best = i;
  for (size_t i : order)
    if (i != ranking.best && ties_with(i, ranking.best)) ranking.indistinguishable.push_back(i);
  std::sort(ranking.indistinguishable.begin(), ranking.indistinguishable.end());
  return ranking;
}

std::optional<size_t> best_of(const std::vector<Attempt>& attempts) {
  std::optional<size_t> best;
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (!is_verified(attempts[i])) continue;
    if (!best || better(attempts[i].told(), attempts[*best].told())) best = i;
  }
  return best;
}

}  // namespace tilepilot::agent
