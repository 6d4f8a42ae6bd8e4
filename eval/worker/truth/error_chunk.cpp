#include "eval/worker/truth/error_chunk.h"

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
double compare_element(double value, double eager, double truth, double rms, double local, ErrorExtremes& extremes) {
  if (!std::isfinite(truth) || !std::isfinite(eager)) {
    extremes.specials_wrong |= !(value == eager || (std::isnan(value) && std::isnan(eager)));
    return 0;
  }
  const double magnitude = std::abs(truth), error = std::abs(value - truth), scaled = error / (magnitude + rms);
  extremes.nan |= std::isnan(value);
  extremes.not_finite |= !std::isfinite(value);
  extremes.max = std::max(extremes.max, scaled);
  extremes.local = std::max(extremes.local, error / (magnitude + local));
  extremes.max_abs = std::max(extremes.max_abs, error);
  extremes.eager_max_abs = std::max(extremes.eager_max_abs, std::abs(eager - truth));
  extremes.largest = std::max(extremes.largest, magnitude + rms);
  return scaled * scaled;
}

void compare_each(const ErrorOperands& of, int64_t begin, int64_t end, double* squares, ErrorExtremes& extremes) {
  for (int64_t i = begin; i < end; ++i)
    squares[i] = compare_element(of.value[i], of.eager[i], of.truth[i], of.rms, of.local[i], extremes);
}

// The same, where no difference is infinite or NaN, which it does not see. Gives the sum of all differences, which is
// one of these if one of them is.
double compare_finite(const ErrorOperands& of, int64_t count, double* squares, ErrorExtremes& extremes) {
  Lanes max{}, max_abs{}, eager_max_abs{}, largest{}, excess{}, sum{};
  for (int64_t i = 0; i < count; i += kLanes) {
    const Lanes truth = load(of.truth + i), magnitude = absolute(truth), weight = magnitude + of.rms;
    const Lanes error = absolute(load(of.value + i) - truth), eager_error = absolute(load(of.eager + i) - truth);
    const Lanes scaled = error / weight;
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

int64_t square_elements(const double* eager, const double* truth, int64_t count, double* squares) {
  const int64_t whole = count / kLanes * kLanes;
  Lanes sum{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Lanes lanes = load(truth + i);
    store(lanes * lanes, squares + i);
    sum += absolute(lanes) + absolute(load(eager + i));
  }
  const bool all_finite = std::isfinite(sum[0] + sum[1]);
  int64_t counted = all_finite ? whole : 0;
  for (int64_t i = counted; i < count; ++i) {
    const bool counts = std::isfinite(truth[i]) && std::isfinite(eager[i]);
    squares[i] = counts ? truth[i] * truth[i] : 0;
    counted += counts;
  }
  return counted;
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
