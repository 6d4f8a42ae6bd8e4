// Means of rows and the squares of what differs from them, found in one pass (Welford, "Note on a Method for
// Calculating Corrected Sums of Squares and Products", Technometrics 4, 1962; put together as in Chan, Golub, LeVeque,
// "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979). Each place of a tile keeps a mean
// and a sum of squares of its own over the steps, so that threads exchange nothing before the last one.
#pragma once

#include <vector>

#include "agent/builtin/tile_plan.h"

namespace tilepilot::agent::builtin {

struct Moments {
  int value = -1;    // varies along the reduced axes
  int sum = -1;      // its sum along them
  int mean = -1;     // that divided by their length
  int squares = -1;  // the sum of (value - mean)²
};

std::vector<Moments> find_moments(const PrimitiveGraph& graph, const Group& group);

// Whether steps over the tiles of a plan are such that each place can count its own.
bool may_count_steps(const TilePlan& tiles);

}  // namespace tilepilot::agent::builtin
