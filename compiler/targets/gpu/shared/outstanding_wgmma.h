// Outstanding wgmma: those that were started and not waited for, and the registers whose values they still use or
// produce. Statements are visited in program order; what a loop or a branch may have left outstanding counts as
// outstanding.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

class OutstandingWgmma {
 public:
  using Registers = std::vector<ir::Buffer>;  // of one wgmma: its accumulators, and A if that is in registers

  bool empty() const { return may_run_.empty(); }
  // A wgmma starts.
  void begin(const Registers& product);
  // The place may be reached with these under way, too: the next iteration of a loop that starts them begins here.
  void may_run(const Registers& product);
  // Waits until at most `count` are outstanding. Returns the registers that are no longer in use.
  Registers wait(int64_t count);
  // Control flow joins: either path may have been taken.
  void join(const OutstandingWgmma& other);

 private:
  Registers may_run_;               // each once
  std::vector<Registers> started_;  // the last ones on every path, in order
};

}  // namespace tilepilot::targets::gpu
