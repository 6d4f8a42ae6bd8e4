#include "agent/improve.h"

#include <chrono>

namespace tilepilot::agent {
namespace {

class SteadyClock final : public Clock {
 public:
  double seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

double median_us(const Attempt& attempt) {
  return attempt.verdict.candidate ? attempt.verdict.candidate->median_us : 1e300;
}

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
    if (attempts[i].verdict.outcome != eval::Outcome::verified) continue;
    if (!best || median_us(attempts[i]) < median_us(attempts[*best])) best = i;
  }
  return best;
}

Result<RunOutcome> improve(Author& author, eval::Judge& judge, RunStore& store, int64_t run, const Budget& budget,
                           const LoopEvents& events, const Clock& clock) {
  RunOutcome outcome;
  const double start = clock.seconds();
  for (int number = 0;; ++number) {
    outcome.ending = Ending::attempts_spent;
    if (number == budget.attempts) break;
    outcome.ending = Ending::time_spent;
    if (clock.seconds() - start >= budget.minutes * 60) break;
    outcome.ending = Ending::money_spent;
    if (author.dollars_spent() > 0 && author.dollars_spent() >= budget.dollars) break;

    auto candidate = author.next(outcome.attempts);
    outcome.ending = Ending::author_failed;
    if (!candidate) {
      outcome.failure = std::move(candidate).take_error();
      break;
    }
    outcome.ending = Ending::nothing_left;
    if (!*candidate) break;

    TRY(store.save_attempt(run, number, **candidate, std::nullopt));
    events.on_candidate(number, **candidate);
    Attempt attempt{**candidate, judge.check({.source = (*candidate)->source})};
    TRY(store.save_attempt(run, number, attempt.candidate, attempt.verdict));
    events.on_attempt(number, attempt);
    outcome.attempts.push_back(std::move(attempt));
    outcome.ending = Ending::worker_failed;
    if (outcome.attempts.back().verdict.outcome == eval::Outcome::worker_failed) break;
  }
  outcome.best = best_of(outcome.attempts);
  outcome.seconds = clock.seconds() - start;
  TRY(store.finish_run(run, to_string(outcome.ending),
                       outcome.best ? std::optional<int>(static_cast<int>(*outcome.best)) : std::nullopt));
  return outcome;
}

}  // namespace tilepilot::agent
