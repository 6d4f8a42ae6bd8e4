// Names for kernels and tensors, from the operators and modules they come from.
#pragma once

#include <string>

#include "agent/builtin/grouping.h"
#include "eval/graph/reference.h"

namespace tilepilot::agent::builtin {

// "layer_norm", "bias_gelu"; the model file's own name if the group is all the model does.
std::string kernel_name(const eval::Reference& reference, const PrimitiveGraph& graph, const Group& group);

// The parameter of a kernel that holds a primitive: "weight", "x".
std::string tensor_name(const eval::Reference& reference, const PrimitiveGraph& graph, int base);

// `text` as an identifier.
std::string identifier(std::string_view text);

}  // namespace tilepilot::agent::builtin
