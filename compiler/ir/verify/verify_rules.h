// How the verifier's rules are written: a row says what must hold and has a check for each kind of thing it concerns.
// A check returns what is wrong, or an empty text. Rows: rules_of_{expressions,statements,programs}.cpp; the traversal
// that calls them: verify.cpp.
#pragma once

#include <string>
#include <unordered_set>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

// What surrounds the node that is checked.
struct Surroundings {
  std::unordered_set<const VarData*> vars;        // in scope
  std::unordered_set<const BufferData*> buffers;  // parameters, and allocations of the kernel
  std::vector<LoopKind> loops;                    // that enclose it, outermost first; a while counts as serial
};

struct Rule {
  std::string_view name;
  std::string_view sentence;
  std::string (*on_expr)(const Expr&, const Surroundings&) = nullptr;
  std::string (*on_stmt)(const Stmt&, const Surroundings&) = nullptr;
  std::string (*on_kernel)(const Kernel&, const Surroundings&) = nullptr;
  std::string (*on_program)(const Program&, const Surroundings&) = nullptr;
};

const std::vector<Rule>& rules_of_expressions();
const std::vector<Rule>& rules_of_statements();
const std::vector<Rule>& rules_of_programs();

}  // namespace tilepilot::ir
