// Attempts for tests of what a language model is told about them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "agent/generate/author.h"

namespace tilepilot::agent {

inline std::string program_number(int number) { return fmt::format("class ModelNew:\n    number = {}\n", number); }

inline Attempt attempt_with(eval::Outcome outcome, const std::string& source = program_number(0)) {
  Attempt attempt{{source, "first"}, {}};
  attempt.verdict.outcome = outcome;
  return attempt;
}

inline Attempt verified_in(double us, const std::string& source, double eager_us = 100) {
  Attempt attempt = attempt_with(eval::Outcome::verified, source);
  attempt.verdict.candidate = eval::Timing{us, us, us, 3};
  attempt.verdict.eager = eval::Timing{eager_us, eager_us, eager_us, 3};
  attempt.verdict.speedup_low = 0.95 * eager_us / us;
  attempt.verdict.speedup_high = 1.05 * eager_us / us;
  attempt.verdict.generated_share = 1;
  return attempt;
}

inline Attempt variant_of(size_t changed, Attempt attempt) {
  attempt.candidate.changes = changed;
  attempt.candidate.is_variant = true;
  return attempt;
}

}  // namespace tilepilot::agent
