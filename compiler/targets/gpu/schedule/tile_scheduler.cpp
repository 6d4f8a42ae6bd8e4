#include "compiler/targets/gpu/schedule/tile_scheduler.h"

#include "compiler/ir/cluster.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;
using ir::Var;
using Stmts = std::vector<Stmt>;

namespace {

class TileScheduler {
 public:
  TileScheduler(const ir::Kernel& kernel, const TileSchedule& schedule, const Var& block)
      : kernel_(kernel),
        schedule_(schedule),
        block_(block),
        span_(kernel.body->span),
        in_cluster_(ir::cluster_size(kernel)),
        at_(clusters(ir::var_ref(block))),
        tiles_(clusters(block_count(kernel))) {}

  // The hardware schedules blocks as others end.
  Stmts once(const Stmts& body) const {
    return of_tile(schedule_.last_first ? op(BinaryOp::sub, op(BinaryOp::sub, tiles_, ir::int_imm(1)), at_) : at_,
                   body);
  }

  Stmts persistent_loop(const Stmts& body) const {
    const Var given = ir::make_var("blocks_given", ir::kInt32), blocks = ir::make_var("blocks", ir::kInt32),
              iteration = ir::make_var("iteration", ir::kInt32);
    const Expr step = ir::var_ref(blocks), rest = op(BinaryOp::sub, step, ir::int_imm(1));
    const Expr iterations = op(BinaryOp::floor_div, op(BinaryOp::add, op(BinaryOp::sub, tiles_, at_), rest), step);
    Stmts inside = of_tile(op(BinaryOp::add, at_, op(BinaryOp::mul, ir::var_ref(iteration), step)), body);
    return {
        ir::make_stmt(ir::ExternCall{"grid_blocks", {}, given}, span_),
        ir::make_stmt(ir::Let{blocks, op(BinaryOp::max, clusters(ir::var_ref(given)), ir::int_imm(1))}, span_),
        ir::make_stmt(ir::For{ir::LoopKind::serial, {iteration}, {iterations}, 0, gpu::block(std::move(inside), span_)},
                      span_)};
  }

 private:
  const ir::Kernel& kernel_;
  const TileSchedule& schedule_;
  const Var& block_;
  const Span span_;
  const int64_t in_cluster_;
  const Expr at_, tiles_;  // tiles are those of one block, or of all blocks of a cluster

  Expr op(BinaryOp which, const Expr& a, const Expr& b) const { return ir::binary(which, a, b, span_); }
  Expr clusters(const Expr& count) const {
    return in_cluster_ == 1 ? count : op(BinaryOp::floor_div, count, ir::int_imm(in_cluster_));
  }

  Stmts of_tile(const Expr& number, const Stmts& body) const {
    const Var tile = ir::make_var("tile", ir::kInt32);
    Stmts out{ir::make_stmt(ir::Let{tile, number}, span_)};
    const Expr rank = op(BinaryOp::floor_mod, ir::var_ref(block_), ir::int_imm(in_cluster_));
    const Stmts names = in_cluster_ == 1 ? name_blocks(kernel_, schedule_.order, ir::var_ref(tile))
                                         : name_blocks_of_cluster(kernel_, schedule_.order, ir::var_ref(tile), rank);
    out.insert(out.end(), names.begin(), names.end());
    out.insert(out.end(), body.begin(), body.end());
    return out;
  }
};

}  // namespace

Expr block_count(const ir::Kernel& kernel) {
  Expr count = ir::int_imm(1);
  for (const Expr& given : kernel.grid) {
    const Expr extent = ir::cast(given, ir::kInt32);
    count = ir::constant_int(count) == 1 ? extent : ir::binary(BinaryOp::mul, count, extent, extent->span);
  }
  return count;
}

Stmts scheduled_tiles(const ir::Kernel& kernel, const TileSchedule& schedule, const Var& block, Stmts body) {
  const TileScheduler all(kernel, schedule, block);
  return schedule.persistent ? all.persistent_loop(body) : all.once(body);
}

}  // namespace tilepilot::targets::gpu
