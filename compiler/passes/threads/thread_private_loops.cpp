#include "compiler/passes/threads/thread_private_loops.h"

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/element_form.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

class ThreadPrivateLoops : public Rewriter {
 public:
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& s) override {
    const Accesses accesses = region_accesses(s);
    const auto is_local = [](const Region* r) { return r->buffer->scope == Scope::local; };
    const bool local = std::any_of(accesses.writes.begin(), accesses.writes.end(), is_local) ||
                       std::any_of(accesses.reads.begin(), accesses.reads.end(), is_local);
    if (const auto* fill = as<Fill>(s); local && fill && has_load(fill->value)) return read_first(*fill, s->span);
    const auto form = local ? box_form(s) : std::nullopt;
    if (!form) return rewrite_children(s);
    Stmt body = make_stmt(Block{form->body}, s->span);
    const auto* copy = as<Copy>(s);
    const bool apart = copy && memory_of(copy->source.buffer) != memory_of(copy->destination.buffer);
    for (size_t k = form->vars.size(); k-- > 0;) {
      const Expr extent = int_imm(form->extents[k], form->vars[k]->type, s->span);
      const bool innermost = k + 1 == form->vars.size();
      const LoopKind kind = innermost && apart ? LoopKind::vectorized : LoopKind::serial;
      body = make_stmt(For{kind, {form->vars[k]}, {extent}, 0, std::move(body)}, s->span);
    }
    return body;
  }

 private:
  // The value may be read from what is filled.
  Stmt read_first(const Fill& fill, Span span) {
    const Var value = make_var("value", fill.value->type);
    const Stmt read = make_stmt(Let{value, fill.value}, span);
    return make_stmt(Block{{read, rewrite(make_stmt(Fill{fill.destination, var_ref(value)}, span))}}, span);
  }
};

}  // namespace

Stmt thread_private_loops(const Stmt& body) { return ThreadPrivateLoops().rewrite(body); }

}  // namespace tilepilot::passes
