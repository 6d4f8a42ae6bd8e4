// Evaluates integer and bool expressions over known variables: the oracle of the tests of bounds and rules.
#pragma once

#include <unordered_map>

#include "compiler/ir/expr.h"

namespace tilepilot::ir::testing {

using Values = std::unordered_map<const VarData*, int64_t>;

// Loads and floating point are not supported; divisors are not 0.
int64_t evaluate(const Expr& e, const Values& values);

}  // namespace tilepilot::ir::testing
