// Random contents for a program's parameters. Floating ones are multiples of 1/64 near 0, so that sums of them are
// exact.
#pragma once

#include "compiler/interpret/machine.h"

namespace tilepilot::ir::testing {

class RandomArguments {
 public:
  // Symbols get small values by the seed.
  RandomArguments(const Program& program, uint32_t seed);
  // In memory of their own; drawing them anew takes longer.
  RandomArguments(const RandomArguments& other);

  const std::vector<interpret::Argument>& values() const { return values_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> bytes_;  // of the views among the values, in order
  std::vector<interpret::Argument> values_;
};

// "parameter 0 (`x`), element 3: 1 and 2" for the first element that differs, else empty. A NaN is as good as another.
// Elements of parameters called `kOutcome` may be some units in the last place apart.
std::string first_difference(const RandomArguments& a, const RandomArguments& b);

}  // namespace tilepilot::ir::testing
