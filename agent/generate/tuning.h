// Numbers that an author leaves open. A line `BLOCK_M = 64  # tune: 32, 64, 128` of a program names other values worth
// trying; once the program is verified, the tuner tries them, one name after the other (coordinate descent), and hands
// the fastest on to the author.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/generate/author.h"

namespace tilepilot::agent {

// Of a program: lines that count, and values of each. Programs below that share of the best so far's speed are left
// alone, and so is everything once less than that time is left.
inline constexpr size_t kMostTunables = 8, kMostValues = 16;
inline constexpr double kLeastShareOfBest = 0.8, kLeastSecondsForVariant = 30;

struct Tunable {
  std::string name, value;          // as written
  std::vector<std::string> others;  // values to try, in the order of the line, without `value`
  size_t at = 0;                    // of `value` in the source, in bytes
  bool lists_value = false;         // the line names `value` among its choices
};

// Values are numbers, names or strings in quotes; lines of another form are none.
std::vector<Tunable> tunables_of(const std::string& source);
// The program with another value, and with the old one among the line's choices.
std::string with_value(const std::string& source, const Tunable& tunable, const std::string& value);

// The author's own attempt that a variant goes back to.
size_t origin_of(const std::vector<Attempt>& history, size_t number);

// What the tuner did with an own attempt, or why it did not run; empty: the program leaves no number open.
std::string tuning_report(const std::vector<Attempt>& history, size_t number, int most_variants);

class Tuner {
 public:
  // `most_variants`: of one program; 0: none are tried.
  explicit Tuner(int most_variants);
  ~Tuner();
  // A variant to try next (Candidate::is_variant), after an attempt that is verified and about as fast as the best.
  // nullopt: there is none, and the author goes on. The last attempt must be judged.
  std::optional<Candidate> next(const std::vector<Attempt>& history);

 private:
  class Descent;
  int most_variants_;
  std::unique_ptr<Descent> descent_;
};

}  // namespace tilepilot::agent
