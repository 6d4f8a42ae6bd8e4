// Launches of threads that only count their elements, `i = block * 256 + thread`, and take the count apart into places,
// `i % 56`, `i // 56 % 64`: with loops over these places instead. Blocks then are boxes of places, chosen for what the
// threads share.
#pragma once

#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {

struct Places {
  ir::Kernel kernel;  // one block that does everything, in one loop over `all`; its body is `body`
  ir::Stmt body;
  std::vector<Dimension> all;    // slowest first; extents are constant
  bool are_taken_apart = false;  // some number of the program is several places
};

// Nullopt if threads meet, or share memory that is not global. `kernel` has no lets of index arithmetic.
std::optional<Places> find_places(const ir::Kernel& kernel);

// Blocks of so many places along each dimension.
ir::Kernel with_blocks(const Places& places, const std::vector<int64_t>& sizes);

}  // namespace tilepilot::targets::cpu
