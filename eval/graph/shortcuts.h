// Exact identities by which the outputs of a graph take less work than the graph does, for all inputs and weights. A
// program that uses one is right, and its speed-up says little about kernels: the roofline leaves the work out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {

enum class ShortcutKind {
  constant,      // a value that depends on nothing
  collapse,      // a product that becomes a matrix-vector product or a sum
  reduce,        // a smaller product
  commute,       // a cheaper order
  norm_cancels,  // a bias or scale that the norm after it takes out
  no_op,         // a step that changes nothing
  dead,          // work that no output needs
};
std::string_view to_string(ShortcutKind kind);

struct Shortcut {
  ShortcutKind kind = ShortcutKind::no_op;
  int line = 0;  // of the model; 0: unknown
  std::string sentence;
  double saved_flops = 0;     // of products that the outputs need
  bool whole_output = false;  // of a constant: an output is it
};
std::vector<Shortcut> find_shortcuts(const GraphUses& uses);

}  // namespace tilepilot::eval
