// The improve loop: ask the author, judge, store, tell the author, until nothing is left to try or a budget is spent.
#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "agent/generate/finalists.h"
#include "agent/store/run_store.h"

namespace tilepilot::agent {

// A run ends when the first of these is spent.
struct Budget {
  int attempts = 12;  // of the author
  int variants = 8;   // of each program that leaves numbers open (agent/generate/tuning.h), beside these
  double minutes = 10;
  // What the author may spend, which the author itself keeps to: it begins nothing that could exceed it.
  double dollars = 1;
  int64_t tokens = std::numeric_limits<int64_t>::max();
};

enum class Ending {
  nothing_left,
  attempts_spent,
  time_spent,
  money_spent,
  tokens_spent,
  no_progress,
  at_roofline,
  not_worth_it,
  author_failed,
  worker_failed,
};
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
  // Of a run that was interrupted: what it judged. The author is asked again; as long as it says the same, the verdicts
  // hold.
  std::vector<Attempt> earlier = {};
};

struct RunOutcome {
  Ending ending = Ending::nothing_left;
  std::vector<Attempt> attempts;
  std::optional<size_t> best;             // the verified attempt with the highest speed-up
  std::vector<size_t> finalists;          // attempts that were measured side by side; empty: one is verified, or none
  std::vector<size_t> indistinguishable;  // finalists whose intervals overlap with that of the best
  Error failure;                          // author_failed: why
  double seconds = 0;
  Spending spending;  // of the author
};

struct LoopEvents {
  std::function<void(int number, const Candidate&)> on_candidate = [](int, const Candidate&) {};
  std::function<void(int number, const Attempt&)> on_attempt = [](int, const Attempt&) {};
  // It has been measured beside earlier ones: its pairings say what that gave.
  std::function<void(int number, const Attempt&)> on_paired = [](int, const Attempt&) {};
  // These attempts are about to be measured side by side, and what that gave for each.
  std::function<void(const std::vector<size_t>& numbers)> on_finalists = [](const std::vector<size_t>&) {};
  std::function<void(int number, const Attempt&)> on_compared = [](int, const Attempt&) {};
};

// The judge is asked first when there is something to judge. Errors are those of the store, and of a judge that is not
// ready; whatever else goes wrong is an ending.
Result<RunOutcome> improve(Author& author, eval::Judge& judge, RunRecord record, const Budget& budget,
                           const LoopEvents& events, const Clock& clock = steady_clock());

}  // namespace tilepilot::agent
