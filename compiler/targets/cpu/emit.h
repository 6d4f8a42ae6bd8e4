// The emitters of statements: each writes its C++ to `context.body`.
#pragma once

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

void emit(c::Context& context, const ir::Stmt& stmt);
// A loop of kind `parallel` over tile elements: vector code, with a path for blocks inside their tensors and one for
// blocks at the edges where the two differ.
void emit_parallel(c::Context& context, const ir::For& loop);
void emit_copy(c::Context& context, const ir::Copy& copy, Span span);
void emit_fill(c::Context& context, const ir::Fill& fill, Span span);
void emit_gemm(c::Context& context, const ir::Gemm& gemm, Span span);
void emit_reduce(c::Context& context, const ir::Reduce& reduce, Span span);

}  // namespace tilepilot::targets::cpu
