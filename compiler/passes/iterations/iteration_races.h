// Races between iterations of a parallel loop that are certain: one reads an element that another one writes, `s[i] =
// s[i + 1]`. Which value it finds is up to the target: one that runs iterations in order finds the same one always.
#pragma once

#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Loads that computing the expression makes for sure: none behind a choice, or on the right of `and` and `or`.
std::vector<ir::Expr> certain_loads(const ir::Expr& expr);

struct IterationRace {
  ir::Stmt loop;
  ir::Expr read;  // a load
};

// Of the loop's statements that every iteration runs. Each is a race where the loop runs and its indices lie inside.
// @pre a parallel loop
std::vector<IterationRace> iteration_races(const ir::Stmt& loop);

// Warnings about those of a staged program, and about those between blocks, one a loop, or kernel, and buffer.
std::vector<Diagnostic> race_warnings(const ir::Program& program);

}  // namespace tilepilot::passes
