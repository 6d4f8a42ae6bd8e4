// Index-set splitting: a condition that holds for one interval of a loop's variable, `0 <= column + k - 1 and
// column + k - 1 < width`. The loop then runs over that interval alone, and its body needs no mask.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

struct SplitIndexSet {
  std::vector<std::string> conditions;  // that have nothing to do with the variable; all must hold
  std::vector<std::string> first, end;  // the largest and the least of these
};

// Nullopt unless the condition is made of comparisons of index arithmetic, in variables that are known outside the loop
// beside its own.
std::optional<SplitIndexSet> split_index_set(c::Context& context, const ir::Expr& condition, const ir::Var& var,
                                             const std::function<bool(const ir::Var&)>& is_inside);

// A loop that counts from 0 to `extent`, where the variable is `base` (empty: 0) more.
struct CountedLoop {
  std::string extent, base;
};
// Writes where the interval begins and ends, as this loop counts, and gives the names of both.
std::pair<std::string, std::string> write_range(c::Context& context, const SplitIndexSet& range,
                                                const CountedLoop& loop);

}  // namespace tilepilot::targets::cpu
