#include "agent/generate/pairing.h"

#include <algorithm>

namespace tilepilot::agent {
namespace {

bool has_interval(const eval::Verdict& verdict) { return verdict.speedup_high > 0; }

// Unknown intervals are points.
double lowest(const eval::Verdict& verdict) { return has_interval(verdict) ? verdict.speedup_low : verdict.speedup(); }
double highest(const eval::Verdict& verdict) {
  return has_interval(verdict) ? verdict.speedup_high : verdict.speedup();
}

std::optional<Pairing> own_pairing(const Attempt& attempt, size_t other) {
  const auto found = std::find_if(attempt.pairings.begin(), attempt.pairings.end(),
                                  [&](const Pairing& each) { return each.other == other; });
  return found == attempt.pairings.end() ? std::nullopt : std::optional(*found);
}

// Whether an attempt takes the place of an earlier one that was the best.
bool replaces(const std::vector<Attempt>& attempts, size_t later, size_t best) {
  const eval::Verdict &is = attempts[later].told(), &was = attempts[best].told();
  if (is.given_inputs_only != was.given_inputs_only) return was.given_inputs_only;
  if (const auto pairing = own_pairing(attempts[later], best)) return relation_of(*pairing) == Relation::faster;
  return is.speedup() > was.speedup();
}

}  // namespace

bool is_verified(const Attempt& attempt) { return attempt.told().outcome == eval::Outcome::verified; }

bool is_right(const eval::Verdict& verdict) {
  return verdict.outcome == eval::Outcome::verified && !verdict.given_inputs_only;
}

std::optional<Pairing> pairing_of(const std::vector<Attempt>& attempts, size_t one, size_t other) {
  if (auto pairing = own_pairing(attempts[one], other)) return pairing;
  const auto inverse = own_pairing(attempts[other], one);
  if (!inverse || inverse->ratio <= 0 || inverse->low <= 0) return std::nullopt;
  return Pairing{other, 1 / inverse->ratio, 1 / inverse->high, 1 / inverse->low};
}

Relation relation_of(const Pairing& pairing) {
  if (pairing.low > 1 && pairing.ratio >= 1 + kEqualRatios) return Relation::faster;
  if (pairing.high < 1 && pairing.ratio <= 1 / (1 + kEqualRatios)) return Relation::slower;
  return Relation::not_distinguishable;
}

Relation relation_of(const eval::Verdict& one, const eval::Verdict& other) {
  const bool known = has_interval(one) && has_interval(other);
  if (known && one.speedup_low <= other.speedup_high && other.speedup_low <= one.speedup_high)
    return Relation::not_distinguishable;
  if (one.speedup() == other.speedup()) return Relation::not_distinguishable;
  return one.speedup() > other.speedup() ? Relation::faster : Relation::slower;
}

Relation relation_of(const std::vector<Attempt>& attempts, size_t one, size_t other) {
  if (const auto pairing = pairing_of(attempts, one, other)) return relation_of(*pairing);
  return relation_of(attempts[one].told(), attempts[other].told());
}

std::string_view to_string(Relation relation) {
  switch (relation) {
    case Relation::faster:
      return "faster";
    case Relation::slower:
      return "slower";
    case Relation::not_distinguishable:
      return "not distinguishable";
  }
  return "";
}

bool wants_pairing(const eval::Verdict& attempt, const eval::Verdict& earlier) {
  if (!is_right(attempt) || !is_right(earlier) || attempt.speedup() <= 0 || earlier.speedup() <= 0) return false;
  return highest(attempt) >= lowest(earlier) || attempt.speedup() >= (1 - kPairingMargin) * earlier.speedup();
}

std::vector<Pairing> pairings_in(const std::vector<eval::Verdict>& verdicts, const std::vector<size_t>& others) {
  std::vector<Pairing> pairings;
  if (verdicts.size() != others.size() + 1 || verdicts[0].speedup() <= 0) return pairings;
  for (size_t i = 0; i < others.size(); ++i) {
    const eval::Verdict &is = verdicts[0], &was = verdicts[i + 1];
    if (!is_right(is) || !is_right(was) || was.speedup() <= 0) continue;
    // A judge that measures one by one has ratios to eager alone.
    Pairing pairing{others[i], is.speedup() / was.speedup(), lowest(is) / highest(was), highest(is) / lowest(was)};
    for (const eval::PairedRatio& each : is.paired)
      if (each.other == i + 1) pairing = {others[i], each.ratio, each.low, each.high};
    pairings.push_back(pairing);
  }
  return pairings;
}

bool is_unclear(const Pairing& pairing) {
  return relation_of(pairing) == Relation::not_distinguishable &&
         (pairing.ratio >= 1 + kFarRatios || pairing.ratio <= 1 / (1 + kFarRatios));
}

std::vector<Pairing> narrower(const std::vector<Pairing>& one, const std::vector<Pairing>& other) {
  std::vector<Pairing> chosen = one;
  for (Pairing& each : chosen) {
    const auto again =
        std::find_if(other.begin(), other.end(), [&](const Pairing& pairing) { return pairing.other == each.other; });
    // By the ratio of the ends, which are ratios themselves.
    if (again != other.end() && again->low > 0 && again->high * each.low < each.high * again->low) each = *again;
  }
  return chosen;
}

std::optional<size_t> best_of(const std::vector<Attempt>& attempts) {
  std::optional<size_t> best;
  for (size_t i = 0; i < attempts.size(); ++i)
    if (is_verified(attempts[i]) && (!best || replaces(attempts, i, *best))) best = i;
  return best;
}

std::vector<RelativeSpeed> relative_speeds(const std::vector<Attempt>& attempts) {
  std::vector<RelativeSpeed> speeds(attempts.size());
  std::optional<size_t> best;
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (!is_verified(attempts[i])) continue;
    const eval::Verdict& verdict = attempts[i].told();
    RelativeSpeed& own = speeds[i];
    if (const auto& pairings = attempts[i].pairings; !pairings.empty()) {
      const Pairing& pairing = pairings.front();
      const double base = speeds[pairing.other].speed;
      own = {base * pairing.ratio, base * pairing.low, base * pairing.high};
    } else {
      const double scale =
          best && attempts[*best].told().speedup() > 0 ? speeds[*best].speed / attempts[*best].told().speedup() : 1;
      own = {scale * verdict.speedup(), scale * lowest(verdict), scale * highest(verdict)};
    }
    if (!best || replaces(attempts, i, *best)) best = i;
  }
  return speeds;
}

}  // namespace tilepilot::agent
