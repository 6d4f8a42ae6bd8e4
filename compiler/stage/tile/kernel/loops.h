// Loops of a kernel: `for ... in T.Parallel(...)` and its family, and Python's own `range`, as loops of the IR. Starts
// and steps are folded into the value that the loop variable has, so that IR loops count from 0 by 1.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

// One axis of a loop in the program's terms.
struct LoopRange {
  ir::Expr start, stop;
  int64_t step = 1;
};

class LoopObject final : public StagedLoop {
 public:
  static constexpr Type kType{"tile loop"};
  LoopObject(TileContext& context, std::string name, ir::LoopKind kind, std::vector<LoopRange> ranges)
      : context_(context), name_(std::move(name)), kind_(kind), ranges_(std::move(ranges)) {}
  const Type& type() const override { return kType; }
  Status run(Interpreter&, const std::function<Status(Value loop_variables)>& bind_and_run, Span span) override;
  // With constant bounds outside `for` statements (in a comprehension) it counts like `range`.
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  void set_stages(int stages) { num_stages_ = stages; }

 private:
  struct Axis {
    ir::Var var;
    ir::Expr extent;
    Value value;  // what the program sees: start + step * var
  };
  Axis make_axis(size_t index, Span span);
  Status emit(const std::vector<Axis>& axes, ir::Stmt body, Span span);
  Result<ir::Stmt> trace(const std::vector<Axis>& axes, const std::function<Status()>& body, Span span);

  TileContext& context_;
  std::string name_;  // as written, for messages
  ir::LoopKind kind_;
  std::vector<LoopRange> ranges_;
  int num_stages_ = 0;
};

// `start`, or `start, stop`, or `start, stop, step` of one axis.
Result<LoopRange> to_loop_range(std::string_view what, const std::vector<Value>& bounds, Span span);

}  // namespace tilepilot::stage
