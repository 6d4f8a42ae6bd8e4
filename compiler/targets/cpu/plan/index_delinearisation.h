// Index delinearisation: launches whose threads only number their elements, `i = block * 256 + thread`, and take the
// number apart, `i % 56`, `i // 56 % 64`, become loops over these dimensions. Blocks then are boxes of them, chosen for
// what the threads share.
#pragma once

#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {

struct DelinearisedLaunch {
  ir::Kernel kernel;  // one block that does everything, in one loop over `all`; its body is `body`
  ir::Stmt body;
  std::vector<Dimension> all;    // slowest first; extents are constant
  bool are_taken_apart = false;  // some number of the program is several places
};

// Nullopt if threads meet, or share memory that is not global. `kernel` has no lets of index arithmetic.
std::optional<DelinearisedLaunch> delinearise(const ir::Kernel& kernel);

// Blocks of so many places along each dimension.
ir::Kernel with_blocks(const DelinearisedLaunch& places, const std::vector<int64_t>& sizes);

}  // namespace tilepilot::targets::cpu
