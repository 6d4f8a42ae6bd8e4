// What a Counter does other than a dict: missing keys count zero, `update` adds, and there is arithmetic.
#pragma once

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

// Adds `sign` for each item of the first argument, `sign` times each value of a mapping, and of each keyword.
Status add_counts(Interpreter& interpreter, DictObject& counter, const CallArgs& args, int sign);
// The methods that a dict has not, or otherwise.
const MethodTable& counter_methods();
// `+`, `-`, `&` and `|`: only positive counts remain.
Result<std::optional<Value>> counter_binary(Interpreter& interpreter, BinaryOp op, const DictObject& left,
                                            const DictObject& right, Span span);
// Counter({...}) with the most frequent first.
Result<std::string> counter_repr(Interpreter& interpreter, const DictObject& counter);

}  // namespace tilepilot::stage
