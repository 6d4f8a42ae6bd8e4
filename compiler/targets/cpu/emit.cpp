#include "compiler/targets/cpu/emit.h"

#include "compiler/ir/visit.h"
#include "compiler/targets/cpu/expr.h"

namespace tilepilot::targets::cpu {
namespace {

void emit_loop(Context& context, const ir::For& loop) {
  if (loop.kind == ir::LoopKind::parallel) return emit_parallel(context, loop);
  const ir::Var& var = loop.vars[0];
  context.wide.insert(var.get());
  const auto extent = ir::constant_int(loop.extents[0]);
  if (loop.kind == ir::LoopKind::unrolled && extent && *extent <= 64) context.body.line("TP_UNROLL");
  context.body.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", context.names.of(var), factor(context, loop.extents[0]));
  emit(context, loop.body);
  context.body.close();
}

void emit_if(Context& context, const ir::If& node) {
  if (context.proven.contains(&node)) return emit(context, node.then);
  context.body.open("if ({})", value(context, node.condition));
  emit(context, node.then);
  if (node.otherwise) {
    context.body.reopen("else");
    emit(context, node.otherwise);
  }
  context.body.close();
}

void emit_let(Context& context, const ir::Let& let) {
  const ir::DType type = let.var->type;
  if (is_index_arithmetic(let.value)) {
    const std::string text = index(context, let.value);
    context.wide.insert(let.var.get());
    context.body.line("const int64_t {} = {};", context.names.of(let.var), text);
    return;
  }
  const std::string text = value(context, let.value);
  context.body.line("const {} {} = {};", computed_type(type), context.names.of(let.var), text);
}

void emit_store(Context& context, const ir::Stmt& stmt, const ir::Store& store) {
  if (!context.stream_target.empty()) {
    context.body.line("{} = {};", context.stream_target, element(context, store.value));
    return;
  }
  const std::string target =
      fmt::format("{}[{}]", context.names.of(store.buffer), offset(context, store.buffer, store.indices));
  std::string condition;
  if (store.buffer->scope == ir::Scope::global && !context.proven.contains(stmt.get()))
    condition = bounds_condition(context, store.buffer, store.indices);
  if (!condition.empty()) condition = "if (" + condition + ") ";
  context.body.line("{}{} = {};", condition, target, element(context, store.value));
}

}  // namespace

void emit(Context& context, const ir::Stmt& stmt) {
  std::visit(ir::overloaded{
                 [&](const ir::For& loop) { emit_loop(context, loop); },
                 [&](const ir::While& loop) {
                   context.body.open("while ({})", value(context, loop.condition));
                   emit(context, loop.body);
                   context.body.close();
                 },
                 [&](const ir::If& node) { emit_if(context, node); },
                 [&](const ir::Let& let) { emit_let(context, let); },
                 [&](const ir::Store& store) { emit_store(context, stmt, store); },
                 [&](const ir::Break&) { context.body.line("break;"); },
                 [&](const ir::Continue&) { context.body.line("continue;"); },
                 [](const ir::Sync&) {},  // thread_regions left none
                 [&](const ir::Block& block) {
                   for (const ir::Stmt& child : block.body) emit(context, child);
                 },
                 [&](const ir::Copy& copy) { emit_copy(context, copy, stmt->span); },
                 [&](const ir::Fill& fill) { emit_fill(context, fill, stmt->span); },
                 [&](const ir::Gemm& gemm) { emit_gemm(context, gemm, stmt->span); },
                 [&](const ir::Reduce& reduce) { emit_reduce(context, reduce, stmt->span); },
             },
             stmt->node);
}

}  // namespace tilepilot::targets::cpu
