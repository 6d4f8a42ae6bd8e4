// Which of several verified attempts is the best. Each attempt was timed alone, so the highest ratio is partly the
// luckiest; the best few are measured side by side in one session of the judge, and that session decides.
#pragma once

#include <optional>
#include <vector>

#include "agent/generate/author.h"

namespace tilepilot::agent {

inline constexpr size_t kMostFinalists = 4;

// By the last verdict on it.
bool is_verified(const Attempt& attempt);
// Verified, and not for inputs like the given ones alone, which counts for little.
bool is_right(const eval::Verdict& verdict);

// The attempts to measure side by side, highest ratio first: the two best, and others whose confidence interval reaches
// the leader's. Only verified attempts that no comparison has judged yet. Attempts that are right on the given inputs
// alone are left out while there are others.
std::vector<size_t> choose_finalists(const std::vector<Attempt>& attempts);

struct Ranking {
  size_t best = 0;
  std::vector<size_t> indistinguishable;  // their intervals overlap with that of the best
};
// What the comparison says; nullopt if none of the finalists was verified in it. The highest ratio is the best guess
// even where intervals overlap; of those within 2 % of it the earliest attempt is taken: authors try what is simple
// first.
std::optional<Ranking> rank_finalists(const std::vector<Attempt>& attempts, const std::vector<size_t>& finalists);

// The verified attempt with the highest speed-up by what is known of each; nullopt: none is verified.
std::optional<size_t> best_of(const std::vector<Attempt>& attempts);

}  // namespace tilepilot::agent
