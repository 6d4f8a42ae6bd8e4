// The stable sort behind list.sort and sorted.
#pragma once

#include "compiler/stage/python/objects/value.h"

namespace tilepilot::stage {

struct SortOptions {
  Value key;  // a function, or None
  bool reverse = false;
  Span span;
};
Result<std::vector<Value>> sorted(Interpreter& interpreter, std::vector<Value> items, const SortOptions& options);

}  // namespace tilepilot::stage
