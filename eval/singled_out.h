// Which values of an input a model treats unlike all others.
#pragma once

#include <vector>

#include "eval/reference.h"

namespace tilepilot::eval {

struct SingledOut {
  std::vector<double> values;  // that elements are compared with: a padding token, the number for "unknown"
  bool nan = false;            // the model asks which elements are numbers,
  bool infinite = false;       // or finite
  bool repeats = false;        // integers drawn one by one: values may come twice, even where none does
  bool any() const { return nan || infinite || !values.empty(); }
};

// By tensor among forward's inputs. `recipe`: the graph that makes them.
std::vector<SingledOut> singled_out(const Graph& forward, const Graph& recipe);

}  // namespace tilepilot::eval
