#include "compiler/targets/gpu/schedule/gemm_overlap.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

using Stmts = std::vector<Stmt>;
ir::Effects effects_of_all(const Stmts& all) {
  ir::Effects effects;
  for (const Stmt& stmt : all) effects.add(ir::memory_effects_of(stmt));
  return effects;
}

// Registers of a thread for all fragments that these name.
int64_t registers_of(const ir::Effects& uses, int64_t threads) {
  ir::BufferSet all = uses.reads;
  all.insert(uses.writes.begin(), uses.writes.end());
  int64_t registers = 0;
  for (const ir::BufferData* buffer : all)
    if (buffer->scope == ir::Scope::fragment) registers += registers_of_fragment(*buffer, threads);
  return registers;
}

class OverlapSearch {
 public:
  OverlapSearch(const PipelinedLoops& loops, const Stmts& ahead, const Stmts& rest, int64_t registers)
      : loops_(loops), rest_(rest), registers_(registers) {
    for (const Stmt& load : ahead) ring_.insert(tile_of_load(load).get());
  }

  std::variant<GemmOverlap, std::string> run() {
    std::vector<size_t> gemms;
    for (size_t at = 0; at < rest_.size(); ++at)
      if (ir::contains<ir::Gemm>(rest_[at])) gemms.push_back(at);
    if (gemms.size() < 2) return "";
    if (gemms.size() > 2) return fmt::format("the iteration has {} GEMMs", gemms.size());
    const Stmt &first = rest_[gemms[0]], &second = rest_[gemms[1]];
    const auto middle = rest_.begin() + static_cast<ptrdiff_t>(gemms[0]);
    overlap_.before.assign(rest_.begin(), middle);
    if (second != rest_.back()) return "more is computed after the second GEMM";
    if (std::string why = not_apart(first, second); !why.empty()) return why;
    split_work(Stmts(middle + 1, rest_.end() - 1), ir::memory_effects_of(second));
    if (overlap_.beside.empty()) return "all work between the GEMMs needs what the second one uses";
    const int64_t needed = registers_of(effects_of_all(rest_), loops_.threads()) + kOverheadRegisters;
    if (needed > registers_)
      return fmt::format("that takes {} registers of each thread, which has {}", needed, registers_);
    overlap_.first = asynchronous(first);
    overlap_.second = asynchronous(second);
    return std::move(overlap_);
  }

 private:
  const PipelinedLoops& loops_;
  const Stmts& rest_;
  const int64_t registers_;
  ir::BufferSet ring_;
  GemmOverlap overlap_;

  // What keeps the second GEMM of an iteration from being started after the first of the next one.
  std::string not_apart(const Stmt& first, const Stmt& second) const {
    const ir::Effects later = ir::memory_effects_of(second);
    for (const Stmt& product : {first, second}) {
      if (!loops_.may_be_async(product)) return "a GEMM is no wgmma that may be asynchronous";
      const ir::Gemm& gemm = *ir::as<ir::Gemm>(product);
      for (const ir::Buffer& operand : {gemm.a.buffer, gemm.b.buffer})
        if (operand->scope == ir::Scope::shared && !ring_.contains(operand.get()) &&
            effects_of_all(rest_).writes.contains(memory_of(operand)))
          return fmt::format("`{}` is written by the iteration that multiplies it", operand->name);
    }
    if (ir::depend(ir::memory_effects_of(first), later) || ir::depend(effects_of_all(overlap_.before), later))
      return "the first GEMM needs the second one of the iteration before";
    for (const Stmt& stmt : rest_)  // a tile of the ring is given back once
      for (const ir::BufferData* tile : ring_)
        if (stmt != second && later.reads.contains(tile) && ir::memory_effects_of(stmt).reads.contains(tile))
          return fmt::format("`{}` is used beside the second GEMM, too", tile->name);
    ir::Variables own;
    for (const Stmt& stmt : rest_) own.merge(ir::bound_in(stmt));
    return ir::mentions(second, own) ? "the second GEMM names values of its iteration" : "";
  }

  void split_work(const Stmts& work, const ir::Effects& second) {
    ir::Effects put_off = second;
    ir::Variables late;
    for (const Stmt& stmt : work) {
      const ir::Effects uses = ir::memory_effects_of(stmt);
      const bool waits = ir::depend(uses, put_off) || ir::mentions(stmt, late);
      (waits ? overlap_.after : overlap_.beside).push_back(stmt);
      if (!waits) continue;
      put_off.add(uses);
      late.merge(ir::bound_in(stmt));
    }
  }
};

class OverlapLoop {
 public:
  OverlapLoop(const ir::For& loop, const GemmOverlap& overlap, const TilesOfOverlap& tiles)
      : loop_(loop), overlap_(overlap), tiles_(tiles) {}

  Stmts run() const {
    const Span span = loop_.body->span;
    const ir::Var before = ir::make_var(var()->name, var()->type);
    const Expr &count = loop_.extents[0], at = ir::var_ref(before, span);
    const Expr zero = ir::int_imm(0, var()->type), one = ir::int_imm(1, var()->type);
    const Expr last = ir::binary(BinaryOp::sub, count, one, span);
    Stmts all = again(iteration(zero, nullptr));
    Stmts body = iteration(ir::binary(BinaryOp::add, at, one, span), at);
    all.push_back(ir::make_stmt(
        ir::For{ir::LoopKind::serial, {before}, {last}, 0, ir::make_stmt(ir::Block{std::move(body)}, span)}, span));
    add({overlap_.second}, last, all);
    wait(0, all);
    release(tiles_.second, last, all);
    const auto known = ir::constant_int(count);
    if (known && *known >= 1) return all;
    const Expr any = ir::binary(BinaryOp::ge, count, one, span);
    return {ir::make_stmt(ir::If{any, ir::make_stmt(ir::Block{std::move(all)}, span), nullptr}, span)};
  }

 private:
  const ir::For& loop_;
  const GemmOverlap& overlap_;
  const TilesOfOverlap& tiles_;

  const ir::Var& var() const { return loop_.vars[0]; }

  void add(const Stmts& part, const Expr& k, Stmts& out) const {
    for (const Stmt& stmt : part) {
      Stmt here = ir::substitute(stmt, [&](const ir::Var& other) { return other == var() ? k : nullptr; });
      for (const OverlapTiles* tiles : {&tiles_.first, &tiles_.work, &tiles_.second})
        if (tiles->ring) here = tiles->ring->in_slot(k, here);
      out.push_back(here);
    }
  }
  void wait(int64_t count, Stmts& out) const {
    out.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, count}, overlap_.first->span));
  }
  void wait_for(const OverlapTiles& tiles, const Expr& k, Stmts& out) const {
    if (tiles.ring) tiles.ring->wait_for(k, overlap_.first->span, out);
  }
  static void release(const OverlapTiles& tiles, const Expr& k, Stmts& out) {
    if (tiles.ring) out.push_back(tiles.release(k));
  }

  bool begins_with_tiles() const {
    std::unordered_set<const ir::BufferData*> names;
    if (tiles_.first.ring)
      for (const auto& [tile, slots] : tiles_.first.ring->slots) names.insert(tile);
    return std::any_of(overlap_.before.begin(), overlap_.before.end(),
                       [&](const Stmt& stmt) { return ir::accesses_any(stmt, names); });
  }

  // Iteration `k`, but the second GEMM of `last`; null: there is none before.
  Stmts iteration(const Expr& k, const Expr& last) const {
    Stmts out;
    wait_for(tiles_.work, k, out);
    const bool early = begins_with_tiles();
    if (early) wait_for(tiles_.first, k, out);
    add(overlap_.before, k, out);
    if (!early) wait_for(tiles_.first, k, out);
    add({overlap_.first}, k, out);
    if (last) add({overlap_.second}, last, out);
    wait(last ? 1 : 0, out);
    release(tiles_.first, k, out);
    add(overlap_.beside, k, out);
    // Here, since the assembler moves work over a wait for wgmma, but not over a barrier.
    wait_for(tiles_.second, k, out);
    if (last) {
      wait(0, out);
      release(tiles_.second, last, out);
    }
    add(overlap_.after, k, out);
    release(tiles_.work, k, out);
    return out;
  }
};

}  // namespace

std::variant<GemmOverlap, std::string> find_gemm_overlap(const PipelinedLoops& loops, const Stmts& ahead,
                                                         const Stmts& rest, int64_t registers) {
  return OverlapSearch(loops, ahead, rest, registers).run();
}

Stmts overlapped_loop(const ir::For& loop, const GemmOverlap& overlap, const TilesOfOverlap& tiles) {
  return OverlapLoop(loop, overlap, tiles).run();
}

}  // namespace tilepilot::targets::gpu
