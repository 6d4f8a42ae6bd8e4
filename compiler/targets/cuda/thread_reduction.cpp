#include "compiler/targets/cuda/thread_reduction.h"

#include <fmt/format.h>

#include <bit>

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cuda {

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

  void run(const ir::Buffer& board, Stmts& out) {
    const SplitModes modes = split_modes(reduction_.along, lowering_.threads);
    for (const ThreadMode& mode : modes.lanes) over_lanes(mode, out);
    if (!modes.warps.empty()) over_warps(modes.warps, board, out);
  }

 private:
  Lowering& lowering_;
  const ThreadReduction reduction_;
  const Span span_;
  const int64_t count_;

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
  void over_warps(const std::vector<ThreadMode>& across, const ir::Buffer& board, Stmts& out) {
    const int64_t threads = lowering_.threads;
    const Stmt meet = ir::make_stmt(lowering_.meet, span_);
    const ir::Var leave = lowering_.variable("r", count_), take = lowering_.variable("r", count_);
    const Expr place = plus(times(ir::var_ref(leave), threads), lowering_.thread_number());
    out.push_back(unrolled(leave, count_, {ir::make_stmt(ir::Store{board, {place}, own(leave)}, span_)}, span_));
    out.push_back(meet);
    // This thread's number without its digits along the modes, and all values of these digits.
    Expr base = lowering_.thread_number(), offset = ir::int_imm(0);
    std::vector<std::pair<ir::Var, int64_t>> loops;
    for (const ThreadMode& mode : across) {
      const Expr digit = remainder(quotient(lowering_.thread_number(), mode.weight), mode.extent);
      base = ir::binary(ir::BinaryOp::sub, base, times(digit, mode.weight), span_);
      loops.emplace_back(lowering_.variable("w", mode.extent), mode.extent);
      offset = plus(offset, times(ir::var_ref(loops.back().first), mode.weight));
    }
    const Expr first = lowering_.let("first", base, threads, span_, out);
    const Expr there = plus(times(ir::var_ref(take), threads), plus(first, offset));
    Stmts body{set(ir::var_ref(take), reduction_.combined(own(take), ir::load(board, {there}, span_)))};
    for (const auto& [var, extent] : loops) {
      const auto kind = extent <= 32 ? ir::LoopKind::unrolled : ir::LoopKind::serial;
      body = {ir::make_stmt(
          ir::For{kind, {var}, {ir::int_imm(extent)}, 0, ir::make_stmt(ir::Block{std::move(body)}, span_)}, span_)};
    }
    body.insert(body.begin(), set(ir::var_ref(take), reduction_.identity));
    out.push_back(unrolled(take, count_, std::move(body), span_));
  }
};

}  // namespace

ir::DType accumulator_type(ir::DType type) { return type.is_small_float() ? ir::kFloat32 : type; }

std::vector<ThreadMode> modes_along(const layout::Fragment& fragment, size_t axis) {
  const int64_t step = layout::row_major_strides(fragment.cover())[axis];
  std::vector<ThreadMode> along;
  int64_t weight = 1;
  for (const layout::Mode& mode : fragment.threads().modes()) {
    if (mode.extent > 1 && mode.stride >= step && mode.stride < step * fragment.cover()[axis])
      along.push_back({weight, mode.extent});
    weight *= mode.extent;
  }
  return along;
}

SplitModes split_modes(const std::vector<ThreadMode>& along, int64_t threads) {
  const auto is_power = [](int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); };
  SplitModes split;
  for (const ThreadMode& mode : along) {
    const int64_t lanes = layout::kWarpSize / mode.weight;
    if (threads % layout::kWarpSize != 0 || mode.weight >= layout::kWarpSize || !is_power(mode.weight)) {
      split.warps.push_back(mode);
    } else if (mode.extent <= lanes && is_power(mode.extent)) {
      split.lanes.push_back(mode);
    } else if (mode.extent % lanes == 0) {
      split.lanes.push_back({mode.weight, lanes});
      split.warps.push_back({layout::kWarpSize, mode.extent / lanes});
    } else {
      split.warps.push_back(mode);
    }
  }
  return split;
}

void give_boards(ir::Kernel& kernel, Inference& inference) {
  const int64_t threads = thread_count(kernel);
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        const auto* reduce = ir::as<ir::Reduce>(stmt);
        if (reduce == nullptr) return;
        const layout::Fragment& source = inference.fragments.at(reduce->source.buffer.get());
        const ir::Buffer& result = reduce->destination.buffer;
        if (split_modes(modes_along(source, static_cast<size_t>(reduce->axis)), threads).warps.empty()) return;
        const ir::DType type = accumulator_type(result->type);
        const int64_t count = inference.fragments.at(result.get()).register_count() * threads;
        kernel.allocations.push_back(std::make_shared<ir::BufferData>(
            ir::BufferData{result->name + "_board", type, ir::Scope::shared, {ir::int_imm(count)}, {}, result->span}));
        const ir::Buffer& board = kernel.allocations.back();
        inference.tiles.emplace(board.get(), layout::SharedLayout::linear({count}, type.bytes() * 8));
        inference.boards.emplace(stmt.get(), board);
      },
      [](const Expr&) {});
}

void combine_threads(Lowering& lowering, ThreadReduction reduction, const ir::Buffer& board, Span span, Stmts& out) {
  Combination(lowering, std::move(reduction), span).run(board, out);
}

}  // namespace tilepilot::targets::cuda
