// Asynchronous products between their start and a wait: whose registers hold values from which wait on. Statements are
// met in the order of the text; what a loop or a branch may have left under way counts as under way.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

class ProductsInFlight {
 public:
  using Registers = std::vector<ir::Buffer>;  // of a product: its sums, and A if it is held

  bool empty() const { return may_run_.empty(); }
  // A product starts.
  void begin(const Registers& product);
  // The place may be reached with these under way, too: the next iteration of a loop that starts them begins here.
  void may_run(const Registers& product);
  // Until at most `count` products run. Gives the registers that may have been in use and no more are.
  Registers wait(int64_t count);
  // Two roads meet: each may have been taken.
  void join(const ProductsInFlight& other);

 private:
  Registers may_run_;               // each once
  std::vector<Registers> started_;  // the last ones on every road, in order
};

}  // namespace tilepilot::targets::gpu
