// Roles of a block that wait for each other: coroutines of the prelude's `block_roles`, and the barriers between them.
#pragma once

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

void emit_concurrent(c::Context& context, const ir::Concurrent& node);
void emit_sync(c::Context& context, const ir::Sync& sync, Span span);
void emit_barrier(c::Context& context, const ir::Barrier& node, Span span);
void declare_barriers(c::Context& context, const ir::Buffer& buffer);

}  // namespace tilepilot::targets::cpu
