// Which of several verified attempts is the best when a run ends. Each attempt was timed alone, so the highest ratio is
// partly the luckiest; the best few are measured side by side in one session of the judge, and that session decides.
#pragma once

#include <optional>
#include <vector>

#include "agent/generate/pairing.h"

namespace tilepilot::agent {

inline constexpr size_t kMostFinalists = 4;

// The attempts to measure side by side: the best so far, the next by relative speed, and others whose interval reaches
// that of the best. Only verified attempts that no comparison has judged yet. Attempts that are right on the given
// inputs alone are left out while there are others.
std::vector<size_t> choose_finalists(const std::vector<Attempt>& attempts);

struct Ranking {
  size_t best = 0;
  std::vector<size_t> indistinguishable;  // from the best, by their pairing in the comparison
};
// What the comparison says; nullopt if none of the finalists was verified in it. The highest ratio is the best guess
// even where intervals overlap; of those within 2 % of it the earliest attempt is taken: authors try what is simple
// first.
std::optional<Ranking> rank_finalists(const std::vector<Attempt>& attempts, const std::vector<size_t>& finalists);

}  // namespace tilepilot::agent
