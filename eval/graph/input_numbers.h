// Models with other numbers among their inputs: 3.14 where `get_inputs` always gives 2.5.
#pragma once

#include <string>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

// From here on a `strength` below stands for one of the reference's variants, which has a graph of its own.
inline constexpr int kFirstVariant = 1 << 20;
// nullptr: the strength stands for none.
const InputVariant* variant_of(const Reference& reference, int strength);

// The value of a number at `strength`: one more of an integer (1) or one less (-1), half as much again of a floating
// number, or half of it.
GraphArgument other_number(const GraphArgument& number, int strength);
// The graph of `forward` with such values of all its InputNumbers.
Graph with_other_numbers(const Reference& reference, int strength);
// What `get_inputs` gives (Reference::inputs.outputs), likewise.
GraphArgument inputs_with_other_numbers(const Reference& reference, int strength);
// Numbers and flags among the inputs that no trial can change, as text: "input 1 (3)".
std::vector<std::string> fixed_numbers(const Reference& reference);

}  // namespace tilepilot::eval
