// Index arithmetic that takes a flat number apart: `i % width` and `i // width` where neighbouring lanes have
// neighbouring i. In a run of lanes with the same quotient the remainder counts up by one, so memory is walked along
// again. Chunks are cut where a run ends, or are so short that none ends inside.
#pragma once

#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {

// A quotient or remainder of a number that grows by one from lane to lane.
struct RunPart {
  const ir::ExprNode* node;
  ir::Expr number, divisor;
  bool is_quotient;
  ir::Var in_run;  // the quotient; or the remainder, less the lane's own number
};

class LaneRuns {
 public:
  LaneRuns() = default;
  LaneRuns(const c::IntegerFacts& facts, const ir::Var& lane, const ir::Stmt& body);

  const std::vector<RunPart>& parts() const { return parts_; }
  // So many lanes, or a divisor of that, lie in one run wherever they start at a multiple of it; 1 if nothing is known.
  int64_t aligned() const { return aligned_; }
  // Where the runs end is known before the body runs.
  bool is_known_before() const { return known_before_; }
  // As it is within a run.
  ir::Expr within(const ir::Expr& expr) const;
  ir::Stmt within(const ir::Stmt& stmt) const;

 private:
  ir::Var lane_;
  std::vector<RunPart> parts_;
  int64_t aligned_ = 0;
  bool known_before_ = true;
};

}  // namespace tilepilot::targets::cpu
