#include "agent/generate/finalists.h"

#include <algorithm>

namespace tilepilot::agent {
namespace {

// What is right on all inputs stands before what is right on the given ones alone; then the higher ratio wins.
bool better(const eval::Verdict& one, const eval::Verdict& other) {
  if (one.given_inputs_only != other.given_inputs_only) return other.given_inputs_only;
  return one.speedup() > other.speedup();
}

// By their ratio in the session's rounds; `place` is the other's among the finalists.
Relation relation_in_session(const eval::Verdict& one, const eval::Verdict& other, size_t place) {
  for (const eval::PairedRatio& each : one.paired)
    if (each.other == place) return relation_of(each);
  return relation_of(one, other);
}

}  // namespace

std::vector<size_t> choose_finalists(const std::vector<Attempt>& attempts) {
  const auto speeds = relative_speeds(attempts);
  const auto best = best_of(attempts);
  const auto kind = [&](size_t i) { return attempts[i].verdict.given_inputs_only; };
  const auto stands_before = [&](size_t a, size_t b) {
    if (kind(a) != kind(b)) return kind(b);
    if (best == a || best == b) return best == a;
    return speeds[a].speed > speeds[b].speed;
  };
  std::vector<size_t> order;
  for (size_t i = 0; i < attempts.size(); ++i)
    if (is_verified(attempts[i]) && !attempts[i].compared) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), stands_before);
  std::vector<size_t> finalists;
  for (size_t i : order) {
    const size_t leader = order.front();
    const bool near = finalists.size() < 2 || speeds[i].high >= speeds[leader].low;
    if (kind(i) == kind(leader) && near && finalists.size() < kMostFinalists) finalists.push_back(i);
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
    const auto place = static_cast<size_t>(std::find(finalists.begin(), finalists.end(), other) - finalists.begin());
    return verdict(i).given_inputs_only == verdict(other).given_inputs_only &&
           relation_in_session(verdict(i), verdict(other), place) == Relation::not_distinguishable;
  };
  const double enough = (1 - kEqualRatios) * verdict(leader).speedup();
  for (size_t i : order)
    if (i < ranking.best && ties_with(i, leader) && verdict(i).speedup() >= enough) ranking.best = i;
  for (size_t i : order)
    if (i != ranking.best && ties_with(i, ranking.best)) ranking.indistinguishable.push_back(i);
  std::sort(ranking.indistinguishable.begin(), ranking.indistinguishable.end());
  return ranking;
}

}  // namespace tilepilot::agent
