#include "compiler/targets/gpu/schedule/software_pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;

namespace {

Expr sum(const Expr& a, int64_t b) {
  return b == 0 ? a : ir::binary(BinaryOp::add, a, ir::int_imm(b, a->type), a->span);
}

class Pipeliner : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Pipeliner(PipelinedKernel& result, const Machine& machine)
      : result_(result), machine_(machine), loops_(result.kernel, machine) {}

  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr && !ir::as<ir::While>(stmt)) return rewrite_children(stmt);
    if (loop == nullptr || loop->kind != ir::LoopKind::pipelined) {
      ++depth_;
      Stmt inner = rewrite_children(stmt);
      --depth_;
      return inner;
    }
    return pipelined(*loop, stmt->span);
  }

 private:
  PipelinedKernel& result_;
  const Machine& machine_;
  const PipelinedLoops loops_;
  int depth_ = 0;

  Stmt serial(const ir::For& loop, Stmt body, Span span) const {
    return ir::make_stmt(ir::For{ir::LoopKind::serial, loop.vars, loop.extents, 0, std::move(body)}, span);
  }

  Stmt pipelined(const ir::For& loop, Span span) {
    auto [condition, ahead, rest, decisions] = loops_.parts(loop);
    result_.decisions.insert(result_.decisions.end(), decisions.begin(), decisions.end());
    ++depth_;
    for (Stmt& stmt : rest) stmt = rewrite(stmt);
    --depth_;
    if (ahead.empty()) {
      if (loop.num_stages > 1)
        result_.notes.emplace_back(span, "no copy of this loop can run ahead: its iterations run one after another");
      return serial(loop, block(std::move(rest), loop.body->span), span);
    }
    if (loop.num_stages < 2) return in_one_stage(loop, ahead, rest, span);
    Ring ring(std::move(ahead), loop.num_stages);
    put_in_place(ring);
    return in_stages(loop, std::move(ring), {condition, block(std::move(rest), loop.body->span)}, span);
  }

  // The ring takes the places of its tiles.
  void put_in_place(const Ring& ring) {
    ring.move_requests(result_.kernel);
    for (const auto& [tile, slots] : ring.slots) {
      auto& all = result_.kernel.allocations;
      const auto is_tile = [&, tile = tile](const Buffer& buffer) { return buffer.get() == tile; };
      *std::find_if(all.begin(), all.end(), is_tile) = slots;
      result_.rings.push_back(slots);
    }
  }

  Buffer allocated(Buffer buffer) {
    result_.kernel.allocations.push_back(buffer);
    return buffer;
  }

  void decide(const Ring& ring, const std::string& by, const std::string& obstacle) {
    for (Decision& decision : ring.decisions(by, obstacle)) result_.decisions.push_back(std::move(decision));
  }

  // Barriers for TMA, if it can make all of the copies.
  // `counted`: slots are used in every iteration, once each time around.
  void use_engine(Ring& ring, bool counted, Span span) {
    if (!machine_.has_tma) return decide(ring, "by the threads", fmt::format("not TMA: {} has none", machine_.target));
    for (const Stmt& stmt : ring.copies) {
      const std::string why = tma_obstacle_of_load(stmt);
      if (why.empty()) continue;
      const std::string name = ring.copies.size() > 1 ? fmt::format("`{}`: ", tensor_of_load(stmt)->name) : "";
      return decide(ring, "by the threads", "not TMA: " + name + why);
    }
    decide(ring, ring.stages > 1 ? "by TMA" : "by TMA, as soon as its tile is free", "");
    ring.full = allocated(slot_barriers("full", ring.stages, 1, span));
    if (depth_ == 0 && counted) return;  // each slot's phases are counted from 0
    ring.phases = allocated(slot_phases("phases", span));
    result_.beginning.push_back(ir::make_stmt(ir::Store{ring.phases, {ir::int_imm(0)}, ir::int_imm(0)}, span));
  }

  // `first` may be null.
  static Expr both(const Expr& first, const Expr& second) {
    return first ? ir::binary(BinaryOp::logical_and, first, second, second->span) : second;
  }

  // What an iteration does with its tiles, and when.
  struct Iteration {
    Expr condition;
    Stmt rest;
  };

  Stmt in_stages(const ir::For& loop, Ring ring, const Iteration& iteration, Span span) {
    const Expr& condition = iteration.condition;
    const Stmt& rest = iteration.rest;
    const int64_t stages = loop.num_stages;
    const ir::Var& var = loop.vars[0];
    const Expr& count = loop.extents[0];
    const Expr k = ir::var_ref(var, span);
    use_engine(ring, !condition, span);
    const auto guarded = [&](const Expr& number, const Expr& wanted, std::vector<Stmt>& out) {
      const Expr exists = both(wanted, ir::binary(BinaryOp::lt, number, count, span));
      Stmt copies = block(ring.copies_of(var, number), span);
      if (condition) {
        const Expr then =
            ir::substitute(condition, [&](const ir::Var& other) { return other == var ? number : nullptr; });
        copies = ir::make_stmt(ir::If{then, copies, nullptr}, span);
      }
      out.push_back(ir::make_stmt(ir::If{exists, copies, nullptr}, span));
      if (!ring.full) out.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::commit_copies, 0}, span));
    };
    const Stmt barrier_cycles = ir::make_stmt(ir::Sync{}, span);
    // TMA fills the last slot with the others, as nothing has been read from it yet. Groups of cp.async are counted.
    const int64_t filled = ring.full ? stages : stages - 1;
    const auto refill = [&](std::vector<Stmt>& out) {
      const Expr read = ring.full ? ir::binary(BinaryOp::gt, k, ir::int_imm(0, var->type), span) : nullptr;
      guarded(sum(k, stages - 1), read, out);
    };
    std::vector<Stmt> all;
    if (depth_ > 0) all.push_back(barrier_cycles);  // readers of an earlier run of this loop
    for (int64_t stage = 0; stage < filled; ++stage) guarded(ir::int_imm(stage, var->type), nullptr, all);
    std::vector<Stmt> body;
    if (condition) return conditional(loop, ring, iteration, refill, std::move(all), span);
    ring.wait_for(k, span, body);
    if (const std::vector<Stmt> products = loops_.async_gemms(ring.copies, rest); !products.empty()) {
      if (!ring.full) body.push_back(barrier_cycles);
      for (const Stmt& product : products) body.push_back(ring.in_slot(k, product));
      body.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, static_cast<int64_t>(products.size())}, span));
      body.push_back(barrier_cycles);
      refill(body);
      all.push_back(serial(loop, block(std::move(body), loop.body->span), span));
      all.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, 0}, span));
      return block(std::move(all), span);
    }
    body.push_back(barrier_cycles);
    refill(body);
    for (const Stmt& stmt : ir::statements(ring.in_slot(k, rest))) body.push_back(stmt);
    all.push_back(serial(loop, block(std::move(body), loop.body->span), span));
    return block(std::move(all), span);
  }

  // Each tile is filled for the next iteration once this one has read it, and waited for where that one does.
  Stmt in_one_stage(const ir::For& loop, const std::vector<Stmt>& loads, const std::vector<Stmt>& rest, Span span) {
    const ir::Var& var = loop.vars[0];
    const Expr k = ir::var_ref(var, span);
    const Stmt barrier_cycles = ir::make_stmt(ir::Sync{}, span);
    std::vector<Stmt> all, body;
    if (depth_ > 0) all.push_back(barrier_cycles);  // readers of an earlier run of this loop
    struct Tile {
      Ring ring;
      size_t first, last;  // statements that use it
    };
    std::vector<Tile> tiles;
    const auto fill = [&](const Ring& ring, const Expr& number, std::vector<Stmt>& out) {
      const Expr exists = ir::binary(BinaryOp::lt, number, loop.extents[0], span);
      out.push_back(ir::make_stmt(ir::If{exists, block(ring.copies_of(var, number), span), nullptr}, span));
    };
    for (const Stmt& load : loads) {
      Tile tile{Ring({load}, 1), rest.size(), 0};
      const Buffer own = tile_of_load(load);
      for (size_t at = 0; at < rest.size(); ++at) {
        if (ir::count_accesses(rest[at], own.get()) == 0) continue;
        tile.first = std::min(tile.first, at);
        tile.last = at;
      }
      put_in_place(tile.ring);
      use_engine(tile.ring, true, span);
      fill(tile.ring, ir::int_imm(0, var->type), all);
      tiles.push_back(std::move(tile));
    }
    for (size_t at = 0; at < rest.size(); ++at) {
      for (const Tile& tile : tiles)
        if (tile.first == at) tile.ring.wait_for(k, span, body);
      Stmt stmt = rest[at];
      bool is_last = false;
      for (const Tile& tile : tiles) {
        stmt = tile.ring.in_slot(k, stmt);
        is_last |= tile.last == at;
      }
      body.push_back(stmt);
      if (is_last) body.push_back(barrier_cycles);
      for (const Tile& tile : tiles)
        if (tile.last == at) fill(tile.ring, sum(k, 1), body);
    }
    all.push_back(serial(loop, block(std::move(body), loop.body->span), span));
    return block(std::move(all), span);
  }

  // Iterations that are left out take their turn all the same: their slots stay empty.
  template <class Refill>
  Stmt conditional(const ir::For& loop, const Ring& ring, const Iteration& iteration, const Refill& refill,
                   std::vector<Stmt> all, Span span) {
    const ir::Var& var = loop.vars[0];
    const Expr k = ir::var_ref(var, span);
    std::vector<Stmt> body, inside;
    ring.wait_for(k, span, ring.full ? inside : body);
    body.push_back(ir::make_stmt(ir::Sync{}, span));
    refill(body);
    for (const Stmt& stmt : ir::statements(ring.in_slot(k, iteration.rest))) inside.push_back(stmt);
    body.push_back(ir::make_stmt(ir::If{iteration.condition, block(std::move(inside), span), nullptr}, span));
    all.push_back(serial(loop, block(std::move(body), loop.body->span), span));
    return block(std::move(all), span);
  }
};

}  // namespace

PipelinedKernel pipeline_loops(const ir::Kernel& kernel, const Machine& machine) {
  PipelinedKernel result{kernel, {}, {}, {}};
  const Stmt body = Pipeliner(result, machine).rewrite(kernel.body);
  std::vector<Stmt> all = std::move(result.beginning);
  for (const Stmt& stmt : ir::statements(body)) all.push_back(stmt);
  result.kernel.body = ir::make_stmt(ir::Block{std::move(all)}, kernel.body->span);
  return result;
}

}  // namespace tilepilot::targets::gpu
