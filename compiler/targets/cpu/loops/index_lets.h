// Lets of index arithmetic, put in their place: what matters of an index is how it depends on loops' variables.
#pragma once

#include <functional>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

// `stays`: whether the let of such a value is left as it is.
ir::Stmt without_index_lets(const ir::Stmt& stmt, const std::function<bool(const ir::Expr&)>& stays);

}  // namespace tilepilot::targets::cpu
