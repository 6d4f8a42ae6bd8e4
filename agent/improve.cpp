#include "agent/improve.h"

#include <algorithm>
#include <chrono>

namespace tilepilot::agent {
namespace {

class SteadyClock final : public Clock {
 public:
  double seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

bool is_verified(const Attempt& attempt) { return attempt.verdict.outcome == eval::Outcome::verified; }

// One run of the loop, and what it talks to.
class Loop {
 public:
  Loop(Author& author, eval::Judge& judge, RunRecord record, const LoopEvents& events)
      : author_(author), judge_(judge), record_(record), events_(events) {}

  Result<RunOutcome> run(const Budget& budget, const Clock& clock) {
    const double start = clock.seconds();
    std::optional<Ending> ending;
    while (!ending) {
      const double left = budget.minutes * 60 - (clock.seconds() - start);
      ending = spent(budget, left);
      if (!ending) ending = TRY(step(left));
    }
    outcome_.ending = *ending;
    if (*ending != Ending::worker_failed) TRY(confirm_best());
    outcome_.best = best_of(outcome_.attempts);
    outcome_.seconds = clock.seconds() - start;
    TRY(record_.store.finish_run(record_.run, to_string(outcome_.ending),
                                 outcome_.best ? std::optional(static_cast<int>(*outcome_.best)) : std::nullopt));
    return std::move(outcome_);
  }

 private:
  std::optional<Ending> spent(const Budget& budget, double seconds_left) const {
    if (static_cast<int>(outcome_.attempts.size()) >= budget.attempts) return Ending::attempts_spent;
    if (seconds_left <= 0) return Ending::time_spent;
    if (author_.dollars_spent() > 0 && author_.dollars_spent() >= budget.dollars) return Ending::money_spent;
    return std::nullopt;
  }

  // One more attempt; an ending if it is the last.
  Result<std::optional<Ending>> step(double seconds_left) {
    author_.allow(seconds_left);
    auto candidate = author_.next(outcome_.attempts);
    if (!candidate) {
      outcome_.failure = std::move(candidate).take_error();
      return std::optional(Ending::author_failed);
    }
    if (!*candidate) return std::optional(Ending::nothing_left);
    const int number = static_cast<int>(outcome_.attempts.size());
    TRY(record_.store.save_attempt(record_.run, number, **candidate, std::nullopt));
    events_.on_candidate(number, **candidate);
    outcome_.attempts.push_back({**candidate, {}});
    TRY(judge(number));
    events_.on_attempt(number, outcome_.attempts.back());
    const bool failed = outcome_.attempts.back().verdict.outcome == eval::Outcome::worker_failed;
    return failed ? std::optional(Ending::worker_failed) : std::nullopt;
  }

  Status judge(int number) {
    Attempt& attempt = outcome_.attempts[static_cast<size_t>(number)];
    attempt.verdict = judge_.check({.source = attempt.candidate.source});
    return record_.store.save_attempt(record_.run, number, attempt.candidate, attempt.verdict);
  }

  // The best of several measurements is partly the luckiest: the winner is judged once more, and that verdict counts. A
  // winner that fails the second time hands its place to the next.
  Status confirm_best() {
    while (std::count_if(outcome_.attempts.begin(), outcome_.attempts.end(), is_verified) > 1) {
      const int number = static_cast<int>(*best_of(outcome_.attempts));
      TRY(judge(number));
      const Attempt& winner = outcome_.attempts[static_cast<size_t>(number)];
      events_.on_confirmed(number, winner);
      // One look more is enough: to go on until a winner stays ahead would search for luck again.
      if (is_verified(winner)) break;
    }
    return {};
  }

  Author& author_;
  eval::Judge& judge_;
  RunRecord record_;
  const LoopEvents& events_;
  RunOutcome outcome_;
};

}  // namespace

const Clock& steady_clock() {
  static const SteadyClock clock;
  return clock;
}

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::nothing_left:
      return "nothing left to try";
    case Ending::attempts_spent:
      return "attempts spent";
    case Ending::time_spent:
      return "time spent";
    case Ending::money_spent:
      return "money spent";
    case Ending::author_failed:
      return "the author failed";
    case Ending::worker_failed:
      return "the worker failed";
  }
  return "";
}

std::optional<size_t> best_of(const std::vector<Attempt>& attempts) {
  std::optional<size_t> best;
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (!is_verified(attempts[i])) continue;
    if (!best || attempts[i].verdict.speedup() > attempts[*best].verdict.speedup()) best = i;
  }
  return best;
}

Result<RunOutcome> improve(Author& author, eval::Judge& judge, RunRecord record, const Budget& budget,
                           const LoopEvents& events, const Clock& clock) {
  return Loop(author, judge, record, events).run(budget, clock);
}

}  // namespace tilepilot::agent
