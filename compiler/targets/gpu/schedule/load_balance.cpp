#include "compiler/targets/gpu/schedule/load_balance.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/bounds.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

// What tells how often pipelined loops run, and what tells that.
class Causes {
 public:
  explicit Causes(const ir::Kernel& kernel) : kernel_(kernel) {
    ir::walk(
        kernel.body, [&](const Stmt& stmt) { note(stmt); }, [](const Expr&) {});
  }

  std::vector<size_t> axes() {
    for (size_t at = 0; at < open_.size(); ++at) {
      const Expr expr = open_[at];
      if (ir::has_loads(expr)) return {};
      ir::walk(expr, [&](const Expr& part) {
        const auto* ref = ir::as<ir::VarRef>(part);
        if (ref && seen_.insert(ref->var.get()).second) follow(ref->var);
      });
    }
    if (!known_) return {};
    std::sort(axes_.begin(), axes_.end());
    return axes_;
  }

 private:
  const ir::Kernel& kernel_;
  std::unordered_map<const ir::VarData*, std::vector<Expr>> told_by_;
  ir::Variables unknown_, seen_;
  std::vector<Expr> open_;
  std::vector<size_t> axes_;
  bool known_ = true;

  void note(const Stmt& stmt) {
    if (const auto* loop = ir::as<ir::For>(stmt)) {
      for (const Var& var : loop->vars) told_by_[var.get()] = loop->extents;
      if (ir::contains(stmt, is_pipelined)) open_.insert(open_.end(), loop->extents.begin(), loop->extents.end());
    } else if (const auto* let = ir::as<ir::Let>(stmt)) {
      told_by_[let->var.get()] = {let->value};
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      if (ir::contains(stmt, is_pipelined)) open_.push_back(choice->condition);
    } else if (const Var bound = ir::bound_variable(*stmt)) {
      unknown_.insert(bound.get());
    }
  }

  void follow(const Var& var) {
    known_ = known_ && !unknown_.contains(var.get());
    if (const auto found = told_by_.find(var.get()); found != told_by_.end())
      open_.insert(open_.end(), found->second.begin(), found->second.end());
    const auto& all = kernel_.block_vars;
    const auto axis = std::find(all.begin(), all.end(), var);
    if (axis != all.end()) axes_.push_back(static_cast<size_t>(axis - all.begin()));
  }
};

}  // namespace

std::vector<size_t> axes_of_work(const ir::Kernel& kernel) { return Causes(kernel).axes(); }

namespace {

// What stands for numbers that only a launch tells.
constexpr int64_t kSomeExtent = 4096;

// The iterations of all pipelined loops of the first block along these axes, or the last one.
int64_t iterations_of(const ir::Kernel& kernel, const std::vector<size_t>& axes, bool last) {
  std::unordered_map<const ir::VarData*, Expr> values;
  for (size_t axis = 0; axis < kernel.block_vars.size(); ++axis) {
    const int64_t end = ir::constant_int(kernel.grid[axis]).value_or(kSomeExtent) - 1;
    const bool varies = std::find(axes.begin(), axes.end(), axis) != axes.end();
    const Var& var = kernel.block_vars[axis];
    values[var.get()] = ir::int_imm(varies && last ? end : 0, var->type);
  }
  const auto known = [&](const Expr& expr) {
    return ir::substitute(expr, [&](const Var& var) {
      const auto found = values.find(var.get());
      return found == values.end() ? ir::int_imm(kSomeExtent, var->type) : found->second;
    });
  };
  int64_t iterations = 0;
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        if (const auto* let = ir::as<ir::Let>(stmt)) values[let->var.get()] = known(let->value);
        if (is_pipelined(stmt)) iterations += ir::bounds(known(ir::as<ir::For>(stmt)->extents[0]), {}).hi;
      },
      [](const Expr&) {});
  return iterations;
}

constexpr int64_t kBandOfUnknownSize = 16;

std::optional<int64_t> volume_of(const std::vector<Expr>& extents) {
  int64_t volume = 1;
  for (const Expr& extent : extents) {
    const auto one = ir::constant_int(extent);
    if (!one) return std::nullopt;
    volume *= std::max<int64_t>(1, *one);
  }
  return volume;
}

// What pipelined loops move; of tensors that they write, there and back. None if a size is not known.
std::optional<int64_t> bytes_moved(const ir::Kernel& kernel) {
  std::unordered_map<const ir::BufferData*, int64_t> ways;
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        if (!is_pipelined(stmt)) return;
        ir::each_effect(stmt, [&](const ir::Buffer& buffer, bool writes) {
          if (buffer->scope != ir::Scope::global) return;
          int64_t& known = ways[buffer.get()];
          known = std::max<int64_t>(known, writes ? 2 : 1);
        });
      },
      [](const Expr&) {});
  int64_t bytes = 0;
  for (const auto& [buffer, times] : ways) {
    const auto volume = volume_of(buffer->shape);
    if (!volume) return std::nullopt;
    bytes += times * *volume * buffer->type.bits / 8;
  }
  return bytes;
}

}  // namespace

bool work_shrinks(const ir::Kernel& kernel, const std::vector<size_t>& axes) {
  return iterations_of(kernel, axes, true) < iterations_of(kernel, axes, false);
}

int64_t band_of_equal_work(const ir::Kernel& kernel, const std::vector<size_t>& axes, const Machine& machine) {
  std::vector<Expr> others;
  for (size_t axis = 0; axis < kernel.grid.size(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(kernel.grid[axis]);
  const auto all = volume_of(others), bytes = bytes_moved(kernel);
  if (!all || !bytes) return kBandOfUnknownSize;
  const int64_t of_each = std::max<int64_t>(1, *bytes / *all);
  const int64_t most = std::clamp<int64_t>(machine.cache_bytes / 2 / of_each, 1, *all);
  const int64_t bands = (*all + most - 1) / most;
  return (*all + bands - 1) / bands;
}

}  // namespace tilepilot::targets::gpu
