#include "compiler/targets/cuda/emit.h"

#include "compiler/ir/search.h"
#include "compiler/targets/c/events.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cuda/operation_counters.h"
#include "compiler/targets/cuda/reciprocal_division.h"
#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using c::computed_type;
using c::Context;
using c::Operation;

namespace {

// A variable that a statement gives a value which only the run tells; may be null.
void bind(Context& context, const ir::Var& var) {
  if (context.operations && var) context.operations->bind(var);
}

// What a loop itself computes in each iteration: nothing if it is unrolled.
void count_turn(Context& context, const ir::For& loop) {
  if (context.operations == nullptr) return;
  if (loop.kind == ir::LoopKind::unrolled && context.operations->is_constant(loop.extents[0]))
    return context.operations->bind_constant(loop.vars[0]);
  context.operations->bind(loop.vars[0]);
  context.operations->add(Operation::integer);
  context.operations->add(Operation::comparison);
  put_counter(context);
}

void write_plain_loop(Context& context, const ir::For& loop) {
  const ir::Var& var = loop.vars[0];
  context.wide.insert(var.get());
  std::string end = c::factor(context, loop.extents[0]);
  if (ir::has_loads(loop.extents[0])) {  // once: the body may write what it reads
    const std::string name = context.names.fresh("end");
    write(context, "const {} {} = {};", context.index_type, name, end);
    end = name;
  }
  begin_loop(context);
  if (loop.kind == ir::LoopKind::unrolled) context.body.line("#pragma unroll");
  context.body.open("for ({1} {0} = 0; {0} < {2}; ++{0})", context.names.of(var), context.index_type, end);
  count_turn(context, loop);
  cuda::emit(context, loop.body);
  end_scope(context);
  context.body.close();
}

// Twice where the prelude can tell whether division by reciprocal is safe.
void write_loop(Context& context, const ir::For& loop) {
  if (context.fast_math) return write_plain_loop(context, loop);
  std::vector<ir::Expr> divisions = reciprocal_divisions(loop);
  std::erase_if(divisions, [&](const ir::Expr& expr) { return context.reciprocal_divisions.contains(expr.get()); });
  if (divisions.empty()) return write_plain_loop(context, loop);
  const auto write = [&](bool quickly) {
    for (const ir::Expr& division : divisions) context.reciprocal_divisions[division.get()] = quickly;
    begin_branch(context);
    write_plain_loop(context, loop);
    end_scope(context);
  };
  open(context, "if ({})", write_reciprocal_test(context, loop, divisions));
  write(true);
  context.body.reopen("else");
  write(false);
  context.body.close();
  for (const ir::Expr& division : divisions) context.reciprocal_divisions.erase(division.get());
}

void write_if(Context& context, const ir::If& node) {
  open(context, "if ({})", c::value(context, node.condition));
  const size_t assumed = context.facts.assume(node.condition);
  begin_branch(context);
  cuda::emit(context, node.then);
  end_scope(context);
  context.facts.forget(assumed);
  if (node.otherwise) {
    context.body.reopen("else");
    begin_branch(context);
    cuda::emit(context, node.otherwise);
    end_scope(context);
  }
  context.body.close();
}

void write_let(Context& context, const ir::Let& let) {
  const ir::DType type = let.var->type;
  if (context.operations) context.operations->bind(let.var, let.value);
  if (c::is_index_arithmetic(let.value) && !c::leaves_index_type(context, let.value)) {
    if (context.operations) context.operations->use_as_index(let.value);
    const std::string text = c::index(context, let.value);
    context.wide.insert(let.var.get());
    write(context, "const {} {} = {};", context.index_type, context.names.of(let.var), text);
    return;
  }
  if (const std::string kept = c::keep_stored(context, let); !kept.empty()) write(context, "{}", kept);
  write(context, "const {} {} = {};", computed_type(type), context.names.of(let.var), c::value(context, let.value));
}

std::string guarded(const std::string& condition) { return condition.empty() ? "" : "if (" + condition + ") "; }

void write_store(Context& context, const ir::Store& store) {
  const bool checked = c::may_leave(context, store.buffer, store.indices);
  const std::string condition = checked ? c::bounds_condition(context, store.buffer, store.indices) : "";
  if (!condition.empty()) put_counter(context);
  const std::string place = c::place(context, store.buffer, store.indices);
  const std::string value = c::element(context, store.value);
  if (condition.empty()) return write(context, "{} = {};", place, value);
  context.body.line("{}{};", guarded(condition), with_counter(context, place + " = " + value));
}

constexpr std::string_view kUpdates[] = {"", "put_update", "add_update", "min_update", "max_update", "or_update"};

// What no other thread sees.
void write_own_update(Context& context, const ir::Atomic& atomic, Span span) {
  constexpr std::optional<ir::BinaryOp> kOperations[] = {
      {}, {}, ir::BinaryOp::add, ir::BinaryOp::min, ir::BinaryOp::max, ir::BinaryOp::bit_or};
  const ir::Buffer& buffer = atomic.element.buffer;
  bind(context, atomic.previous);
  const ir::Expr current = ir::load(buffer, atomic.element.start, span);
  if (atomic.previous)
    write(context, "const {} {} = {};", computed_type(buffer->type), context.names.of(atomic.previous),
          c::value(context, current));
  if (atomic.op == ir::AtomicOp::load) return;
  const auto operation = kOperations[static_cast<size_t>(atomic.op)];
  const ir::Expr value = operation ? ir::binary(*operation, current, atomic.value, span) : atomic.value;
  write(context, "{} = {};", c::place(context, buffer, atomic.element.start), c::element(context, value));
}

void write_relaxed_atomic(Context& context, const ir::Atomic& atomic) {
  const ir::Buffer& buffer = atomic.element.buffer;
  bind(context, atomic.previous);
  const bool checked = c::may_leave(context, buffer, atomic.element.start);
  const std::string condition = checked ? c::bounds_condition(context, buffer, atomic.element.start) : "";
  if (!condition.empty()) put_counter(context);
  const std::string place = c::address(context, buffer, atomic.element.start);
  std::string call = atomic.op == ir::AtomicOp::load
                         ? fmt::format("atomic_read({})", place)
                         : fmt::format("atomic_update<{}>({}, {})", kUpdates[static_cast<size_t>(atomic.op)], place,
                                       c::value(context, atomic.value));
  if (condition.empty())
    put_counter(context);
  else
    call = with_counter(context, call);
  if (!atomic.previous) {
    context.body.line("{}{};", guarded(condition), call);
    return;
  }
  const std::string type = computed_type(buffer->type);
  if (!condition.empty()) call = fmt::format("{} ? {} : {}(0)", condition, call, type);
  context.body.line("const {} {} = {};", type, context.names.of(atomic.previous), call);
}

// Fences around the access order what stands before and after it.
void write_atomic(Context& context, const ir::Atomic& atomic, Span span) {
  using ir::MemoryOrder;
  if (atomic.element.buffer->scope == ir::Scope::local) return write_own_update(context, atomic, span);
  const bool both = atomic.order == MemoryOrder::acq_rel || atomic.order == MemoryOrder::seq_cst;
  if (both || atomic.order == MemoryOrder::release) context.body.line("fence_device();");
  write_relaxed_atomic(context, atomic);
  if (both || atomic.order == MemoryOrder::acquire) context.body.line("fence_device();");
}

void write_thread_sync(Context& context, const ir::Sync& sync, Span span) {
  if (sync.scope == ir::SyncScope::grid) return context.fail(span, "a barrier of the whole grid has no form here");
  if (sync.scope == ir::SyncScope::warp)
    context.body.line("sync_warp();");
  else if (sync.scope == ir::SyncScope::cluster)
    context.body.line("sync_cluster();");
  else if (sync.scope == ir::SyncScope::cluster_wait)
    context.body.line("cluster_wait();");
  else if (sync.threads != 0)
    context.body.line("sync_named({}, {});", sync.barrier, sync.threads);
  else
    context.body.line("sync_threads();");
}

void write_barrier(Context& context, const ir::Barrier& node, Span span) {
  const std::string barrier =
      fmt::format("{} + {}", context.names.of(node.barrier.buffer), c::summand(context, node.barrier.start[0]));
  const bool expects = node.op == ir::BarrierOp::expect || node.op == ir::BarrierOp::arrive_expect;
  const bool nothing = expects && ir::constant_int(node.operand) == 0;
  if (context.operations && node.op == ir::BarrierOp::wait && !context.operations->is_constant(node.operand))
    context.operations->add(Operation::integer);  // the lowest bit
  if (node.op == ir::BarrierOp::wait)
    write(context, "barrier_wait({}, ({}) & 1);", barrier, c::value(context, node.operand));
  else if (expects && !nothing)
    write(context, "{}({}, {});", node.op == ir::BarrierOp::expect ? "barrier_expect" : "barrier_arrive_expect",
          barrier, c::value(context, node.operand));
  else if (node.peer)
    write(context, "{}({}, {});", node.after_reads ? "barrier_release_remote" : "barrier_arrive_remote", barrier,
          c::value(context, node.peer));
  else if (node.op != ir::BarrierOp::expect)
    write(context, "barrier_arrive({});", barrier);
  if (node.threads != 0) context.fail(span, "arrivals of several threads in one go have no form here");
}

void write_async(Context& context, const ir::Async& async) {
  switch (async.op) {
    case ir::AsyncOp::commit_copies:
      return context.body.line("commit_copies();");
    case ir::AsyncOp::wait_copies:
      return context.body.line("wait_copies<{}>();", async.count);
    case ir::AsyncOp::arrive_cluster:
      return context.body.line("cluster_arrive();");
    case ir::AsyncOp::arrive_cluster_relaxed:
      return context.body.line("cluster_arrive_relaxed();");
    case ir::AsyncOp::commit_stores:
    case ir::AsyncOp::wait_stores:
    case ir::AsyncOp::wait_gemms:
    case ir::AsyncOp::fence:
    case ir::AsyncOp::raise_registers:
    case ir::AsyncOp::lower_registers:
      return;  // lowering left what has a form
  }
}

constexpr std::string_view kShuffles[] = {"shuffle", "shuffle_xor", "shuffle_up", "shuffle_down"};

void write_call(Context& context, const ir::ExternCall& call) {
  bind(context, call.result);
  std::string arguments;
  for (const auto& argument : call.arguments) {
    if (!arguments.empty()) arguments += ", ";
    const auto* region = std::get_if<ir::Region>(&argument);
    if (region == nullptr) {
      arguments += c::value(context, std::get<ir::Expr>(argument));
    } else if (region->buffer->scope == ir::Scope::local) {
      arguments += "&" + c::place(context, region->buffer, region->start);
    } else {
      arguments += c::address(context, region->buffer, region->start);
    }
  }
  if (context.operations) context.operations->call(call.function);
  const std::string text = fmt::format("{}({})", call.function, arguments);
  // A foreign function that gives nothing may be called for its effects alone.
  if (call.result && ir::mentions(context.kernel.body, call.result))
    write(context, "const {} {} = {};", computed_type(call.result->type), context.names.of(call.result), text);
  else
    write(context, "{};", text);
}

// Where the last warp may have fewer than 32 threads, the prelude looks whether the other one is there.
void write_shuffle(Context& context, const ir::Shuffle& shuffle) {
  bind(context, shuffle.result);
  const bool partial = thread_count(context.kernel) % layout::kWarpSize != 0;
  if (context.operations && partial) {
    context.operations->add(Operation::integer);
    context.operations->add(Operation::comparison, 2);
  }
  write(context, "const {} {} = {}{}({}, {}, {});", computed_type(shuffle.result->type),
        context.names.of(shuffle.result), kShuffles[static_cast<size_t>(shuffle.op)], partial ? "_partial" : "",
        c::value(context, shuffle.value), c::index(context, shuffle.lane), shuffle.width);
}

void write_while(Context& context, const ir::While& loop) {
  begin_loop(context);
  const std::string condition = c::value(context, loop.condition);
  const std::string counter = take_counter(context);  // for each turn
  context.body.open("while ({})", condition);
  if (!counter.empty()) context.body.line("{};", counter);
  cuda::emit(context, loop.body);
  end_scope(context);
  context.body.close();
}

// The line of the tile program that the next statement comes from.
void name_line(Context& context, Span span) {
  if (context.sources == nullptr || !span.valid() || static_cast<size_t>(span.file) >= context.sources->size()) return;
  context.body.line("#line {} \"{}\"", context.sources->position(span.file, span.begin).line,
                    context.sources->name(span.file));
}

}  // namespace

void emit(Context& context, const ir::Stmt& stmt) {
  if (ir::as<ir::Block>(stmt) == nullptr) {
    if (context.operations) context.operations->start_statement(stmt->span);
    name_line(context, stmt->span);
  }
  const auto refuse = [&](std::string_view what) {
    context.fail(stmt->span, fmt::format("{} not supported by this target yet", what));
  };
  std::visit(ir::overloaded{
                 [&](const ir::For& loop) { write_loop(context, loop); },
                 [&](const ir::While& loop) { write_while(context, loop); },
                 [&](const ir::If& node) { write_if(context, node); },
                 [&](const ir::Let& let) { write_let(context, let); },
                 [&](const ir::Store& store) { write_store(context, store); },
                 [&](const ir::Break&) { context.body.line("break;"); },
                 [&](const ir::Continue&) { context.body.line("continue;"); },
                 [&](const ir::Sync& sync) { write_thread_sync(context, sync, stmt->span); },
                 [&](const ir::Block& block) {
                   for (const ir::Stmt& child : block.body) cuda::emit(context, child);
                 },
                 [&](const ir::Atomic& atomic) { write_atomic(context, atomic, stmt->span); },
                 [&](const ir::Shuffle& shuffle) { write_shuffle(context, shuffle); },
                 [&](const ir::Async& async) { write_async(context, async); },
                 [&](const ir::ExternCall& call) { write_call(context, call); },
                 [&](const ir::Roles&) { refuse("warp-specialised code is"); },
                 [&](const ir::Concurrent&) { refuse("warp-specialised code is"); },
                 [&](const ir::Barrier& barrier) { write_barrier(context, barrier, stmt->span); },
                 [&](const ir::Check& check) {
                   const int64_t number =
                       context.add_check(stmt->span, check.message, DiagnosticKind::assertion_failed);
                   write(context, "if (!({})) fail_check({});", c::value(context, check.condition), number);
                 },
                 [&](const ir::Print& print) { write(context, "print_line({});", c::print_arguments(context, print)); },
                 [&](const auto&) { refuse("this tile operator is"); },  // lowering left none
             },
             stmt->node);
}

}  // namespace tilepilot::targets::cuda
