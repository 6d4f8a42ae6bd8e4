// Builders of statements that this target's passes make.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// One statement alone stays as it is.
ir::Stmt block(std::vector<ir::Stmt> body, Span span);
// A loop that is written out.
ir::Stmt unrolled(const ir::Var& var, int64_t count, std::vector<ir::Stmt> body, Span span);
// A call of the prelude.
using CallArguments = std::vector<std::variant<ir::Expr, ir::Region>>;
ir::Stmt call(std::string function, CallArguments arguments, Span span);
// One element; as an argument its address.
ir::Region element(const ir::Buffer& buffer, std::vector<ir::Expr> indices, Span span);
// All of a buffer of constant extents.
ir::Region whole(const ir::Buffer& buffer, Span span);
// Whether it has the extents of its buffer.
bool is_whole(const ir::Region& region);

// The same statements once more, with variables of their own for those that they bind: of loops and lets.
std::vector<ir::Stmt> again(const std::vector<ir::Stmt>& all);

}  // namespace tilepilot::targets::gpu
