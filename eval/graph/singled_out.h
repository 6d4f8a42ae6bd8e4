// Which values of an input a model treats unlike all others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

struct SingledOut {
  std::vector<double> values;  // that elements are compared with: a padding token, the number for "unknown"
  bool nan = false;            // the model asks which elements are numbers,
  bool infinite = false;       // or finite
  bool repeats = false;        // integers drawn one by one: values may come twice, even where none does
  std::optional<std::pair<double, double>> range = {};  // least and largest of integers drawn one by one
  bool may_repeat = false;                              // where they do it is clear what the model computes
  bool in_order = false;     // of equal elements it is said which comes first (keeps_order())
  bool is_computed = false;  // integers: arithmetic alone is done with them, no table is read and nothing compared
  bool is_flag = false;      // the model asks whether elements are true, or takes them from one: what a mask is for
  bool any() const { return nan || infinite || !values.empty(); }
};

// The elements of a value that depends on no input and no parameter, if they are few; else none.
using FewElements = std::function<std::vector<double>(int value)>;

// Of a buffer that is looked up, where it holds what it holds at few places only: the tokens of a table of special
// ones.
using RarePlaces = std::function<std::vector<int64_t>(int value)>;

// Whole numbers at which the model does something else, of a buffer of one number: a counter is reset, each tenth call
// is another one. The least first.
std::vector<int64_t> turning_points(const Graph& forward, int buffer, const FewElements& elements);

// Numbers that elements of a weight are compared with or cut at, also what arithmetic with a number and `exp` make of
// them.
std::vector<double> bounds_of_weight(const Graph& forward, int weight);

// By tensor among forward's inputs. `recipe`: the graph that makes them.
std::vector<SingledOut> singled_out(const Graph& forward, const Graph& recipe, const FewElements& elements,
                                    const RarePlaces& rare_places = {});

}  // namespace tilepilot::eval
