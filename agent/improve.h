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

// Where a run is written down.
struct RunRecord {
  RunStore& store;
  int64_t run;
};

struct RunOutcome {
  Ending ending = Ending::nothing_left;
  std::vector<Attempt> attempts;
  std::optional<size_t> best;  // the verified attempt with the highest speed-up
  Error failure;               // author_failed: why
  double seconds = 0;
};

struct LoopEvents {
  std::function<void(int number, const Candidate&)> on_candidate = [](int, const Candidate&) {};
  std::function<void(int number, const Attempt&)> on_attempt = [](int, const Attempt&) {};
  // The best of several was judged a second time; its verdict is now this one.
  std::function<void(int number, const Attempt&)> on_confirmed = [](int, const Attempt&) {};
};

// Errors are those of the store; whatever else goes wrong is an ending.
Result<RunOutcome> improve(Author& author, eval::Judge& judge, RunRecord record, const Budget& budget,
                           const LoopEvents& events, const Clock& clock = steady_clock());

// The verified attempt with the highest speed-up over eager, or nullopt. Times of different attempts were taken at
// different times on a machine that does other things too; each ratio was taken side by side.
std::optional<size_t> best_of(const std::vector<Attempt>& attempts);

}  // namespace tilepilot::agent
