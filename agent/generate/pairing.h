// How verified attempts of a run stand to one another. Times of different sessions of the judge differ by more than
// programs do, so an attempt takes the place of the best so far only where a paired measurement says so: both in one
// session, in the same rounds.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "agent/generate/author.h"

namespace tilepilot::agent {

// A paired ratio that is nearer to 1 than that is none, whatever its interval.
inline constexpr double kEqualRatios = 0.02;
// An attempt is measured beside the best so far unless, by their own measurements, it is slower by more than that and
// their intervals are apart.
inline constexpr double kPairingMargin = 0.2;

// By the last verdict on it.
bool is_verified(const Attempt& attempt);
// Verified, and not for inputs like the given ones alone, which counts for little.
bool is_right(const eval::Verdict& verdict);

// What the pairing of two attempts says of the first, whichever of them came first; nullopt: they were not paired.
std::optional<Pairing> pairing_of(const std::vector<Attempt>& attempts, size_t one, size_t other);

enum class Relation { faster, slower, not_distinguishable };
Relation relation_of(const Pairing& pairing);
// By the pairing of the two; without one by the intervals of their ratios to eager, which is less sure.
Relation relation_of(const std::vector<Attempt>& attempts, size_t one, size_t other);
// By intervals of ratios to eager alone.
Relation relation_of(const eval::Verdict& one, const eval::Verdict& other);
std::string_view to_string(Relation relation);  // "faster", "slower", "not distinguishable"

// Whether to measure an attempt beside an earlier one.
bool wants_pairing(const eval::Verdict& attempt, const eval::Verdict& earlier);

// Whether others at work may have hidden that one is faster: the ratio is far from 1, and the interval holds 1. Worth
// another measurement, of which the one with the narrower interval counts, whatever it says.
inline constexpr double kFarRatios = 0.1;
bool is_unclear(const Pairing& pairing);
std::vector<Pairing> narrower(const std::vector<Pairing>& one, const std::vector<Pairing>& other);

// Of a comparison of an attempt, first, with the earlier ones `others`; without those that failed in it.
std::vector<Pairing> pairings_in(const std::vector<eval::Verdict>& verdicts, const std::vector<size_t>& others);

// The best so far: the first verified attempt, until a later one is faster than it; of those that are not
// distinguishable the older one stays. What is right on all inputs stands before what is right on the given ones alone.
// nullopt: none is verified.
std::optional<size_t> best_of(const std::vector<Attempt>& attempts);

// Speed on one scale for all attempts, through the chain of pairings; 0: not verified. Attempts without a pairing stand
// to the best then as their ratios to eager do.
struct RelativeSpeed {
  double speed = 0, low = 0, high = 0;
};
std::vector<RelativeSpeed> relative_speeds(const std::vector<Attempt>& attempts);

}  // namespace tilepilot::agent
