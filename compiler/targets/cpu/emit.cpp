#include "compiler/targets/cpu/emit.h"

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/targets/c/events.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/loops/loop_body.h"
#include "compiler/targets/cpu/loops/private_buffers.h"
#include "compiler/targets/cpu/loops/reductions.h"
#include "compiler/targets/cpu/roles.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kFewestElements = 8;  // of a vector loop; fewer are written out

// Within the lanes of a parallel loop, vectors are those.
bool is_in_lanes(const c::Context& context) { return context.lanes.chunk_size > 0; }

bool has_few(const ir::For& loop) {
  return ir::constant_int(loop.extents[0]).value_or(kFewestElements) < kFewestElements;
}

// What is said to be one, and is: a program may hand values on from one iteration to the next.
bool is_vector_loop(const c::Context& context, const ir::For& loop) {
  return loop.kind == ir::LoopKind::vectorized && !is_in_lanes(context) && !has_few(loop) &&
         iterations_are_independent(context, loop);
}

void emit_loop(c::Context& context, const ir::For& loop) {
  if (loop.kind == ir::LoopKind::parallel) return emit_parallel(context, loop);
  if (is_vector_loop(context, loop)) {
    ir::For vectors = loop;
    vectors.kind = ir::LoopKind::parallel;
    return emit_parallel(context, vectors);
  }
  if (loop.kind == ir::LoopKind::vectorized && !is_in_lanes(context) && !has_few(loop))
    context.note_scalar({flattened(loop.body).front()->span, fmt::format("loop over `{}`", loop.vars[0]->name),
                         "its iterations hand values on to later ones, and not only into a sum, maximum or minimum"});
  const ir::Var& var = loop.vars[0];
  context.wide.insert(var.get());
  std::string end = factor(context, loop.extents[0]);
  if (ir::has_loads(loop.extents[0])) {  // once: the body may write what it reads
    const std::string name = context.names.fresh("end");
    context.body.line("const int64_t {} = {};", name, end);
    end = name;
  }
  if (is_unrolled(loop)) context.body.line("TP_UNROLL");
  context.body.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", context.names.of(var), end);
  ++context.loops;
  if (loop.kind == ir::LoopKind::vectorized && !is_in_lanes(context)) declare_private_buffers(context, loop.body);
  emit(context, loop.body);
  --context.loops;
  context.body.close();
}

void emit_if(c::Context& context, const ir::If& node) {
  if (context.proven.contains(&node)) return emit(context, node.then);
  context.body.open("if ({})", value(context, node.condition));
  const size_t assumed = context.facts.assume(node.condition);
  emit(context, node.then);
  context.facts.forget(assumed);
  if (node.otherwise) {
    context.body.reopen("else");
    emit(context, node.otherwise);
  }
  context.body.close();
}

void emit_let(c::Context& context, const ir::Let& let) {
  const ir::DType type = let.var->type;
  if (c::is_index_arithmetic(let.value)) {
    const std::string text = index(context, let.value);
    context.wide.insert(let.var.get());
    context.body.line("const int64_t {} = {};", context.names.of(let.var), text);
    return;
  }
  if (const std::string kept = c::keep_stored(context, let); !kept.empty()) context.body.line("{}", kept);
  const std::string text = value(context, let.value);
  context.body.line("const {} {} = {};", c::computed_type(type), context.names.of(let.var), text);
}

// When an element may be written; empty if always.
std::string write_condition(c::Context& context, const ir::Stmt& stmt, const ir::Buffer& buffer,
                            const std::vector<ir::Expr>& indices) {
  if (context.proven.contains(stmt.get()) || !may_leave(context, buffer, indices)) return "";
  return bounds_condition(context, buffer, indices);
}

void emit_store(c::Context& context, const ir::Stmt& stmt, const ir::Store& store) {
  if (!context.stream_target.empty()) {
    context.body.line("{} = {};", context.stream_target, element(context, store.value));
    return;
  }
  if (const auto kept = context.lanes.stores.find(stmt.get()); kept != context.lanes.stores.end()) {
    const bool is_small = store.value->type.is_small_float();  // then it is rounded where it is stored
    context.body.line("{} = {};", kept->second, (is_small ? c::unrounded : c::element)(context, store.value));
    return;
  }
  const std::string target = place(context, store.buffer, store.indices);
  std::string condition = write_condition(context, stmt, store.buffer, store.indices), otherwise;
  if (!condition.empty() && fails_out_of_bounds(context, store.buffer))
    otherwise = fmt::format(" else fail_check(events, {});", context.add_tile_check(store.buffer, stmt->span));
  if (!condition.empty()) condition = "if (" + condition + ") ";
  context.body.line("{}{} = {};{}", condition, target, element(context, store.value), otherwise);
}

constexpr std::string_view kAtomicUpdates[] = {"", "put_update", "add_update", "min_update", "max_update", "or_update"};

// Blocks of a grid run on many threads, the threads of a block on one: only global memory needs atomic updates.
void emit_atomic(c::Context& context, const ir::Stmt& stmt, const ir::Atomic& atomic) {
  const ir::Buffer& buffer = atomic.element.buffer;
  const bool is_global = buffer->scope == ir::Scope::global;
  const std::string place = "&" + context.names.of(buffer) + "[" + offset(context, buffer, atomic.element.start) + "]";
  std::string call;
  if (atomic.op == ir::AtomicOp::load)
    call = fmt::format("{}({})", is_global ? "atomic_read" : "plain_read", place);
  else
    call = fmt::format("{}<{}>({}, {})", is_global ? "atomic_update" : "plain_update",
                       kAtomicUpdates[static_cast<size_t>(atomic.op)], place, value(context, atomic.value));
  const std::string condition = write_condition(context, stmt, buffer, atomic.element.start);
  const bool fails = !condition.empty() && fails_out_of_bounds(context, buffer);
  const int64_t number = fails ? context.add_tile_check(buffer, stmt->span) : 0;
  if (!atomic.previous) {
    context.body.line("{}{};{}", condition.empty() ? "" : "if (" + condition + ") ", call,
                      fails ? fmt::format(" else fail_check(events, {});", number) : "");
    return;
  }
  const std::string type = c::computed_type(buffer->type);
  const std::string nothing =
      fails ? fmt::format("fail_load<{}>(events, {})", type, number) : fmt::format("{}(0)", type);
  if (!condition.empty()) call = fmt::format("{} ? {} : {}", condition, call, nothing);
  context.body.line("[[maybe_unused]] const {} {} = {};", type, context.names.of(atomic.previous), call);
}

}  // namespace

void emit(c::Context& context, const ir::Stmt& stmt) {
  std::visit(ir::overloaded{
                 [&](const ir::For& loop) { emit_loop(context, loop); },
                 [&](const ir::While& loop) {
                   context.body.open("while ({})", value(context, loop.condition));
                   ++context.loops;
                   emit(context, loop.body);
                   --context.loops;
                   context.body.close();
                 },
                 [&](const ir::If& node) { emit_if(context, node); },
                 [&](const ir::Let& let) { emit_let(context, let); },
                 [&](const ir::Store& store) { emit_store(context, stmt, store); },
                 [&](const ir::Break&) { context.body.line("break;"); },
                 [&](const ir::Continue&) { context.body.line("continue;"); },
                 [&](const ir::Sync& sync) { emit_sync(context, sync, stmt->span); },
                 [&](const ir::Block& block) {
                   for (const ir::Stmt& child : block.body) emit(context, child);
                 },
                 [&](const ir::Copy& copy) { emit_copy(context, copy, stmt->span); },
                 [&](const ir::Fill& fill) { emit_fill(context, fill, stmt->span); },
                 [&](const ir::Gemm& gemm) { emit_gemm(context, gemm, stmt->span); },
                 [&](const ir::Reduce& reduce) { emit_reduce(context, reduce, stmt->span); },
                 [](const ir::Scan&) {},  // expand_scans left none
                 [&](const ir::Atomic& atomic) { emit_atomic(context, stmt, atomic); },
                 [](const ir::AllReduce&) {},  // thread_regions left none
                 [](const ir::Shuffle&) {},
                 [](const ir::LoadMatrix&) {},
                 [](const ir::Mma&) {},
                 [](const ir::Roles&) {},
                 [&](const ir::Barrier& barrier) { emit_barrier(context, barrier, stmt->span); },
                 [](const ir::Async&) {},  // nothing is under way
                 [&](const ir::Concurrent& roles) { emit_concurrent(context, roles); },
                 [&](const ir::Check& check) { emit_check(context, check, stmt->span); },
                 [&](const ir::Print& print) { emit_print(context, print); },
                 [](const ir::ExternCall&) {},  // check_supported lets none pass
             },
             stmt->node);
}

}  // namespace tilepilot::targets::cpu
