// Whether a pass kept what a program means, tried on random arguments.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::ir::testing {

enum class Meaning { same, different, unknown };  // unknown: the first runs too long

// A program and what it computes: interpreted once, however many others are compared with it.
class Original {
 public:
  Original(const Program& program, uint32_t seed, int steps = 2'000'000)
      : program_(program), seed_(seed), given_(program, seed), results_(given_) {
    interpret::Options options;
    options.steps = steps;
    fault_ = interpret::run(program, results_.values(), options);
    if (!is_too_long()) {
      EXPECT_FALSE(fault_) << "seed " << seed << ": " << fault_->message << "\n" << to_text(program);
    }
  }

  Meaning compare(const Program& after) const {
    if (is_too_long()) return Meaning::unknown;
    const RandomArguments results(given_);
    interpret::Options options;
    options.steps = 20'000'000;
    // A store of half a byte reads the other half, whoever has written that.
    options.reports_uninitialised = false;
    const auto later = interpret::run(after, results.values(), options);
    EXPECT_FALSE(later) << "seed " << seed_ << ": " << later->message << "\n" << to_text(program_) << to_text(after);
    const std::string difference = first_difference(results_, results);
    EXPECT_EQ(difference, "") << "seed " << seed_;
    return fault_ || later || !difference.empty() ? Meaning::different : Meaning::same;
  }

 private:
  const Program program_;
  uint32_t seed_;
  const RandomArguments given_;
  RandomArguments results_;
  std::optional<interpret::Fault> fault_;

  bool is_too_long() const { return fault_ && fault_->kind == interpret::FaultKind::budget_exceeded; }
};

inline Meaning compare_meaning(const Program& before, const Program& after, uint32_t seed, int steps = 2'000'000) {
  return Original(before, seed, steps).compare(after);
}

}  // namespace tilepilot::ir::testing
