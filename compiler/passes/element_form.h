// Statements that treat each element of a box by itself, in one form: parallel loops, and the copies and fills that are
// such loops in other words.
#pragma once

#include <optional>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Whether the expression reads memory.
bool has_load(const ir::Expr& e);

struct ElementForm {
  std::vector<ir::Var> vars;
  std::vector<int64_t> extents;  // of the box, none is 1
  std::vector<ir::Stmt> body;    // for each element, in order
  bool is_loop = false;          // it was a parallel loop to begin with
};

// Nullopt if the statement is none: loops, jumps and atomics inside, symbolic extents, a copy inside one buffer or into
// another block's, which no buffer of this one is.
std::optional<ElementForm> element_form(const ir::Stmt& stmt);

// The same for copies and fills of any box; a box of one element has a form over no variables. Of a copy into another
// block's tile, the store names this block's: where it goes is for the caller to say.
std::optional<ElementForm> box_form(const ir::Stmt& stmt);

// The form over other variables of the same types and extents.
ElementForm over_variables(const ElementForm& form, const std::vector<ir::Var>& vars);

// One use of a buffer by the body.
struct ElementAccess {
  ir::Buffer buffer;
  std::vector<ir::Expr> indices;
  bool is_store;
};
std::vector<ElementAccess> accesses(const std::vector<ir::Stmt>& body);

// True if two elements never have equal indices: each variable stands in an index of its own.
bool separates_elements(const std::vector<ir::Expr>& indices, const ElementForm& form);

}  // namespace tilepilot::passes
