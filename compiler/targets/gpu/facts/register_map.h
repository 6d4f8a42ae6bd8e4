// Where a thread finds, in its own registers, the elements of a fragment that its iterations of a loop name.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/layout/fragment.h"

namespace tilepilot::targets::gpu {

// For each register of `loop`, the register of `held` in which the same thread holds element `indices` of that
// iteration; -1 if no thread has such an iteration. Nullopt if a thread lacks its element, or threads differ.
std::optional<std::vector<int64_t>> register_map(const layout::Fragment& loop, const std::vector<ir::Var>& vars,
                                                 const std::vector<ir::Expr>& indices, const layout::Fragment& held);

// Whether each thread has its elements, as far as some registers of some threads show; much faster.
bool may_have_register_map(const layout::Fragment& loop, const std::vector<ir::Var>& vars,
                           const std::vector<ir::Expr>& indices, const layout::Fragment& held);

}  // namespace tilepilot::targets::gpu
