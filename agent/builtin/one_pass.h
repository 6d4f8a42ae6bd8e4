// Two reductions of rows, the second of which needs the first one's result, found in one pass: each place of a tile
// keeps what it needs over the steps, and threads exchange nothing before the last one.
//
// - Moments: sums, and squares of what differs from the mean (Welford, "Note on a Method for Calculating Corrected Sums
//   of Squares and Products", Technometrics 4, 1962; put together as in Chan, Golub, LeVeque, "Updating Formulae and a
//   Pairwise Algorithm for Computing Sample Variances", 1979).
// - Exponentials: maxima, and sums of exponentials less the maximum (Milakov, Gimelshein, "Online normalizer
//   calculation for softmax", 2018).
#pragma once

#include <vector>

#include "agent/builtin/tile_plan.h"

namespace tilepilot::agent::builtin {

struct OnePass {
  enum class Kind { moments, exponentials } kind = Kind::moments;
  int value = -1;   // varies along the reduced axes
  int first = -1;   // its sum along them, or maximum
  int second = -1;  // the sum of (value - mean)², or of exp(value - maximum)
  int mean = -1;    // of moments: the sum divided by the length
};

std::vector<OnePass> find_one_pass(const PrimitiveGraph& graph, const Group& group);

// Whether steps over the tiles of a plan are such that each place can count its own.
bool may_count_steps(const TilePlan& tiles);

}  // namespace tilepilot::agent::builtin
