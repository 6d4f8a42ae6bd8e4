// Sizes and steps of floating inputs, beyond those that are tried with every model, at which a program that is right
// elsewhere does not compute what the model does.
#pragma once

#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

struct InputProbes {
  // Powers of two, to be tried in turn: all numbers are as far below zero, or above it. A search for the largest that
  // begins at -10000 instead of minus infinity shows nowhere else.
  std::vector<int> below, above;
  // Inputs are far below zero and far above it by turns: so are all products of two of them, the scores of attention.
  bool opposite = false;
  // Powers of two of few elements. Numbers that go through a 32-bit integer to be rounded get lost. Empty: nothing is
  // rounded.
  std::vector<int> beyond_integers;
  // Powers of two of all numbers: their squares overflow, or vanish, which `hypot` is there to avoid.
  std::vector<int> beyond_squares, below_squares;
  // What is rounded is scaled to so many steps, by the largest element of a row perhaps: where that element is their
  // number, a step is one, and numbers halfway between two steps can be made. 0: nothing is rounded.
  int steps = 0;
};

InputProbes input_probes(const Graph& forward);

}  // namespace tilepilot::eval
