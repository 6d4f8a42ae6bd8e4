// Variables in parallel loops. What an iteration of such a loop keeps in a local buffer and reads only after it wrote
// it there is its own, whoever runs the iteration: a definition, or an array that nothing outside the loop names. A
// loop of which an iteration reads what another one left there, or of which such a value is read afterwards, is a
// sequence.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// @post a local buffer that a parallel loop of more than one iteration writes is named by this loop alone, and its
// iterations read what they wrote themselves; or they write elements of their own, and read none of another's. Loops
// for which neither holds are serial ones, within a parallel loop of one iteration; `innermost`: the kind of the
// innermost one, vectorized for targets that find out themselves whether its order matters.
ir::Program iteration_variables(const ir::Program& program, ir::LoopKind innermost = ir::LoopKind::serial);

// A variable for whose sake a parallel loop runs as a sequence.
struct SequentialVariable {
  ir::Buffer buffer;
  ir::Stmt loop;
  bool carried;  // an iteration reads what another one left there; else it is read after the loop alone
};
std::vector<SequentialVariable> sequential_variables(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
