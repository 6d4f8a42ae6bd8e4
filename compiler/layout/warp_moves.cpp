#include "compiler/layout/warp_moves.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <unordered_map>
#include <utility>

namespace tilepilot::layout {
namespace {

using Values = std::array<int64_t, kWarpSize>;

Values unknown() {
  Values values;
  values.fill(-1);
  return values;
}

// False if another value is known.
bool learn(int64_t& known, int64_t value) {
  if (known < 0) known = value;
  return known == value;
}

// The places of one thread's warp that hold each element, by lane, then by register.
using Owners = std::unordered_map<int64_t, std::vector<Place>>;

Owners owners_in_warp(const Fragment& from, int64_t warp) {
  Owners owners;
  const int64_t end = std::min(from.thread_count(), (warp + 1) * kWarpSize);
  for (int64_t thread = warp * kWarpSize; thread < end; ++thread)
    for (int64_t reg = 0; reg < from.register_count(); ++reg)
      if (const auto element = from.element({thread, reg})) owners[*element].push_back({thread % kWarpSize, reg});
  return owners;
}

// Which of several owners gives the first element of a word.
enum class Preference { own_lane, first_lane };

class Moves {
 public:
  Moves(const Fragment& from, const Fragment& to, int64_t unit, Preference preference)
      : from_(from), to_(to), unit_(unit), preference_(preference) {}

  std::optional<WarpMoves> run() {
    const int64_t words = to_.register_count() / unit_;
    std::vector<Values> lanes(static_cast<size_t>(words), unknown()), sources = lanes;
    for (int64_t warp = 0; warp * kWarpSize < to_.thread_count(); ++warp) {
      const Owners owners = owners_in_warp(from_, warp);
      const int64_t end = std::min(to_.thread_count(), (warp + 1) * kWarpSize);
      for (int64_t thread = warp * kWarpSize; thread < end; ++thread)
        for (int64_t word = 0; word < words; ++word) {
          const auto place = source(owners, thread, word);
          if (!place) return std::nullopt;
          if (place->thread < 0) continue;
          const auto lane = static_cast<size_t>(thread % kWarpSize), at = static_cast<size_t>(word);
          if (!learn(lanes[at][lane], place->thread) || !learn(sources[at][lane], place->reg)) return std::nullopt;
        }
    }
    WarpMoves result{unit_, {}};
    for (size_t word = 0; word < lanes.size(); ++word) {
      const auto lane = lane_function(lanes[word]), source = lane_function(sources[word]);
      if (!lane || !source) return std::nullopt;
      result.words.push_back({*lane, *source, values_of(*source)});
    }
    return all_hold(result.words) ? std::optional(std::move(result)) : std::nullopt;
  }

 private:
  const Fragment &from_, &to_;
  const int64_t unit_;
  const Preference preference_;

  // All lanes give of the words that any lane asks for: nobody may have written a register that holds no element.
  bool all_hold(const std::vector<WordMove>& moves) const {
    for (const WordMove& move : moves)
      for (const int64_t word : move.words)
        for (int64_t reg = word * unit_; reg < (word + 1) * unit_; ++reg)
          for (int64_t thread = 0; thread < from_.thread_count(); ++thread)
            if (reg >= from_.register_count() || !from_.element({thread, reg})) return false;
    return true;
  }

  static std::vector<int64_t> values_of(const LaneFunction& function) {
    std::vector<int64_t> values;
    for (int64_t lane = 0; lane < kWarpSize; ++lane)
      if (std::find(values.begin(), values.end(), function(lane)) == values.end()) values.push_back(function(lane));
    return values;
  }

  // The lane and the word that a word of a thread comes from: of thread -1 if it holds nothing; none if its elements
  // are not side by side.
  std::optional<Place> source(const Owners& owners, int64_t thread, int64_t word) const {
    for (int64_t k = 0; k < unit_; ++k) {
      const auto element = to_.element({thread, word * unit_ + k});
      if (!element) continue;
      const auto found = owners.find(*element);
      if (found == owners.end()) return std::nullopt;
      std::optional<Place> best;
      for (const Place& place : found->second) {
        if (place.reg % unit_ != k || !holds(place, k, thread, word)) continue;
        const bool is_own = preference_ == Preference::own_lane && place.thread == thread % kWarpSize;
        if (!best || is_own) best = Place{place.thread, place.reg / unit_};
        if (is_own) break;
      }
      return best;
    }
    return Place{};
  }

  // Whether the registers around `place`, which has element `k` of the word, have the others.
  bool holds(const Place& place, int64_t k, int64_t thread, int64_t word) const {
    const int64_t giver = thread / kWarpSize * kWarpSize + place.thread;
    for (int64_t other = k + 1; other < unit_; ++other) {
      const auto wanted = to_.element({thread, word * unit_ + other});
      if (wanted && from_.element({giver, place.reg - k + other}) != wanted) return false;
    }
    return true;
  }
};

}  // namespace

int64_t LaneFunction::operator()(int64_t lane) const {
  int64_t value = base;
  for (size_t bit = 0; bit < columns.size(); ++bit)
    if (lane >> bit & 1) value ^= columns[bit];
  return value;
}

// Each known value is an equation in the base and the columns: Gaussian elimination over GF(2), where an equation names
// the unknowns as bits, the base first, and unknowns that none decides are 0.
std::optional<LaneFunction> lane_function(const std::array<int64_t, kWarpSize>& values) {
  std::array<std::optional<std::pair<unsigned, int64_t>>, 6> rows;  // by their lowest unknown
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (values[lane] < 0) continue;
    unsigned unknowns = lane << 1 | 1;
    int64_t value = values[lane];
    while (unknowns != 0) {
      auto& row = rows[static_cast<size_t>(std::countr_zero(unknowns))];
      if (!row) {
        row.emplace(unknowns, value);
        break;
      }
      unknowns ^= row->first;
      value ^= row->second;
    }
    if (unknowns == 0 && value != 0) return std::nullopt;
  }
  std::array<int64_t, 6> solved = {};
  for (size_t k = rows.size(); k-- > 0;) {
    if (!rows[k]) continue;
    solved[k] = rows[k]->second;
    for (size_t other = k + 1; other < rows.size(); ++other)
      if (rows[k]->first >> other & 1) solved[k] ^= solved[other];
  }
  return LaneFunction{solved[0], {solved[1], solved[2], solved[3], solved[4], solved[5]}};
}

int64_t WarpMoves::shuffles() const {
  int64_t count = 0;
  for (const WordMove& move : words)
    if (!move.lane.is_identity()) count += static_cast<int64_t>(move.words.size());
  return count;
}

std::optional<WarpMoves> warp_moves(const Fragment& from, const Fragment& to, int64_t most) {
  assert(from.shape() == to.shape());
  for (int64_t unit = most; unit >= 1; unit /= 2) {
    if (from.register_count() % unit != 0 || to.register_count() % unit != 0) continue;
    for (const Preference preference : {Preference::own_lane, Preference::first_lane})
      if (auto moves = Moves(from, to, unit, preference).run()) return moves;
  }
  return std::nullopt;
}

}  // namespace tilepilot::layout
