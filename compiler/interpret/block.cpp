#include "compiler/interpret/block.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/interpret/tile_operators.h"
#include "compiler/ir/cluster.h"
#include "compiler/ir/text/print_form.h"
#include "compiler/ir/visit.h"

namespace tilepilot::interpret {

using ir::as;

Block::Block(Session& session, const ir::Kernel& kernel, const CollectiveGroups& groups, const Scope& program,
             const Indices& at)
    : session_(session), kernel_(kernel), groups_(groups), scope_{&program} {
  for (size_t axis = 0; axis < at.size(); ++axis) {
    const ir::Var& var = kernel.block_vars[axis];
    scope_.vars[var.get()] = Element::integer(var->type, at[axis]);
  }
  make_threads();
  const ir::BufferSet own = thread_private_buffers(kernel);
  for (const ir::Buffer& buffer : kernel.allocations) {
    for (const int64_t arrivals : buffer->arrivals) barriers_[buffer.get()].push_back({arrivals, arrivals});
    if (own.count(buffer.get()) == 0) {
      allocate(buffer, scope_, tiles_);
      continue;
    }
    for (Thread& thread : threads_) allocate(buffer, thread.scope, thread.tiles);
  }
}

void Block::make_threads() {
  if (const auto* concurrent = concurrent_roles(kernel_)) {
    for (const ir::Concurrent::Role& role : concurrent->roles) {
      threads_.push_back({{}, int64_t(threads_.size()), role.threads, {&scope_}});
      enter(threads_.back(), role.body);
    }
    return;
  }
  if (has_threads(kernel_)) {
    make_threads(kernel_.threads);
  } else {
    threads_.push_back({{0}, 0, count(kernel_.threads), {&scope_}});
  }
  for (Thread& thread : threads_) enter(thread, kernel_.body);
}

// The first axis is the fastest.
void Block::make_threads(const Indices& extents) {
  each({extents.rbegin(), extents.rend()}, [&](const Indices& reversed) {
    Thread thread{{reversed.rbegin(), reversed.rend()}, int64_t(threads_.size()), 1, {&scope_}};
    for (size_t axis = 0; axis < kernel_.thread_vars.size(); ++axis)
      bind(thread, kernel_.thread_vars[axis], thread.at[axis]);
    threads_.push_back(std::move(thread));
  });
}

void Block::allocate(const ir::Buffer& buffer, Scope& scope, Tiles& tiles) const {
  const Evaluator in(session_, scope);
  const Indices shape = in.integers(buffer->shape);
  if (buffer->address) {
    const Indices strides = buffer->strides.empty() ? contiguous(shape) : in.integers(buffer->strides);
    scope.buffers[buffer.get()] = {buffer->type, shape, strides, nullptr, nullptr, true};
    return;
  }
  if (!buffer->base) {
    Storage& storage = tiles[buffer.get()] = storage_for(buffer->type, shape);
    scope.buffers[buffer.get()] = memory_in(storage, buffer->type, shape, false);
    return;
  }
  Memory view = scope.find(buffer->base.get());
  view.type = buffer->type;
  view.shape = shape;
  view.strides = buffer->strides.empty() ? contiguous(shape) : in.integers(buffer->strides);
  scope.buffers[buffer.get()] = std::move(view);
}

void Block::run() {
  for (Thread& thread : threads_) ready_.push_back(&thread);
  while (!session_.stopped() && !ready_.empty()) {
    Thread& thread = *ready_[session_.pick(ready_.size())];
    if (!thread.stack.empty()) advance(thread);
    if (thread.waiting == nullptr && !thread.stack.empty()) continue;
    ready_.erase(std::find(ready_.begin(), ready_.end(), &thread));
  }
  const auto waits = [](const Thread& thread) { return thread.waiting != nullptr; };
  if (!session_.stopped() && std::any_of(threads_.begin(), threads_.end(), waits)) fail_apart();
}

// Statements ----------------------------------------------------------------------------------------------------------

void Block::bind(Thread& thread, const ir::Var& var, int64_t value) const {
  thread.scope.vars[var.get()] = Element::integer(var->type, value);
}

void Block::advance(Thread& thread) {
  Frame& frame = thread.stack.back();
  if (const auto* block = as<ir::Block>(*frame.stmt)) {
    if (frame.next == static_cast<int64_t>(block->body.size())) return thread.stack.pop_back();
    return enter(thread, block->body[static_cast<size_t>(frame.next++)]);
  }
  if (const auto* loop = as<ir::For>(*frame.stmt)) {
    if (frame.next >= frame.end) return thread.stack.pop_back();
    bind(thread, loop->vars[0], frame.next++);
    return enter(thread, loop->body);
  }
  const auto& loop = *as<ir::While>(*frame.stmt);
  if (Evaluator(session_, thread.scope).value(loop.condition).truth()) return enter(thread, loop.body);
  thread.stack.pop_back();
}

namespace {

// What needs more of the machine than one block. Copies and gemms that do not wait are done at once.
bool is_foreign(const ir::Stmt& stmt) {
  const auto* sync = as<ir::Sync>(stmt);
  return (sync && sync->scope == ir::SyncScope::grid) || ir::reaches_peers(stmt) || as<ir::ExternCall>(stmt);
}

}  // namespace

void Block::enter(Thread& thread, const ir::Stmt& stmt) {
  session_.spend(stmt->span);
  if (is_foreign(stmt))
    return session_.fail({FaultKind::not_interpreted, stmt->span, "the interpreter does not know this statement"});
  if (is_collective(stmt)) return arrive(thread, stmt);
  const Evaluator in(session_, thread.scope);
  std::visit(ir::overloaded{
                 [&](const ir::For& n) {
                   thread.stack.push_back({&stmt, 0, in.integer(n.extents[0])});
                 },
                 [&](const ir::While&) { thread.stack.push_back({&stmt}); },
                 [&](const ir::Block&) { thread.stack.push_back({&stmt}); },
                 [&](const ir::If& n) {
                   if (in.value(n.condition).truth()) return enter(thread, n.then);
                   if (n.otherwise) enter(thread, n.otherwise);
                 },
                 [&](const ir::Let& n) { thread.scope.vars[n.var.get()] = in.value(n.value); },
                 [&](const ir::Store& n) { in.write(n.buffer, in.integers(n.indices), in.value(n.value), stmt->span); },
                 [&](const ir::Break&) { leave(thread, true); },
                 [&](const ir::Continue&) { leave(thread, false); },
                 [&](const ir::Atomic& n) {
                   const Element before = run_atomic(in, n, stmt->span);
                   if (n.previous) thread.scope.vars[n.previous.get()] = before;
                 },
                 [&](const ir::Barrier& n) { on_barrier(thread, stmt, n); },
                 [&](const ir::Roles& n) {
                   if (is_for(thread, n)) enter(thread, n.body);
                 },
                 [&](const ir::Check& n) {
                   if (!in.value(n.condition).truth()) session_.fail({FaultKind::check_failed, stmt->span, n.message});
                 },
                 [&](const ir::Print& n) { print(thread, n); },
                 [&](const auto&) { run_tile_operator(in, stmt); },
             },
             stmt->node);
}

// Back to the loop around, and out of it.
void Block::leave(Thread& thread, bool ends_loop) {
  while (as<ir::Block>(*thread.stack.back().stmt)) thread.stack.pop_back();
  if (ends_loop) thread.stack.pop_back();
}

void Block::run_to_end(Thread& thread, const ir::Stmt& stmt) {
  std::vector<Frame> outside = std::exchange(thread.stack, {});
  enter(thread, stmt);
  while (!thread.stack.empty() && !session_.stopped()) advance(thread);
  thread.stack = std::move(outside);
}

void Block::run_parallel(Thread& thread, const ir::For& loop) {
  std::vector<Indices> points;
  each(Evaluator(session_, thread.scope).integers(loop.extents), [&](const Indices& at) { points.push_back(at); });
  session_.arrange(points);
  for (const Indices& point : points) {
    if (session_.stopped()) return;
    for (size_t axis = 0; axis < point.size(); ++axis) bind(thread, loop.vars[axis], point[axis]);
    run_to_end(thread, loop.body);
  }
}

namespace {

std::string shown(const Element& value) {
  if (value.type.is_float()) return fmt::format("{:f}", value.number);
  if (value.type.is_bool()) return value.whole ? "true" : "false";
  if (value.type == ir::kUInt64) return fmt::format("{}", static_cast<uint64_t>(value.whole));
  return fmt::format("{}", value.whole);
}

std::string three(Indices indices) {
  indices.resize(3, 0);
  return fmt::format("({}, {}, {})", indices[0], indices[1], indices[2]);
}

}  // namespace

void Block::print(const Thread& thread, const ir::Print& n) {
  const Evaluator in(session_, thread.scope);
  Indices block;
  for (const ir::Var& var : kernel_.block_vars) block.push_back(scope_.find(var.get())->whole);
  std::string line =
      fmt::format("msg='{}' BlockIdx={}, ThreadIdx={}", n.message, three(block), three(in.integers(n.thread)));
  if (n.value) line += ": ";
  if (n.index) line += fmt::format("buffer={}, index={}, ", n.buffer, in.integer(n.index));
  if (n.value) line += fmt::format("dtype={} value={}", ir::print_form(n.value->type).type, shown(in.value(n.value)));
  if (session_.options().print) session_.options().print(line + "\n");
}

}  // namespace tilepilot::interpret
