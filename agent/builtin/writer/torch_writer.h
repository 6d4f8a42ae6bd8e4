// PyTorch calls as text: ATen nodes that stay calls, in the spelling a person would use where there is one, and
// primitives that are too small for a kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/builtin/import/primitives.h"

namespace tilepilot::agent::builtin {

// The text of an operand.
using OperandText = std::function<std::string(int primitive)>;

// A constant without tensors: None, a number, a text, an element type.
std::string write_plain(const eval::GraphArgument& argument);

// The call of the ATen node behind a `call` primitive; its value operands are the primitive's `args`, in order.
// `device`: what stands for the device that the graph was exported on, since the program may run on another one.
std::string write_call(const eval::GraphNode& node, const Primitive& call, const OperandText& text,
                       const std::string& device);
// The right operand of a product as its expression names it: [N, K], or [K, N] before a transpose that it leaves away.
int right_operand(const PrimitiveGraph& graph, const Primitive& product);
// A map, reduction, view or product as one PyTorch expression.
std::string write_primitive(const PrimitiveGraph& graph, int id, const OperandText& text);
// "(4, 512)", "(4,)", "()".
std::string tuple_text(const Shape& shape);
// "4, 512"; "()" for no axes: the arguments of `view`.
std::string extents_text(const Shape& shape);

}  // namespace tilepilot::agent::builtin
