// What was chosen for a statement of the program, and what keeps it from something faster: noted where it is chosen,
// for `compile --explain`.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

struct Decision {
  Span span;
  std::string what;                         // "copy A -> tile"
  std::string chosen;                       // "cp.async of 4 bytes"
  std::vector<std::string> obstacles = {};  // "not TMA: rows of 24 bytes are no multiple of 32"

  friend bool operator==(const Decision&, const Decision&) = default;
};

// "copy A -> tile".
std::string name_of_copy(const ir::Buffer& from, const ir::Buffer& to);

// In the order of the program's text, each once.
std::vector<Decision> in_order(std::vector<Decision> decisions);

}  // namespace tilepilot::targets::gpu
