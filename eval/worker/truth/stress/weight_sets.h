// The model's parameters and buffers with other values: the sets that trials are made with, each from the given ones
// and a seed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/worker/truth/perturbation.h"

namespace tilepilot::eval {

// The model's state in a call: as exported, moved a little, drawn anew; with other values of buffers alone (all; whole
// numbers only a little; all but whole numbers; of other signs and sizes; counters where what they count towards is
// near, or half as far; all, counters a few steps further); or drawn anew and of other signs and sizes, of larger size,
// large, with rows of zeros, around another mean, beyond numbers that the model cuts them at (few elements all above
// the largest of these, or below the least); or moved a little, with buffers that are the same number everywhere
// (gates).
inline constexpr int kGivenWeights = 0, kMovedWeights = 1, kRedrawnWeights = 2, kMovedBuffers = 3, kNearBuffers = 4,
                     kMovedFloatBuffers = 5, kStretchedWeights = 6, kLargerWeights = 7, kLargeWeights = 8,
                     kFairlyLargeWeights = 9, kStretchedBuffers = 10, kEmptyRows = 11, kOffsetWeights = 12,
                     kNearlyThere = 13, kSmallWeights = 14, kFurtherBuffers = 15, kMovedGates = 16, kBeyondBounds = 17,
                     kBelowBounds = 18, kHalfwayThere = 19;

// From here on: counters at their turning points, the first of each, the second, ...
inline constexpr int kTurningPoint = 100;

// Which of `count` things may change, found by halves: all of a range that `fits` beside those found before, else those
// of its halves, as long as there are `calls` of it left. The rest stay.
using FitsTogether = std::function<bool(const std::vector<bool>& change)>;
std::vector<bool> largest_that_fits(size_t count, int& calls, const FitsTogether& fits);

class WeightSets {
 public:
  struct Options {
    uint64_t seed = 0;  // secret
    c10::Device device = c10::DeviceType::CPU;
    int64_t kept_bytes = 0;  // of sets that are not made again each time
  };
  // `given`: as exported, on the processor. The reference outlives this object.
  WeightSets(const Reference& reference, State given, Options options);

  const State& given() const { return given_; }
  int64_t bytes() const;
  // On the device. Where they are large, made again each time.
  State make(int set) const;
  // Whether a set is one of buffers alone.
  static bool is_of_buffers(int set);

  bool has_movable_buffers() const { return eval::has_movable_buffers(reference_.forward, given_); }
  bool has_gates() const { return eval::has_gates(reference_.forward, given_); }
  bool has_movable_weights() const;
  // Whether there are counters that matter for some time only: those of kNearlyThere and kHalfwayThere.
  bool has_transitions() const { return !steps_to_the_end_.empty(); }
  bool has_counters() const;
  // How many sets there are from kTurningPoint on: as many as a counter has such points, but for more than four.
  int turning_points() const;
  void set_steps_to_the_end(std::map<size_t, int64_t> steps) { steps_to_the_end_ = std::move(steps); }
  // Of weights that are cut or compared, by value of the graph.
  bool has_bounds() const { return !bounds_.empty(); }
  void set_bounds(std::map<size_t, std::vector<double>> bounds) { bounds_ = std::move(bounds); }
  void set_turning_points(std::map<size_t, std::vector<int64_t>> points) { turning_points_ = std::move(points); }

  // Whether the model gives numbers with a set where it does with the given weights.
  using Fits = std::function<bool(int set)>;
  // Leaves out of all sets what none of the usual ones may change. What stays is told; empty: nothing.
  std::string leave_out_unfit(const Fits& fits);
  // Leaves out of one more set what it may not change. Whether it changes something still, and fits.
  bool leave_out_of(int set, const Fits& fits);

 private:
  std::vector<size_t> changed_by(int set) const;
  void find_unmoved(int set, const Fits& fits, Unmoved& unmoved);
  Unmoved unmoved_in(int set) const;
  void keep(int set, const State& weights) const;
  void move_beyond_bounds(State& made, int set, const Unmoved& unmoved) const;

  const Reference& reference_;
  Options options_;
  State given_;
  mutable std::optional<State> given_on_device_;           // once asked for
  std::map<size_t, int64_t> steps_to_the_end_;             // that counters are moved by, by value of the graph
  std::map<size_t, std::vector<int64_t>> turning_points_;  // of counters, by value of the graph
  std::map<size_t, std::vector<double>> bounds_;
  Unmoved unmoved_;                    // in every set
  std::map<int, Unmoved> unmoved_in_;  // in one set besides
  mutable std::map<int, State> kept_;
};

}  // namespace tilepilot::eval
