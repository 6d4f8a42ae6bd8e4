// Load hoisting: loads of a vector loop that are worth doing before it. Those of float16, which the machine converts a
// vector at a time where the C++ compiler does not.
#pragma once

#include "compiler/targets/cpu/loops/lane_plan.h"

namespace tilepilot::targets::cpu {

struct HoistedLoad {
  std::vector<const ir::ExprNode*> nodes;  // all of the same element
  ir::Expr load;
  bool for_all_lanes = false;  // the same element for a row of lanes; else neighbours for neighbouring lanes
  bool for_all_rows = false;
};

// Of statements that run one after the other for each lane. The loads are in bounds, and done whatever happens.
std::vector<HoistedLoad> find_hoisted_loads(c::Context& context, const LaneFacts& facts, const LanePlan& plan,
                                            const std::vector<ir::Stmt>& statements);

// Whether a load or store is in bounds on the path that is being written, whatever branches are around it.
bool is_in_bounds(const c::Context& context, const ir::Expr& expr, const ir::Load& load);
bool is_in_bounds(const c::Context& context, const ir::Stmt& stmt, const ir::Store& store);
// Whether indices take what has no value before the lanes' loop: a let of a lane, or a load.
bool needs_lanes(const LaneFacts& facts, const LanePlan& plan, const std::vector<ir::Expr>& indices);

}  // namespace tilepilot::targets::cpu
