// Transposed loads: serial loops in which each vector lane walks along a row of memory of its own, one element an
// iteration. One iteration alone would gather one element from each of many rows, or scatter them, and these elements
// may all map to the same cache set. Instead, sixteen iterations form a block: it is read by rows before its iterations
// and transposed for them; what they store to rows is written after them.
#pragma once

#include <functional>
#include <string>

#include "compiler/targets/cpu/loops/lane_plan.h"

namespace tilepilot::targets::cpu {

struct TransposedLoad {
  std::vector<const ir::ExprNode*> nodes;  // all of the same element
  ir::Expr load;
  std::string stride;          // C++: elements from the row of a lane to the next lane's
  bool for_all_lanes = false;  // the same element for a row of lanes: of float16, which is worth converting at once
  bool for_all_rows = false;

  // A block has so many of each step.
  int64_t columns(const LanePlan& plan) const {
    return (for_all_lanes ? 1 : plan.width) * (for_all_rows ? 1 : plan.rows);
  }
  int64_t elements(const LanePlan& plan) const { return kRowSteps * columns(plan); }
};

// Of a buffer that the loop names nowhere else.
struct TransposedStore {
  ir::Stmt stmt;
  std::string stride;
};

struct TransposedAccesses {
  std::vector<TransposedLoad> loads;
  std::vector<TransposedStore> stores;
};

// Of a loop that all lanes take the same way. They are in bounds for every step; loads are safe whatever branches are
// inside, stores happen in every step. Nothing if no lane walks along a row.
TransposedAccesses find_transposed_accesses(c::Context& context, const LaneFacts& facts, const LanePlan& plan,
                                            const ir::For& loop);

// A block while it is written: names of C++, and what stands there for the lanes of a chunk.
struct TransposedBlock {
  ir::Var var;                    // of the loop
  std::string start, step, done;  // its value at the first step; the number of a step; steps that were done before
  std::string row, lane, base;    // the number of a row, of a lane in it, the variable of the first lane
  std::string first, end;         // lanes of a row that take part
  bool all_lanes;
  std::function<int()> open_rows;  // begins a loop over rows, if there are several
};
void write_transposed_load(c::Context& context, const LanePlan& plan, const TransposedLoad& load,
                           const TransposedBlock& block);
// Where the steps write to instead; gives its name.
std::string declare_transposed_store(c::Context& context, const LanePlan& plan, const TransposedStore& store,
                                     const TransposedBlock& block);
void write_transposed_store(c::Context& context, const LanePlan& plan, const TransposedStore& store,
                            const TransposedBlock& block, const std::string& columns);

}  // namespace tilepilot::targets::cpu
