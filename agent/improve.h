// The improve loop: ask the author, judge, store, tell the author, until nothing is left to try or a budget is spent.
#pragma once

#include <functional>
#include <optional>

#include "agent/author.h"
#include "agent/run_store.h"

namespace tilepilot::agent {

// A run ends when the first of these is spent.
struct Budget {
  int attempts = 12;
  double minutes = 10;
  double dollars = 1;  // what the author may spend; authors that cost nothing never reach it
};

enum class Ending { nothing_left, attempts_spent, time_spent, money_spent, author_failed, worker_failed };
std::string_view to_string(Ending ending);

// The outside world of the loop, replaced by fakes in tests.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() const = 0;  // from any fixed point, never backwards
};
const Clock& steady_clock();

struct RunOutcome {
  Ending ending = Ending::nothing_left;
  std::vector<Attempt> attempts;
  std::optional<size_t> best;  // the fastest verified attempt
  Error failure;               // author_failed: why
  double seconds = 0;
};

struct LoopEvents {
  std::function<void(int number, const Candidate&)> on_candidate;
  std::function<void(int number, const Attempt&)> on_attempt;
};

// Errors are those of the store; whatever else goes wrong is an ending.
Result<RunOutcome> improve(Author& author, eval::Judge& judge, RunStore& store, int64_t run, const Budget& budget,
                           const LoopEvents& events, const Clock& clock = steady_clock());

// The fastest verified attempt, or nullopt.
std::optional<size_t> best_of(const std::vector<Attempt>& attempts);

}  // namespace tilepilot::agent
