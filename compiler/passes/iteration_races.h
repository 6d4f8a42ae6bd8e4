// Races that are certain. Between iterations of a parallel loop: one reads an element that another one writes, `s[i] =
// s[i + 1]`. Which value it finds is up to the target: one that runs iterations in order finds the same one always.
// Between blocks: each reads an element, computes with it and stores it, `s[j] = s[j] + x[bx, j]`, and what others do
// in between is lost, on every target.
#pragma once

#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

struct IterationRace {
  ir::Stmt loop;
  ir::Expr read;  // a load
};

// Of the loop's statements that every iteration runs. Each is a race where the loop runs and its indices lie inside.
// @pre a parallel loop
std::vector<IterationRace> iteration_races(const ir::Stmt& loop);

struct BlockRace {
  ir::Stmt store;
  ir::Var block;  // blocks that differ in this index change the same element
};
// None where blocks wait for each other. Of conditions that tell blocks apart, those are looked at that name a block's
// index; what a condition loads may do so, too.
std::vector<BlockRace> block_races(const ir::Kernel& kernel);

// Warnings about those of a staged program, one a loop, or kernel, and buffer.
std::vector<Diagnostic> race_warnings(const ir::Program& program);

}  // namespace tilepilot::passes
