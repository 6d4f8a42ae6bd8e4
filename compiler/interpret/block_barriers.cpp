// Barriers of a block: how threads wait for each other without doing anything together.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "compiler/interpret/block.h"
#include "compiler/ir/visit.h"

namespace tilepilot::interpret {
namespace {

using ir::as;

constexpr int64_t kWarpGroup = 128;

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

bool Block::is_for(const Thread& thread, const ir::Roles& roles) const {
  const auto group = static_cast<int>(thread.number / kWarpGroup);
  return std::find(roles.groups.begin(), roles.groups.end(), group) != roles.groups.end();
}

void Block::sync(Thread& thread, const ir::Sync& n) {
  Group& here = syncs_[n.barrier];
  here.push_back(&thread);
  int64_t arrived = 0;
  for (const Thread* other : here) arrived += other->threads;
  if (arrived < (n.threads > 0 ? n.threads : count(kernel_.threads))) return;
  for (Thread* other : std::exchange(here, {})) release(*other);
}

void Block::on_barrier(Thread& thread, const ir::Stmt& stmt, const ir::Barrier& n) {
  const Evaluator in(session_, thread.scope);
  std::vector<Phases>& barriers = barriers_.at(n.barrier.buffer.get());
  const int64_t number = in.integer(n.barrier.start[0]);
  if (number < 0 || number >= static_cast<int64_t>(barriers.size()))
    return session_.fail(
        {FaultKind::outside_tile, stmt->span, fmt::format("`{}` has no barrier {}", n.barrier.buffer->name, number)});
  Phases& barrier = barriers[static_cast<size_t>(number)];
  const int64_t operand = n.operand ? in.integer(n.operand) : 0;
  if (n.op == ir::BarrierOp::wait) {
    if (barrier.has_passed(operand)) return;
    thread.waiting = &stmt;
    thread.barrier = &barrier;
    thread.parity = operand;
    return;
  }
  const int64_t threads = n.threads > 0 ? n.threads : together_ ? 1 : thread.threads;
  barrier.bytes += operand * threads;
  if (n.op != ir::BarrierOp::expect) arrive_at(barrier, threads);
}

// A bulk load's bytes are there as soon as they are expected: only those count that the program expects by itself.
void Block::arrive_at(Phases& barrier, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    if (--barrier.pending != 0 || barrier.bytes != 0) continue;
    barrier.pending = barrier.arrivals;
    ++barrier.completed;
  }
  for (Thread& thread : threads_) {
    if (thread.barrier == &barrier && barrier.has_passed(thread.parity)) release(thread);
  }
}

// Nobody can go on.
void Block::fail_apart() {
  std::map<const ir::Stmt*, std::vector<size_t>> places;
  bool on_barriers = true;
  for (size_t k = 0; k < threads_.size(); ++k) {
    const Thread& thread = threads_[k];
    places[thread.waiting].push_back(k);
    if (thread.waiting) on_barriers &= thread.barrier != nullptr;
  }
  Fault fault{FaultKind::threads_part, {}, "not all threads of the block come here", {}};
  if (on_barriers) fault = {FaultKind::deadlock, {}, "every role waits on a barrier", {}};
  const char* what = concurrent_roles(kernel_) ? "roles" : "threads";
  for (const auto& [stmt, numbers] : places) {
    const std::string who = ranges(numbers);
    if (stmt == nullptr) {
      fault.notes.push_back({{}, fmt::format("{} {} have ended", what, who)});
      continue;
    }
    fault.span = (*stmt)->span;
    fault.notes.push_back({(*stmt)->span, fmt::format("{} {} wait here", what, who)});
  }
  session_.fail(std::move(fault));
}

}  // namespace tilepilot::interpret
