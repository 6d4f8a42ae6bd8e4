// Whether a pass kept what a program means, tried on random arguments.
#pragma once

#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::ir::testing {

enum class Meaning { same, different, unknown };  // unknown: the first runs too long

inline Meaning compare_meaning(const Program& before, const Program& after, uint32_t seed) {
  const RandomArguments a(before, seed), b(before, seed);
  interpret::Options options;
  options.steps = 2'000'000;
  const auto fault = interpret::run(before, a.values(), options);
  if (fault && fault->kind == interpret::FaultKind::budget_exceeded) return Meaning::unknown;
  EXPECT_FALSE(fault) << "seed " << seed << ": " << fault->message << "\n" << to_text(before);
  options.steps *= 10;
  // A store of half a byte reads the other half, whoever has written that.
  options.reports_uninitialised = false;
  const auto later = interpret::run(after, b.values(), options);
  EXPECT_FALSE(later) << "seed " << seed << ": " << later->message << "\n" << to_text(before) << to_text(after);
  const std::string difference = first_difference(a, b);
  EXPECT_EQ(difference, "") << "seed " << seed;
  return fault || later || !difference.empty() ? Meaning::different : Meaning::same;
}

}  // namespace tilepilot::ir::testing
