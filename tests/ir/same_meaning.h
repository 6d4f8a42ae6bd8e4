// Whether a pass kept what a program means, tried on random arguments.
#pragma once

#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "interpreter.h"

namespace tilepilot::ir::testing {

enum class Meaning { same, different, unknown };  // unknown: runs too long

// Bits must be equal; a NaN is as good as another.
inline Meaning compare_meaning(const Program& before, const Program& after, uint32_t seed) {
  Arguments a = random_arguments(before, seed), b = a;
  if (!interpret(before, a, 2'000'000) || !interpret(after, b, 4'000'000)) return Meaning::unknown;
  size_t index = 0;
  for (const auto& parameter : before.parameters) {
    const auto* buffer = std::get_if<Buffer>(&parameter);
    if (!buffer) continue;
    const auto &x = a.buffers[index], &y = b.buffers[index];
    ++index;
    const DType type = (*buffer)->type;
    for (size_t k = 0; k < x.size(); ++k) {
      const bool both_nan = type.is_float() && x[k].f != x[k].f && y[k].f != y[k].f;
      if (!both_nan && to_bits(x[k], type) != to_bits(y[k], type)) return Meaning::different;
    }
  }
  return Meaning::same;
}

}  // namespace tilepilot::ir::testing
