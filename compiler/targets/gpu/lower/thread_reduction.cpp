#include "compiler/targets/gpu/lower/thread_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/ir/visit.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {

class Combination {
 public:
  Combination(Lowering& lowering, ThreadReduction reduction, Span span)
      : lowering_(lowering),
        reduction_(std::move(reduction)),
        span_(span),
        count_(*ir::constant_int(reduction_.values->shape[0])) {}

  void run(const ir::Buffer& scratch, Stmts& out) {
    const SplitModes modes = split_modes(reduction_.along, lowering_.threads);
    for (const ThreadMode& mode : modes.lanes) over_lanes(mode, out);
    if (modes.warps.empty()) return;
    if (lowering_.inference.compact_scratch && may_be_compact(modes)) combined_ = modes.lanes;
    std::sort(combined_.begin(), combined_.end(),
              [](const ThreadMode& a, const ThreadMode& b) { return a.weight > b.weight; });
    over_warps(modes.warps, scratch, out);
  }

 private:
  Lowering& lowering_;
  const ThreadReduction reduction_;
  const Span span_;
  const int64_t count_;
  std::vector<ThreadMode> combined_;  // lanes of which one leaves the value, largest weights first

  // A thread's number without its digits along the lanes that have the same value.
  Expr compact(Expr number) const {
    for (const ThreadMode& mode : combined_)
      number = plus(times(quotient(number, mode.weight * mode.extent), mode.weight), remainder(number, mode.weight));
    return number;
  }
  // Whether the thread's digits along these lanes are 0; null if there are none.
  Expr is_first_lane() const {
    Expr condition;
    for (const ThreadMode& mode : combined_) {
      const Expr digit = remainder(quotient(lowering_.thread_number(), mode.weight), mode.extent);
      condition = both(condition, ir::binary(ir::BinaryOp::eq, digit, ir::int_imm(0), span_));
    }
    return condition;
  }

  Stmt set(const Expr& place, const Expr& value) const {
    return ir::make_stmt(ir::Store{reduction_.values, {place}, value}, span_);
  }
  Expr own(const ir::Var& r) const { return ir::load(reduction_.values, {ir::var_ref(r)}, span_); }

  void over_lanes(const ThreadMode& mode, Stmts& out) {
    for (int64_t mask = mode.weight; mask < mode.weight * mode.extent; mask *= 2) {
      const ir::Var r = lowering_.variable("r", count_), other = ir::make_var("other", reduction_.values->type);
      const Stmt shuffle =
          ir::make_stmt(ir::Shuffle{ir::ShuffleOp::by_xor, own(r), ir::int_imm(mask), 32, other}, span_);
      out.push_back(
          unrolled(r, count_, {shuffle, set(ir::var_ref(r), reduction_.combined(own(r), ir::var_ref(other)))}, span_));
    }
  }

  // Every thread leaves what it has; then each combines what those have that differ from it along these modes.
  void over_warps(const std::vector<ThreadMode>& across, const ir::Buffer& scratch, Stmts& out) {
    const int64_t threads = lowering_.threads;
    const int64_t places = scratch_size(split_modes(reduction_.along, threads), threads, !combined_.empty());
    const Stmt sync = ir::make_stmt(lowering_.sync, span_);
    const ir::Var leave = lowering_.variable("r", count_), take = lowering_.variable("r", count_);
    const Expr place = plus(times(ir::var_ref(leave), places), compact(lowering_.thread_number()));
    const Stmt left = unrolled(leave, count_, {ir::make_stmt(ir::Store{scratch, {place}, own(leave)}, span_)}, span_);
    const Expr first_lane = is_first_lane();
    out.push_back(first_lane ? ir::make_stmt(ir::If{first_lane, left, nullptr}, span_) : left);
    out.push_back(sync);
    // This thread's number without its digits along the modes, and all values of these digits.
    const bool leads = across.size() == 1 && across[0].weight * across[0].extent == threads;
    Expr base = lowering_.thread_number(), offset = ir::int_imm(0);
    std::vector<std::pair<ir::Var, int64_t>> loops;
    for (const ThreadMode& mode : across) {
      if (leads) {
        base = remainder(base, mode.weight);  // the simple form, of which it is plain that all its places exist
      } else {
        const Expr digit = remainder(quotient(lowering_.thread_number(), mode.weight), mode.extent);
        base = ir::binary(ir::BinaryOp::sub, base, times(digit, mode.weight), span_);
      }
      loops.emplace_back(lowering_.variable("w", mode.extent), mode.extent);
      offset = plus(offset, times(ir::var_ref(loops.back().first), mode.weight));
    }
    const Expr first = lowering_.let("first", base, leads ? across[0].weight : threads, span_, out);
    const auto left_by = [&](const Expr& thread) {
      return ir::load(scratch, {plus(times(ir::var_ref(take), places), compact(thread))}, span_);
    };
    Stmts body{set(ir::var_ref(take), reduction_.combined(own(take), left_by(plus(first, offset))))};
    Expr condition;
    if (!reduction_.identity) condition = ir::binary(ir::BinaryOp::gt, offset, ir::int_imm(0), span_);
    // The last threads of a block may be fewer than others that are combined.
    if (std::any_of(across.begin(), across.end(),
                    [&](const ThreadMode& mode) { return threads % (mode.weight * mode.extent) != 0; }))
      condition = both(condition, ir::binary(ir::BinaryOp::lt, plus(first, offset), ir::int_imm(threads), span_));
    if (condition)
      body = {ir::make_stmt(ir::If{condition, ir::make_stmt(ir::Block{std::move(body)}, span_), nullptr}, span_)};
    for (const auto& [var, extent] : loops) {
      const auto kind = extent <= 32 ? ir::LoopKind::unrolled : ir::LoopKind::serial;
      body = {ir::make_stmt(
          ir::For{kind, {var}, {ir::int_imm(extent)}, 0, ir::make_stmt(ir::Block{std::move(body)}, span_)}, span_)};
    }
    body.insert(body.begin(), set(ir::var_ref(take), reduction_.identity ? reduction_.identity : left_by(first)));
    out.push_back(unrolled(take, count_, std::move(body), span_));
  }
};

}  // namespace

void combine_threads(Lowering& lowering, ThreadReduction reduction, const ir::Buffer& scratch, Span span, Stmts& out) {
  Combination(lowering, std::move(reduction), span).run(scratch, out);
}

}  // namespace tilepilot::targets::gpu
