#include "compiler/targets/gpu/schedule/rasterisation.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

constexpr int64_t kGemmBand = 16;  // rows

class Naming {
 public:
  explicit Naming(const ir::Kernel& kernel) : kernel_(kernel), span_(kernel.body->span), values_(kernel.grid.size()) {}

  std::vector<Stmt> run(const Rasterisation& order, const Expr& number) {
    std::vector<size_t> first;
    for (size_t axis = 0; axis < kernel_.grid.size(); ++axis)
      if (std::find(order.last.begin(), order.last.end(), axis) == order.last.end()) first.push_back(axis);
    name(first, order, number);
    for (size_t axis = 0; axis < values_.size(); ++axis) {
      const Var& var = kernel_.block_vars[axis];
      out_.push_back(ir::make_stmt(ir::Let{var, ir::cast(values_[axis], var->type)}, span_));
    }
    return std::move(out_);
  }

 private:
  const ir::Kernel& kernel_;
  const Span span_;
  std::vector<Expr> values_;  // of the block variables
  std::vector<Stmt> out_;

  Expr op(BinaryOp which, const Expr& a, const Expr& b) const { return ir::binary(which, a, b, span_); }
  Expr extent(size_t axis) const { return ir::cast(kernel_.grid[axis], ir::kInt32); }

  Expr let(const char* name, const Expr& value) {
    const Var var = ir::make_var(name, ir::kInt32);
    out_.push_back(ir::make_stmt(ir::Let{var, value}, span_));
    return ir::var_ref(var);
  }

  void name(const std::vector<size_t>& first, const Rasterisation& order, const Expr& number) {
    if (order.last.empty()) return split(first, number);
    const Expr all = count(first);
    const auto known = ir::constant_int(all);
    if (known && *known <= order.most) {
      split(first, op(BinaryOp::floor_mod, number, all));
      return split(order.last, op(BinaryOp::floor_div, number, all));
    }
    const Expr most = ir::int_imm(order.most), in_band = op(BinaryOp::mul, count(order.last), most);
    const Expr band = let("band", op(BinaryOp::floor_div, number, in_band));
    const Expr within = let("within", op(BinaryOp::floor_mod, number, in_band));
    const Expr start = op(BinaryOp::mul, band, most), left = op(BinaryOp::min, op(BinaryOp::sub, all, start), most);
    const bool even = known && *known % order.most == 0;
    const Expr high = let("high", even ? most : op(BinaryOp::max, left, ir::int_imm(1)));
    split(first, op(BinaryOp::add, start, op(BinaryOp::floor_mod, within, high)));
    split(order.last, op(BinaryOp::floor_div, within, high));
  }

  // The bound is known by itself; what follows from it needs no checks.
  void split(const std::vector<size_t>& axes, Expr rest) {
    for (size_t k = 0; k < axes.size(); ++k) {
      const Expr all = extent(axes[k]), end = op(BinaryOp::sub, all, ir::int_imm(1));
      values_[axes[k]] = k + 1 == axes.size() ? op(BinaryOp::min, rest, end) : op(BinaryOp::floor_mod, rest, all);
      rest = op(BinaryOp::floor_div, rest, all);
    }
  }

  Expr count(const std::vector<size_t>& axes) const {
    int64_t constant = 1;
    Expr all;
    for (const size_t axis : axes) {
      const auto one = ir::constant_int(kernel_.grid[axis]);
      if (one)
        constant *= *one;
      else
        all = all ? op(BinaryOp::mul, all, extent(axis)) : extent(axis);
    }
    if (!all) return ir::int_imm(constant);
    return constant == 1 ? all : op(BinaryOp::mul, all, ir::int_imm(constant));
  }
};

// Whether a block may wait here for what another one does.
bool may_wait(const Stmt& stmt) {
  const auto* atomic = ir::as<ir::Atomic>(stmt);
  const auto* sync = ir::as<ir::Sync>(stmt);
  return ir::as<ir::While>(stmt) || (atomic && atomic->previous) || (sync && sync->scope == ir::SyncScope::grid);
}

}  // namespace

Rasterisation gemm_rasterisation() { return {{0}, kGemmBand}; }
Rasterisation rasterisation_by_work(std::vector<size_t> axes, int64_t most) { return {std::move(axes), most}; }

std::vector<Stmt> name_blocks(const ir::Kernel& kernel, const Rasterisation& order, const Expr& number) {
  return Naming(kernel).run(order, number);
}

std::vector<Stmt> name_blocks_of_cluster(const ir::Kernel& kernel, const Rasterisation& order, const Expr& number,
                                         const Expr& rank) {
  const Span span = kernel.body->span;
  const auto op = [&](BinaryOp which, const Expr& a, const Expr& b) { return ir::binary(which, a, b, span); };
  ir::Kernel clusters = kernel;
  for (size_t axis = 0; axis < kernel.grid.size(); ++axis) {
    clusters.block_vars[axis] = ir::make_var("cluster_" + kernel.block_vars[axis]->name, ir::kInt32);
    clusters.grid[axis] = ir::int_imm(*ir::constant_int(kernel.grid[axis]) / kernel.cluster[axis]);
  }
  std::vector<Stmt> out = name_blocks(clusters, order, number);
  Expr rest = rank;
  for (size_t axis = 0; axis < kernel.grid.size(); ++axis) {
    const Expr extent = ir::int_imm(kernel.cluster[axis]);
    Expr place = ir::var_ref(clusters.block_vars[axis]);
    if (kernel.cluster[axis] > 1) {
      place = op(BinaryOp::add, op(BinaryOp::mul, place, extent), op(BinaryOp::floor_mod, rest, extent));
      rest = op(BinaryOp::floor_div, rest, extent);
    }
    const Var& var = kernel.block_vars[axis];
    out.push_back(ir::make_stmt(ir::Let{var, ir::cast(place, var->type)}, span));
  }
  return out;
}

namespace {

// The kernel with its blocks in another order.
ir::Kernel reordered(const ir::Kernel& kernel, const Rasterisation& order) {
  static constexpr const char* kNames[] = {"column", "row", "layer"};
  const Span span = kernel.body->span;
  ir::Kernel result = kernel;
  Expr number, blocks;  // how many there are before the next axis
  for (size_t axis = 0; axis < kernel.grid.size(); ++axis) {
    result.block_vars[axis] = ir::make_var(kNames[axis], ir::kInt32);
    const Expr at = ir::var_ref(result.block_vars[axis]), extent = ir::cast(kernel.grid[axis], ir::kInt32);
    number = number ? ir::binary(BinaryOp::add, number, ir::binary(BinaryOp::mul, at, blocks, span), span) : at;
    blocks = blocks ? ir::binary(BinaryOp::mul, blocks, extent, span) : extent;
  }
  std::vector<Stmt> body = name_blocks(kernel, order, number);
  for (const Stmt& stmt : ir::statements(kernel.body)) body.push_back(stmt);
  result.body = ir::make_stmt(ir::Block{std::move(body)}, span);
  return result;
}

// Why the blocks of a kernel stay in the order of the grid; "" if they need not.
std::string not_reordered(const ir::Kernel& kernel) {
  if (!kernel.cluster.empty()) return "the blocks of a cluster stand beside each other";
  if (kernel.grid.size() < 2) return "the grid has one axis";
  return ir::contains(kernel.body, may_wait) ? "blocks may wait for each other" : "";
}

bool is_large(const ir::Kernel& kernel) {
  return std::none_of(kernel.grid.begin(), kernel.grid.end(),
                      [](const Expr& extent) { return ir::constant_int(extent).value_or(kGemmBand) < kGemmBand; });
}

}  // namespace

Rasterisation rasterisation_by_panels(const ir::BlockOrder& order) {
  return {{order.of_columns ? size_t{1} : size_t{0}}, order.panel};
}

Decision decision_of_panels(const ir::BlockOrder& order, const std::string& obstacle) {
  const std::string panels = fmt::format("panels of {} {}", order.panel, order.of_columns ? "columns" : "rows");
  if (obstacle.empty()) return {order.span, "order of blocks", panels, {}};
  return {order.span, "order of blocks", "that of the grid", {fmt::format("not {}: {}", panels, obstacle)}};
}

ir::Kernel rasterised(const ir::Kernel& kernel, bool uses_wgmma, std::vector<Decision>& decisions) {
  const std::string obstacle = not_reordered(kernel);
  if (kernel.order.panel > 0) decisions.push_back(decision_of_panels(kernel.order, obstacle));
  if (!obstacle.empty()) return kernel;
  if (kernel.order.panel > 0) return reordered(kernel, rasterisation_by_panels(kernel.order));
  const bool is_gemm = uses_wgmma && kernel.thread_vars.empty() && kernel.grid.size() == 2 && is_large(kernel);
  return is_gemm ? reordered(kernel, gemm_rasterisation()) : kernel;
}

}  // namespace tilepilot::targets::gpu
