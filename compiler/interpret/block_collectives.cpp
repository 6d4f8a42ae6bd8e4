// Collective operations of the threads of a block.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/interpret/block.h"
#include "compiler/interpret/reduction.h"
#include "compiler/interpret/tile_operators.h"
#include "compiler/ir/matrix_operands.h"
#include "compiler/ir/visit.h"

namespace tilepilot::interpret {

using ir::as;

// What a thread gives to others is what it is when it arrives.
void Block::offer(Thread& thread, const ir::Stmt& stmt) {
  const Evaluator in(session_, thread.scope);
  if (const auto* n = as<ir::AllReduce>(stmt))
    thread.offered = in.value(in.value(n->condition).truth() ? n->value : n->identity);
  if (const auto* n = as<ir::Shuffle>(stmt)) {
    thread.offered = in.value(n->value);
    thread.lane = in.integer(n->lane);
  }
  if (const auto* n = as<ir::LoadMatrix>(stmt)) thread.row = in.integers(n->row.start);
}

void Block::arrive(Thread& thread, const ir::Stmt& stmt) {
  offer(thread, stmt);
  if (together_) return complete(stmt, {&thread});
  thread.waiting = &stmt;
  const auto* n = as<ir::Sync>(stmt);
  if (n && n->scope == ir::SyncScope::block) return sync(thread, *n);
  const Group group = group_at(stmt, thread);
  const auto is_here = [&](const Thread* other) { return other->waiting == &stmt; };
  if (std::all_of(group.begin(), group.end(), is_here)) complete(stmt, group);
}

void Block::release(Thread& thread) {
  if (std::exchange(thread.waiting, nullptr) == nullptr) return;
  thread.barrier = nullptr;
  const auto by_number = [](const Thread* a, const Thread* b) { return a->number < b->number; };
  const auto place = std::lower_bound(ready_.begin(), ready_.end(), &thread, by_number);
  if (place == ready_.end() || *place != &thread) ready_.insert(place, &thread);
}

namespace {

constexpr int64_t kWarp = 32;

}  // namespace

// Those who do this together: all of the block, of the role or of the warp that come here.
Block::Group Block::group_at(const ir::Stmt& stmt, const Thread& arriving) {
  if (concurrent_roles(kernel_)) return {&threads_[static_cast<size_t>(arriving.number)]};
  const auto some = groups_.find(stmt.get());
  const bool of_warp = ir::is_warp_operation(*stmt);
  Group group;
  for (Thread& thread : threads_) {
    const bool comes = some == groups_.end() || some->second[static_cast<size_t>(thread.number)];
    if (comes && (!of_warp || thread.number / kWarp == arriving.number / kWarp)) group.push_back(&thread);
  }
  return group;
}

void Block::complete(const ir::Stmt& stmt, const Group& group) {
  if (const auto* n = as<ir::AllReduce>(stmt)) {
    reduce(*n, stmt->span, group);
  } else if (const auto* shuffled = as<ir::Shuffle>(stmt)) {
    shuffle(*shuffled, group);
  } else if (as<ir::LoadMatrix>(stmt) || as<ir::Mma>(stmt)) {
    with_matrices(stmt, group);
  } else if (!as<ir::Sync>(stmt)) {
    work_for_all(stmt, group);
  }
  for (Thread* thread : group) release(*thread);
}

void Block::work_for_all(const ir::Stmt& stmt, const Group& group) {
  const bool nested = std::exchange(together_, true);
  Thread& leader = *group.front();
  const bool agreed = nested || group.size() == 1 || agree_on(stmt, group);
  const auto* loop = as<ir::For>(stmt);
  if (agreed && loop) run_parallel(leader, *loop);
  if (agreed && !loop) run_tile_operator(Evaluator(session_, leader.scope), stmt);
  together_ = nested;
  if (!nested) share(stmt, group);
}

// The number of the threads whose values are combined with this one's.
int64_t Block::share_of(const Thread& thread, const ir::AllReduce& n) const {
  if (n.lanes > 0) return thread.number / n.lanes;
  int64_t share = 0;
  for (size_t axis = 0; axis < thread.at.size(); ++axis) {
    const bool reduced = std::find(n.axes.begin(), n.axes.end(), int(axis)) != n.axes.end();
    share = share * kernel_.threads[axis] + (reduced ? 0 : thread.at[axis]);
  }
  return share;
}

// As a reduction of a tile would, where there is one by the operator.
void Block::reduce(const ir::AllReduce& n, Span span, const Group& group) {
  const auto op = reduction_by(n.op);
  const bool is_product = !op;
  const Reduction reduction{op.value_or(ir::ReduceOp::sum)};
  const ir::DType type = n.result.buffer->type, kept = is_product ? type : Reduction::accumulator(type);
  std::map<int64_t, Element> totals;
  for (const Thread* thread : group) {
    const Element next = thread->offered.cast(kept);
    const auto [total, fresh] = totals.emplace(share_of(*thread, n), next);
    if (is_product && !fresh) total->second = apply(n.op, total->second, next);
    if (!is_product) total->second = reduction.step(fresh ? reduction.identity(kept) : total->second, next);
  }
  for (const Thread* thread : group) {
    const Evaluator in(session_, thread->scope);
    in.write(n.result.buffer, in.integers(n.result.start), totals.at(share_of(*thread, n)).cast(type), span);
  }
}

namespace {

// PTX ISA 9.7.9.6, `shfl.sync`.
int64_t source_of(const ir::Shuffle& n, int64_t number, int64_t lane) {
  const int64_t start = number / n.width * n.width, end = start + n.width, change = lane & (kWarp - 1);
  switch (n.op) {
    case ir::ShuffleOp::from:
      return start + (lane & (n.width - 1));
    case ir::ShuffleOp::by_xor: {
      const int64_t other = number ^ change;
      return other < end ? other : number;
    }
    case ir::ShuffleOp::up:
      return number - change >= start ? number - change : number;
    case ir::ShuffleOp::down:
      return number + change < end ? number + change : number;
  }
  return number;
}

}  // namespace

void Block::shuffle(const ir::Shuffle& n, const Group& group) {
  std::map<int64_t, Element> offered;
  for (const Thread* thread : group) offered.emplace(thread->number, thread->offered);
  for (Thread* thread : group) {
    const auto source = offered.find(source_of(n, thread->number, thread->lane));
    thread->scope.vars[n.result.get()] = source == offered.end() ? thread->offered : source->second;
  }
}

void Block::with_matrices(const ir::Stmt& stmt, const Group& warp) {
  if (static_cast<int64_t>(warp.size()) != kWarp)
    return session_.fail({FaultKind::threads_differ, stmt->span,
                          fmt::format("{} of the {} threads of a warp are here", warp.size(), kWarp)});
  if (const auto* n = as<ir::LoadMatrix>(stmt)) return load(*n, stmt->span, warp);
  multiply(*as<ir::Mma>(stmt), stmt->span, warp);
}

namespace {

// Element `item` of a region of one axis that is not 1, its last.
Indices item_of(const Evaluator& in, const ir::Region& region, int64_t item) {
  Indices at = in.integers(region.start);
  at.back() += item;
  return at;
}

}  // namespace

void Block::load(const ir::LoadMatrix& n, Span span, const Group& warp) const {
  const int64_t word = 32 / n.row.buffer->type.bits;
  for (Thread* thread : warp) {
    const Evaluator in(session_, thread->scope);
    const int64_t lane = thread->number % kWarp, row = lane / ir::kLanesOfRow, column = lane % ir::kLanesOfRow;
    for (int64_t item = 0; item < n.count * word; ++item) {
      const int64_t first = item / word * 8, element = column * word + item % word;
      Indices from = warp[static_cast<size_t>(first + (n.transposed ? element : row))]->row;
      from.back() += n.transposed ? row : element;
      in.write(n.registers.buffer, item_of(in, n.registers, item), in.read(n.row.buffer, from, span), span);
    }
  }
}

void Block::multiply(const ir::Mma& n, Span span, const Group& warp) const {
  const ir::DType c = n.c.buffer->type, type = c.is_float() ? ir::kFloat32 : ir::kInt32;
  const int64_t word = 32 / n.a.buffer->type.bits, depth = 2 * n.a.extent.back();
  const auto operand = [&](int64_t lane, const ir::Region& region, int64_t item) {
    const Evaluator in(session_, warp[static_cast<size_t>(lane)]->scope);
    return in.read(region.buffer, item_of(in, region, item), span).cast(type);
  };
  for (Thread* thread : warp) {
    const Evaluator in(session_, thread->scope);
    const int64_t lane = thread->number % kWarp, row = lane / ir::kLanesOfRow, pair = lane % ir::kLanesOfRow;
    for (int64_t item = 0; item < ir::kItemsOfC; ++item) {
      const Indices at = item_of(in, n.c, item);
      Element sum = in.read(n.c.buffer, at, span).cast(type);
      for (int64_t k = 0; k < depth; ++k) {
        const ir::OperandPlace of_a = ir::place_in_a(item / 2, k, word), of_b = ir::place_in_b(k, word);
        const Element a = operand(row * ir::kLanesOfRow + of_a.lane_of_row, n.a, of_a.item);
        const Element b = operand((2 * pair + item % 2) * ir::kLanesOfRow + of_b.lane_of_row, n.b, of_b.item);
        sum = apply(ir::BinaryOp::add, sum, apply(ir::BinaryOp::mul, a, b));
      }
      in.write(n.c.buffer, at, sum.cast(c), span);
    }
  }
}

// What one thread reads for all, its variables and buffers of its own, has to be the same for all.
bool Block::agree_on(const ir::Stmt& stmt, const Group& group) {
  const Thread& leader = *group.front();
  std::string which;
  const auto differs_elsewhere = [&](auto is_same) {
    return !std::all_of(group.begin(), group.end(), [&](const Thread* other) { return is_same(*other); });
  };
  for (const ir::BufferData* buffer : ir::memory_effects_of(stmt).reads) {
    const auto mine = leader.tiles.find(buffer);
    if (mine == leader.tiles.end()) continue;
    const auto is_same = [&](const Thread& other) { return other.tiles.at(buffer).bytes == mine->second.bytes; };
    if (differs_elsewhere(is_same)) which = buffer->name;
  }
  std::unordered_set<const ir::VarData*> inner;
  const auto define = [&](const ir::Stmt& part) {
    if (const ir::Var var = ir::bound_variable(*part)) inner.insert(var.get());
    if (const auto* loop = as<ir::For>(part)) {
      for (const ir::Var& var : loop->vars) inner.insert(var.get());
    }
  };
  const auto check = [&](const ir::Expr& part) {
    const auto* ref = as<ir::VarRef>(part);
    const auto mine =
        ref && inner.count(ref->var.get()) == 0 ? leader.scope.vars.find(ref->var.get()) : leader.scope.vars.end();
    if (mine == leader.scope.vars.end()) return;
    const auto is_same = [&](const Thread& other) {
      const auto theirs = other.scope.vars.find(mine->first);
      return theirs != other.scope.vars.end() && same(theirs->second, mine->second);
    };
    if (differs_elsewhere(is_same)) which = ref->var->name;
  };
  ir::walk(stmt, define, check);
  if (which.empty()) return true;
  session_.fail({FaultKind::threads_differ, stmt->span,
                 fmt::format("the threads do this together, but `{}` differs between them", which)});
  return false;
}

// What one thread wrote to a buffer of its own, it wrote for all.
void Block::share(const ir::Stmt& stmt, const Group& group) {
  for (const ir::BufferData* buffer : ir::memory_effects_of(stmt).writes) {
    const auto mine = group.front()->tiles.find(buffer);
    if (mine == group.front()->tiles.end()) continue;
    for (size_t k = 1; k < group.size(); ++k) {
      Storage& theirs = group[k]->tiles.at(buffer);
      std::copy(mine->second.bytes.begin(), mine->second.bytes.end(), theirs.bytes.begin());
      std::copy(mine->second.written.begin(), mine->second.written.end(), theirs.written.begin());
    }
  }
}

}  // namespace tilepilot::interpret
