// A batch: problems side by side, each in a process of its own, with every state in the database before the next step.
// A problem that hangs, crashes or loses its GPU or endpoint is one problem's outcome.
#pragma once

#include <functional>

#include "agent/generate/improve.h"
#include "kernelbench/batch_store.h"

namespace tilepilot::kernelbench {

// What one problem may take.
struct Allowance {
  double minutes = 10;
  double dollars = 1;
};

// The outside world of a batch, replaced by a fake in tests.
class ProblemRunner {
 public:
  virtual ~ProblemRunner() = default;
  // Runs one problem to its end. Called by several threads at once. `stage` is told, in few words, what goes on.
  // nullopt: `stop` was called meanwhile; the problem is as if it had been killed, and goes on another time.
  virtual std::optional<Outcome> run(int64_t batch, const Problem& problem, const Allowance& allowance,
                                     const std::function<void(const std::string&)>& stage) = 0;
  // Ends what runs.
  virtual void stop() = 0;
};

// Every `count`-th problem of a batch, by level and id, from number `index` on. Shares of one batch have no problem in
// common, and all of them together have all.
struct Share {
  int index = 1;
  int count = 1;
  bool has(size_t place) const { return place % static_cast<size_t>(count) == static_cast<size_t>(index - 1); }
};
// "2/8". Errors: `bad_usage`, for what is none.
Result<Share> parse_share(std::string_view text);

struct BatchOptions {
  int jobs = 1;
  Allowance each;      // of a problem
  double minutes = 0;  // of this call; 0: no limit
  // Problems in an order drawn from the batch's number: what a limit leaves undone is then a random sample of all.
  bool shuffle = false;
  double dollars = 0;              // of the batch, what it has spent before included; 0: no limit
  int most_tries = 2;              // of a problem that ends `not_judged`, in this call
  int most_failures_in_a_row = 5;  // problems `not_judged` one after another that end the call
  Share share;                     // of the batch's problems that this call works on
  std::function<bool()> still_ours = [] { return true; };  // asked before each problem; if not, the call is halted
};

enum class BatchEnd { complete, time_spent, money_spent, halted };
std::string_view to_string(BatchEnd end);

struct Progress {
  int total = 0, done = 0, verified = 0, running = 0;
  double dollars = 0;
  double seconds_left = 0;  // estimated from the problems that ended in this call; 0: nothing is known yet
};

// Each is called by one thread at a time.
struct BatchEvents {
  std::function<void(const Problem&)> on_begin = [](const Problem&) {};
  std::function<void(const Problem&, const std::string&)> on_stage = [](const Problem&, const std::string&) {};
  std::function<void(const Problem&, const Outcome&, const Progress&)> on_end = [](const Problem&, const Outcome&,
                                                                                   const Progress&) {};
};

struct BatchResult {
  BatchEnd end = BatchEnd::complete;
  std::string why;  // halted: the last problem's reason
  Progress progress;
};

// Goes on with the batch until nothing is left, or a limit is reached. What a limit interrupts waits for the next call.
// Errors: those of the store, which end the call.
Result<BatchResult> run_batch(BatchStore& store, int64_t batch, ProblemRunner& runner, const BatchOptions& options,
                              const BatchEvents& events, const agent::Clock& clock = agent::steady_clock());

}  // namespace tilepilot::kernelbench
