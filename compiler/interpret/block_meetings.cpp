// What threads of a block do where they meet.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "compiler/interpret/block.h"
#include "compiler/interpret/reduction.h"
#include "compiler/interpret/tile_operators.h"
#include "compiler/ir/visit.h"

namespace tilepilot::interpret {
namespace {

using ir::as;

// "0 to 31, 40"
std::string ranges(const std::vector<size_t>& numbers) {
  std::vector<std::string> parts;
  for (size_t k = 0; k < numbers.size();) {
    size_t last = k;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    parts.push_back(last == k ? fmt::format("{}", numbers[k]) : fmt::format("{} to {}", numbers[k], numbers[last]));
    k = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

// A reduction's operand is what it is when its thread arrives.
void Block::arrive(Thread& thread, const ir::Stmt& stmt) {
  if (const auto* n = as<ir::AllReduce>(stmt)) {
    const Evaluator in(session_, thread.scope);
    thread.offered = in.value(in.value(n->condition).truth() ? n->value : n->identity);
  }
  thread.waiting = &stmt;
  if (threads_.size() == 1 || together_) complete(stmt);
}

// Nobody is ready: all wait at one place, or all have ended.
void Block::meet() {
  const ir::Stmt* place = threads_.front().waiting;
  const auto is_here = [&](const Thread& thread) { return thread.waiting == place; };
  if (!std::all_of(threads_.begin(), threads_.end(), is_here)) return fail_apart();
  if (place == nullptr) return;
  complete(*place);
  for (Thread& thread : threads_) ready_.push_back(&thread);
}

void Block::complete(const ir::Stmt& stmt) {
  if (const auto* n = as<ir::AllReduce>(stmt)) {
    reduce(*n, stmt->span);
  } else if (!as<ir::Sync>(stmt)) {
    work_for_all(stmt);
  }
  for (Thread& thread : threads_) thread.waiting = nullptr;
}

void Block::work_for_all(const ir::Stmt& stmt) {
  const bool nested = std::exchange(together_, true);
  Thread& leader = threads_.front();
  const bool agreed = nested || threads_.size() == 1 || agree_on(stmt);
  const auto* loop = as<ir::For>(stmt);
  if (agreed && loop) run_parallel(leader, *loop);
  if (agreed && !loop) run_tile_operator(Evaluator(session_, leader.scope), stmt);
  together_ = nested;
  if (!nested) share(stmt);
}

int64_t Block::group_of(const Thread& thread, const std::vector<int>& axes) const {
  int64_t group = 0;
  for (size_t axis = 0; axis < thread.at.size(); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), int(axis)) != axes.end();
    group = group * kernel_.threads[axis] + (reduced ? 0 : thread.at[axis]);
  }
  return group;
}

// As a reduction of a tile would, where there is one by the operator.
void Block::reduce(const ir::AllReduce& n, Span span) {
  const auto op = reduction_by(n.op);
  const bool is_product = !op;
  const Reduction reduction{op.value_or(ir::ReduceOp::sum)};
  const ir::DType type = n.result.buffer->type, kept = is_product ? type : Reduction::accumulator(type);
  std::map<int64_t, Element> totals;
  for (const Thread& thread : threads_) {
    const Element next = thread.offered.cast(kept);
    const auto [total, fresh] = totals.emplace(group_of(thread, n.axes), next);
    if (is_product && !fresh) total->second = apply(n.op, total->second, next);
    if (!is_product) total->second = reduction.step(fresh ? reduction.identity(kept) : total->second, next);
  }
  for (const Thread& thread : threads_) {
    const Evaluator in(session_, thread.scope);
    in.write(n.result.buffer, in.integers(n.result.start), totals.at(group_of(thread, n.axes)).cast(type), span);
  }
}

// What one thread reads for all, its variables and buffers of its own, has to be the same for all.
bool Block::agree_on(const ir::Stmt& stmt) {
  const Thread& leader = threads_.front();
  std::string which;
  const auto differs_elsewhere = [&](auto is_same) { return !std::all_of(threads_.begin(), threads_.end(), is_same); };
  for (const ir::BufferData* buffer : touched_by(stmt).read) {
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
void Block::share(const ir::Stmt& stmt) {
  for (const ir::BufferData* buffer : touched_by(stmt).written) {
    const auto mine = threads_.front().tiles.find(buffer);
    if (mine == threads_.front().tiles.end()) continue;
    for (size_t k = 1; k < threads_.size(); ++k) {
      Storage& theirs = threads_[k].tiles.at(buffer);
      std::copy(mine->second.bytes.begin(), mine->second.bytes.end(), theirs.bytes.begin());
      std::copy(mine->second.written.begin(), mine->second.written.end(), theirs.written.begin());
    }
  }
}

void Block::fail_apart() {
  std::map<const ir::Stmt*, std::vector<size_t>> places;
  for (size_t k = 0; k < threads_.size(); ++k) places[threads_[k].waiting].push_back(k);
  Fault fault{FaultKind::threads_part, {}, "not all threads of the block come here", {}};
  for (const auto& [stmt, numbers] : places) {
    const std::string threads = ranges(numbers);
    if (stmt == nullptr) {
      fault.notes.push_back({{}, fmt::format("threads {} have ended", threads)});
      continue;
    }
    fault.span = (*stmt)->span;
    fault.notes.push_back({(*stmt)->span, fmt::format("threads {} wait here", threads)});
  }
  session_.fail(std::move(fault));
}

}  // namespace tilepilot::interpret
