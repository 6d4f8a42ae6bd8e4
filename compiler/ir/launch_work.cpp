#include "compiler/ir/launch_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

constexpr int64_t kMostBlocks = 17;     // of a grid that are looked at, one by one
constexpr int64_t kMostIterations = 8;  // of a loop whose iterations differ
constexpr int64_t kThreadsOfGroup = 128;

// Of one block, or of a part of its body.
struct BlockCount {
  double products = 0, others = 0, functions = 0;
  std::map<const BufferData*, std::array<double, 2>> bytes;  // by memory: read, written
  bool exact = true;

  void add(const BlockCount& other, double times) {
    products += times * other.products;
    others += times * other.others;
    functions += times * other.functions;
    for (const auto& [memory, moved] : other.bytes) {
      bytes[memory][0] += times * moved[0];
      bytes[memory][1] += times * moved[1];
    }
    exact = exact && other.exact;
  }
  bool same_as(const BlockCount& other) const {
    return products == other.products && others == other.others && functions == other.functions && bytes == other.bytes;
  }
};

bool is_computed(BinaryOp op) { return op < BinaryOp::eq; }
bool is_function(BinaryOp op) {
  return op == BinaryOp::pow || op == BinaryOp::atan2 || op == BinaryOp::hypot || op == BinaryOp::fmod;
}
bool is_rounding(MathFn function) { return function >= MathFn::abs; }  // or cheaper, or a test

// Reads a body at one place of the grid.
class WorkCounter {
 public:
  explicit WorkCounter(VarRanges values) : values_(std::move(values)) {}

  // Threads that run the body one by one are as the iterations of a parallel loop around it.
  void set_threads(const Kernel& kernel) {
    for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis)
      lanes_[kernel.thread_vars[axis].get()] = static_cast<double>(kernel.threads[axis]);
  }

  BlockCount count(const Stmt& stmt) {
    BlockCount counted;
    add(stmt, counted);
    return counted;
  }

 private:
  using VarSet = std::unordered_set<const VarData*>;

  VarRanges values_;
  std::unordered_map<const VarData*, double> lanes_;  // variables of parallel loops, with their extents
  std::unordered_map<const VarData*, VarSet> lets_;   // the lanes that a let depends on

  std::optional<int64_t> value_of(const Expr& expr) const {
    const Bounds known = bounds(expr, values_);
    return known.is_constant() ? std::optional(known.lo) : std::nullopt;
  }

  double all_lanes() const {
    double count = 1;
    for (const auto& [var, extent] : lanes_) count *= extent;
    return count;
  }

  VarSet lanes_in(const Expr& expr) const {
    VarSet found;
    walk(expr, [&](const Expr& part) {
      const auto* ref = as<VarRef>(part);
      if (ref == nullptr) return;
      if (lanes_.contains(ref->var.get())) found.insert(ref->var.get());
      if (const auto let = lets_.find(ref->var.get()); let != lets_.end())
        found.insert(let->second.begin(), let->second.end());
    });
    return found;
  }

  // How many different elements the lanes name together.
  double places(const std::vector<Expr>& indices) const {
    VarSet vars;
    for (const Expr& index : indices) vars.merge(lanes_in(index));
    double count = 1;
    for (const VarData* var : vars) count *= lanes_.at(var);
    return count;
  }

  static void move(const Buffer& buffer, double elements, bool writes, BlockCount& counted) {
    if (buffer->scope == Scope::global)
      counted.bytes[memory_of(buffer)][writes ? 1 : 0] += elements * buffer->type.bits / 8;
  }

  void add_value(const Expr& expr, BlockCount& counted) const {
    const double lanes = all_lanes();
    walk(expr, [&](const Expr& part) {
      if (const auto* load = as<Load>(part)) return move(load->buffer, places(load->indices), false, counted);
      if (!part->type.is_float()) return;
      if (const auto* binary = as<Binary>(part); binary && is_computed(binary->op))
        (is_function(binary->op) ? counted.functions : counted.others) += lanes;
      if (const auto* math = as<Math>(part); math && !is_rounding(math->function)) counted.functions += lanes;
    });
  }

  // Elements of a region that lie in its buffer.
  double inside(const Region& region) const {
    double count = 1;
    for (size_t axis = 0; axis < region.extent.size(); ++axis) {
      int64_t extent = region.extent[axis];
      const auto start = value_of(region.start[axis]), end = value_of(region.buffer->shape[axis]);
      if (start && end) extent = std::max<int64_t>(0, std::min(*start + extent, *end) - std::max<int64_t>(*start, 0));
      count *= static_cast<double>(extent);
    }
    return count;
  }
  static double elements(const Region& region) {
    double count = 1;
    for (const int64_t extent : region.extent) count *= static_cast<double>(extent);
    return count;
  }

  void add(const Stmt& stmt, BlockCount& counted) {
    if (!stmt) return;
    if (const auto* block = as<Block>(stmt)) {
      for (const Stmt& part : block->body) add(part, counted);
    } else if (const auto* loop = as<For>(stmt)) {
      loop->kind == LoopKind::parallel ? add_parallel(*loop, counted) : add_serial(*loop, counted);
    } else if (const auto* loop = as<While>(stmt)) {
      counted.exact = false;
      add_value(loop->condition, counted);
      add(loop->body, counted);
    } else if (const auto* branch = as<If>(stmt)) {
      add_branch(*branch, counted);
    } else if (const auto* roles = as<Roles>(stmt)) {
      add_roles(*roles, counted);
    } else if (const auto* side_by_side = as<Concurrent>(stmt)) {
      for (const Concurrent::Role& role : side_by_side->roles) add(role.body, counted);
    } else {
      add_operator(stmt, counted);
    }
  }

  void add_parallel(const For& loop, BlockCount& counted) {
    for (size_t axis = 0; axis < loop.vars.size(); ++axis) {
      const auto extent = value_of(loop.extents[axis]);
      counted.exact = counted.exact && extent;
      lanes_[loop.vars[axis].get()] = static_cast<double>(std::max<int64_t>(0, extent.value_or(1)));
    }
    add(loop.body, counted);
    for (const Var& var : loop.vars) lanes_.erase(var.get());
  }

  // One iteration stands for all if the first, one in the middle and the last are alike.
  void add_serial(const For& loop, BlockCount& counted) {
    const auto extent = value_of(loop.extents[0]);
    const int64_t count = std::max<int64_t>(0, extent.value_or(1));
    counted.exact = counted.exact && extent;
    if (count == 0) return;
    const BlockCount first = at_iteration(loop, 0);
    const bool alike =
        count == 1 || (first.same_as(at_iteration(loop, count - 1)) && first.same_as(at_iteration(loop, count / 2)));
    if (alike) return counted.add(first, static_cast<double>(count));
    const int64_t looked_at = std::min(count, kMostIterations);
    for (int64_t i = 0; i < looked_at; ++i)
      counted.add(at_iteration(loop, (2 * i + 1) * count / (2 * looked_at)),
                  static_cast<double>(count) / static_cast<double>(looked_at));
    counted.exact = counted.exact && looked_at == count;
  }

  BlockCount at_iteration(const For& loop, int64_t number) {
    values_[loop.vars[0].get()] = {number, number};
    BlockCount counted = count(loop.body);
    values_.erase(loop.vars[0].get());
    return counted;
  }

  void add_branch(const If& branch, BlockCount& counted) {
    add_value(branch.condition, counted);
    if (const auto holds = value_of(branch.condition))
      return add(*holds != 0 ? branch.then : branch.otherwise, counted);
    counted.exact = false;
    add(branch.then, counted);
    add(branch.otherwise, counted);
  }

  void add_roles(const Roles& roles, BlockCount& counted) {
    const auto before = lanes_;
    const double all = all_lanes(),
                 own = static_cast<double>(kThreadsOfGroup * static_cast<int64_t>(roles.groups.size()));
    if (all > own && !lanes_.empty()) lanes_.begin()->second *= own / all;
    add(roles.body, counted);
    lanes_ = before;
  }

  void add_operator(const Stmt& stmt, BlockCount& counted) {
    if (const auto* let = as<Let>(stmt)) {
      lets_[let->var.get()] = lanes_in(let->value);
      if (const auto value = let->value->type.is_int() ? value_of(let->value) : std::nullopt)
        values_[let->var.get()] = {*value, *value};
      add_value(let->value, counted);
    } else if (const auto* store = as<Store>(stmt)) {
      move(store->buffer, places(store->indices), true, counted);
      add_value(store->value, counted);
    } else if (const auto* copy = as<Copy>(stmt)) {
      const bool to_global = copy->destination.buffer->scope == Scope::global;
      const double moved = to_global ? inside(copy->destination) : inside(copy->source);
      move(copy->source.buffer, moved, false, counted);
      move(copy->destination.buffer, moved, true, counted);
    } else if (const auto* fill = as<Fill>(stmt)) {
      move(fill->destination.buffer, inside(fill->destination), true, counted);
    } else if (const auto* gemm = as<Gemm>(stmt)) {
      const double k =
          static_cast<double>(gemm->transpose_a ? gemm->a.extent[gemm->a.extent.size() - 2] : gemm->a.extent.back());
      counted.products += 2 * elements(gemm->c) * k;
    } else if (const auto* reduce = as<Reduce>(stmt)) {
      counted.others += reduce->source.buffer->type.is_float() ? elements(reduce->source) : 0;
    } else if (const auto* scan = as<Scan>(stmt)) {
      counted.others += scan->source.buffer->type.is_float() ? elements(scan->source) : 0;
    } else if (const auto* atomic = as<Atomic>(stmt)) {
      const Buffer& buffer = atomic->element.buffer;
      const double touched = places(atomic->element.start);
      if (atomic->op != AtomicOp::store) move(buffer, touched, false, counted);
      if (atomic->op != AtomicOp::load) move(buffer, touched, true, counted);
      if (buffer->type.is_float() && atomic->op == AtomicOp::add) counted.others += all_lanes();
      if (atomic->value) add_value(atomic->value, counted);
    } else if (const auto* all = as<AllReduce>(stmt)) {
      if (all->value->type.is_float()) counted.others += all_lanes();
      add_value(all->value, counted);
    }
  }
};

// The whole of a tensor, in bytes; infinite where its size is not known.
double size_of(const BufferData& buffer, const VarRanges& values) {
  double elements = 1;
  for (const Expr& extent : buffer.shape) {
    const Bounds known = bounds(extent, values);
    if (!known.is_constant() || buffer.address) return INFINITY;
    elements *= static_cast<double>(std::max<int64_t>(0, known.lo));
  }
  return elements * buffer.type.bits / 8;
}

std::string type_of_products(const Kernel& kernel) {
  std::string type;
  walk(
      kernel.body,
      [&](const Stmt& stmt) {
        const auto* gemm = as<Gemm>(stmt);
        if (gemm && type.empty()) type = to_string(gemm->a.buffer->type);
      },
      [](const Expr&) {});
  return type;
}

}  // namespace

LaunchWork launch_work(const Kernel& kernel, const VarRanges& values) {
  LaunchWork work;
  work.product_type = type_of_products(kernel);
  std::vector<int64_t> grid;
  work.blocks = 1;
  for (const Expr& extent : kernel.grid) {
    const Bounds known = bounds(extent, values);
    work.exact = work.exact && known.is_constant();
    grid.push_back(known.is_constant() ? std::max<int64_t>(0, known.lo) : 1);
    work.blocks *= grid.back();
  }
  if (work.blocks == 0) return work;
  BlockCount all;
  std::optional<BlockCount> first;
  bool alike = true;
  const int64_t looked_at = std::min(work.blocks, kMostBlocks);
  for (int64_t i = 0; i < looked_at; ++i) {
    // The first and the last are among them.
    const int64_t steps = std::max<int64_t>(1, looked_at - 1), last = work.blocks - 1;
    int64_t rest = last / steps * i + last % steps * i / steps;
    VarRanges at = values;
    for (size_t axis = 0; axis < grid.size(); ++axis) {
      at[kernel.block_vars[axis].get()] = {rest % grid[axis], rest % grid[axis]};
      rest /= grid[axis];
    }
    WorkCounter counter(std::move(at));
    counter.set_threads(kernel);
    BlockCount counted = counter.count(kernel.body);
    if (!first) first = counted;
    alike = alike && counted.same_as(*first);
    all.add(counted, static_cast<double>(work.blocks) / static_cast<double>(looked_at));
  }
  if (alike) {  // without what fractions round off
    all = {};
    all.add(*first, static_cast<double>(work.blocks));
  }
  work.product_flops = all.products;
  work.other_flops = all.others;
  work.functions = all.functions;
  for (const auto& [memory, moved] : all.bytes)
    for (const double bytes : moved) {
      work.requested_bytes += bytes;
      work.least_bytes += std::min(bytes, size_of(*memory, values));
    }
  work.exact = work.exact && all.exact && (alike || looked_at == work.blocks);
  return work;
}

}  // namespace tilepilot::ir
