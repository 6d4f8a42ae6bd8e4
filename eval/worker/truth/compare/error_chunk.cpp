#include "eval/worker/truth/compare/error_chunk.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tilepilot::eval {
namespace {

// GCC's and Clang's vectors: operators work on each lane.
constexpr int64_t kLanes = 2;
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using LaneBits = int64_t __attribute__((vector_size(kLanes * sizeof(int64_t))));

Lanes load(const double* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

void store(Lanes lanes, double* to) { std::memcpy(to, &lanes, sizeof lanes); }

Lanes absolute(Lanes lanes) { return (Lanes)((LaneBits)lanes & INT64_MAX); }

Lanes greater(Lanes a, Lanes b) { return a < b ? b : a; }

double greatest(Lanes lanes) { return std::max(lanes[0], lanes[1]); }

// Gives the square of the scaled error.
double compare_element(const ErrorOperands& of, int64_t place, ErrorExtremes& extremes) {
  const double value = of.value[place], eager = of.eager[place], truth = of.truth[place];
  if (!std::isfinite(truth) || !std::isfinite(eager)) {
    extremes.specials_wrong |= !(value == eager || (std::isnan(value) && std::isnan(eager)));
    return 0;
  }
  const double magnitude = std::abs(truth), error = std::abs(value - truth), scaled = error / (magnitude + of.rms);
  extremes.nan |= std::isnan(value);
  extremes.not_finite |= !std::isfinite(value);
  extremes.max = std::max(extremes.max, scaled);
  extremes.local = std::max(extremes.local, error / (magnitude + of.local[place]));
  extremes.max_abs = std::max(extremes.max_abs, error);
  extremes.eager_max_abs = std::max(extremes.eager_max_abs, std::abs(eager - truth));
  extremes.largest = std::max(extremes.largest, magnitude + of.rms);
  if (magnitude >= of.fill_limit) extremes.fill = std::max(extremes.fill, error / magnitude);
  const double difference = (value - truth) / (magnitude + of.rms), share = truth / (magnitude + of.rms);
  extremes.along += difference * share;
  extremes.squares += share * share;
  extremes.sum += difference;
  extremes.magnitudes += std::abs(share);
  extremes.sizeable += magnitude > kLeastScale;
  extremes.lost += magnitude > kLeastScale && error > kLostPart * magnitude;
  return scaled * scaled;
}

void compare_each(const ErrorOperands& of, int64_t begin, int64_t end, double* squares, ErrorExtremes& extremes) {
  for (int64_t i = begin; i < end; ++i) squares[i] = compare_element(of, i, extremes);
}

// The same, where no difference is infinite or NaN, which it does not see. Gives the sum of all differences, which is
// one of these if one of them is.
double compare_finite(const ErrorOperands& of, int64_t count, double* squares, ErrorExtremes& extremes) {
  Lanes max{}, max_abs{}, eager_max_abs{}, largest{}, excess{}, sum{};
  Lanes along{}, squares_of_truth{}, differences{}, magnitudes{};
  LaneBits lost{}, sizeable{};
  for (int64_t i = 0; i < count; i += kLanes) {
    const Lanes truth = load(of.truth + i), magnitude = absolute(truth), weight = magnitude + of.rms;
    const Lanes signed_error = load(of.value + i) - truth, error = absolute(signed_error);
    const Lanes eager_error = absolute(load(of.eager + i) - truth);
    const Lanes scaled = error / weight, share = truth / weight, difference = signed_error / weight;
    along += difference * share;
    squares_of_truth += share * share;
    differences += difference;
    magnitudes += absolute(share);
    const LaneBits counts = magnitude > kLeastScale;  // -1 where it does
    sizeable -= counts;
    lost -= counts & (error > kLostPart * magnitude);
    store(scaled * scaled, squares + i);
    max = greater(max, scaled);
    max_abs = greater(max_abs, error);
    eager_max_abs = greater(eager_max_abs, eager_error);
    largest = greater(largest, weight);
    excess = greater(excess, error - extremes.local * (magnitude + load(of.local + i)));
    sum += error + eager_error;
  }
  extremes.max = std::max(extremes.max, greatest(max));
  extremes.max_abs = std::max(extremes.max_abs, greatest(max_abs));
  extremes.eager_max_abs = std::max(extremes.eager_max_abs, greatest(eager_max_abs));
  extremes.largest = std::max(extremes.largest, greatest(largest));
  extremes.along += along[0] + along[1];
  extremes.squares += squares_of_truth[0] + squares_of_truth[1];
  extremes.sum += differences[0] + differences[1];
  extremes.magnitudes += magnitudes[0] + magnitudes[1];
  extremes.lost += lost[0] + lost[1];
  extremes.sizeable += sizeable[0] + sizeable[1];
  if (of.fill_limit <= greatest(largest)) {
    for (int64_t i = 0; i < count; ++i) {
      const double magnitude = std::abs(of.truth[i]);
      if (magnitude >= of.fill_limit)
        extremes.fill = std::max(extremes.fill, std::abs(of.value[i] - of.truth[i]) / magnitude);
    }
  }
  if (greatest(excess) > 0) {  // in few chunks only: the others need no second division
    Lanes local{};
    for (int64_t i = 0; i < count; i += kLanes) {
      const Lanes truth = load(of.truth + i);
      local = greater(local, absolute(load(of.value + i) - truth) / (absolute(truth) + load(of.local + i)));
    }
    extremes.local = std::max(extremes.local, greatest(local));
  }
  return sum[0] + sum[1];
}

}  // namespace

void ErrorExtremes::add(const ErrorExtremes& other) {
  max = std::max(max, other.max);
  local = std::max(local, other.local);
  max_abs = std::max(max_abs, other.max_abs);
  eager_max_abs = std::max(eager_max_abs, other.eager_max_abs);
  largest = std::max(largest, other.largest);
  fill = std::max(fill, other.fill);
  along += other.along;
  squares += other.squares;
  sum += other.sum;
  magnitudes += other.magnitudes;
  lost += other.lost;
  sizeable += other.sizeable;
  nan |= other.nan;
  not_finite |= other.not_finite;
  specials_wrong |= other.specials_wrong;
}

void compare_elements(const ErrorOperands& operands, int64_t count, double* squares, ErrorExtremes& extremes) {
  const int64_t whole = count / kLanes * kLanes;
  ErrorExtremes seen = extremes;
  if (std::isfinite(compare_finite(operands, whole, squares, seen))) {
    extremes = seen;
    compare_each(operands, whole, count, squares, extremes);
  } else {
    compare_each(operands, 0, count, squares, extremes);
  }
}

SquaredElements square_elements(const double* eager, const double* truth, double fill_limit, int64_t count,
                                double* squares) {
  const int64_t whole = count / kLanes * kLanes;
  Lanes sum{}, largest{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Lanes lanes = load(truth + i);
    store(lanes * lanes, squares + i);
    largest = greater(largest, absolute(lanes));
    sum += absolute(lanes) + absolute(load(eager + i));
  }
  const bool all_count = std::isfinite(sum[0] + sum[1]) && greatest(largest) < fill_limit;
  SquaredElements result;
  if (all_count) result = {whole, 0, greatest(largest)};
  for (int64_t i = result.counted; i < count; ++i) {
    const bool finite = std::isfinite(truth[i]) && std::isfinite(eager[i]);
    const bool fills = finite && std::abs(truth[i]) >= fill_limit, counts = finite && !fills;
    squares[i] = counts ? truth[i] * truth[i] : 0;
    result.counted += finite;
    result.fills += fills;
    if (counts) result.largest = std::max(result.largest, std::abs(truth[i]));
  }
  return result;
}

SliceSum sum_of(const double* squares, int64_t count) {
  const int64_t whole = count / kLanes * kLanes;
  Lanes sum{}, not_zero{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Lanes lanes = load(squares + i);
    sum += lanes;
    not_zero += lanes > 0 ? Lanes{1, 1} : Lanes{};
  }
  SliceSum result{sum[0] + sum[1], static_cast<int64_t>(not_zero[0] + not_zero[1])};
  for (int64_t i = whole; i < count; ++i) result.add(squares[i], squares[i] > 0);
  return result;
}

}  // namespace tilepilot::eval
