// The module `copy`, for objects of other files too: one whose type has a method `__deepcopy__` (or `__copy__`) copies
// itself. The memo is Python's: a dict from `id(object)` to the copy.
#pragma once

#include "compiler/stage/python/containers/containers.h"

namespace tilepilot::stage {

Result<Value> deep_copy(Interpreter& interpreter, const Value& value, const std::shared_ptr<DictObject>& memo,
                        Span span);

// Notes in the memo what is copied already, so that cycles end.
Status remember_copy(Interpreter& interpreter, DictObject& memo, const Object& original, Value copy, Span span);

// The second argument of `__deepcopy__`; a new memo if none was passed.
std::shared_ptr<DictObject> memo_of(const CallArgs& args);

}  // namespace tilepilot::stage
