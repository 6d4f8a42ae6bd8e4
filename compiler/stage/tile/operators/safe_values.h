// What reads outside a tensor give, where a kernel says so (`T.annotate_safe_value`): another value than 0.
#pragma once

#include <unordered_map>

#include "compiler/ir/stmt.h"

namespace tilepilot::stage {

using SafeValues = std::unordered_map<const ir::BufferData*, ir::Expr>;

// The kernel with conditions where elements of these tensors are read, and loops over elements for copies from them.
ir::Kernel with_safe_values(const ir::Kernel& kernel, const SafeValues& values);

}  // namespace tilepilot::stage
