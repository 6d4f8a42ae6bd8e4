// The emitters of statements: each writes its C++ to `context.body`.
#pragma once

#include "compiler/targets/cpu/context.h"

namespace tilepilot::targets::cpu {

void emit(Context& context, const ir::Stmt& stmt);
// A loop of kind `parallel` over tile elements: vector code, with a path for blocks inside their tensors and one for
// blocks at the edges where the two differ.
void emit_parallel(Context& context, const ir::For& loop);
void emit_copy(Context& context, const ir::Copy& copy, Span span);
void emit_fill(Context& context, const ir::Fill& fill, Span span);
void emit_gemm(Context& context, const ir::Gemm& gemm, Span span);
void emit_reduce(Context& context, const ir::Reduce& reduce, Span span);

}  // namespace tilepilot::targets::cpu
