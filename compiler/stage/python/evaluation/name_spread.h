// Where the tables of scopes and namespaces begin to look for a name.
#pragma once

#include "compiler/syntax/tree.h"

namespace tilepilot::stage {

// Names are interned, so the address of one's text says which it is; Fibonacci hashing (Knuth, volume 3, section 6.4)
// spreads addresses, whose lowest bits are equal.
inline size_t spread(syntax::Name name) {
  auto bits = reinterpret_cast<uintptr_t>(name.id());
  return static_cast<size_t>((bits >> 4) * 0x9E3779B97F4A7C15ull >> 20);
}

}  // namespace tilepilot::stage
