#include "agent/generate/improve.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/generate/tuning.h"

namespace tilepilot::agent {
namespace {

class SteadyClock final : public Clock {
 public:
  double seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

Ending ending_of(Rest rest) {
  switch (rest) {
    case Rest::nothing_left:
      return Ending::nothing_left;
    case Rest::dollars:
      return Ending::money_spent;
    case Rest::tokens:
      return Ending::tokens_spent;
    case Rest::no_progress:
      return Ending::no_progress;
    case Rest::at_roofline:
      return Ending::at_roofline;
    case Rest::not_worth_it:
      return Ending::not_worth_it;
  }
  return Ending::nothing_left;
}

// One run of the loop, and what it talks to.
class Loop {
 public:
  Loop(Author& author, eval::Judge& judge, RunRecord record, const Budget& budget, const LoopEvents& events,
       const Clock& clock)
      : author_(author),
        judge_(judge),
        record_(std::move(record)),
        events_(events),
        clock_(clock),
        begin_(clock.seconds()),
        tuner_(budget.variants) {}

  Result<RunOutcome> run(const Budget& budget) {
    std::optional<Ending> ending;
    while (!ending) {
      const double left = budget.minutes * 60 - passed();
      if (const auto variant = left >= kLeastSecondsForVariant ? tuner_.next(outcome_.attempts) : std::nullopt) {
        ending = TRY(attempt(*variant, left));
        continue;
      }
      ending = spent(budget, left);
      if (!ending) ending = TRY(step(left));
      // What an author cannot do once the time is spent is no failure of its own.
      if (ending == Ending::author_failed && passed() >= budget.minutes * 60) {
        ending = Ending::time_spent;
        outcome_.failure = {};
      }
    }
    outcome_.ending = *ending;
    if (*ending != Ending::worker_failed) TRY(compare_finalists());
    if (!outcome_.best) outcome_.best = best_of(outcome_.attempts);
    outcome_.seconds = passed();
    outcome_.spending = author_.spending();
    TRY(record_.store.finish_run(record_.run, to_string(outcome_.ending),
                                 outcome_.best ? std::optional(static_cast<int>(*outcome_.best)) : std::nullopt));
    return std::move(outcome_);
  }

 private:
  // Seconds of the run, without those in which the judge got ready.
  double passed() const { return clock_.seconds() - begin_ - seconds_until_ready_; }

  std::optional<Ending> spent(const Budget& budget, double seconds_left) const {
    if (own_attempts_ >= budget.attempts) return Ending::attempts_spent;
    if (seconds_left <= 0) return Ending::time_spent;
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
    if (!*candidate) return std::optional(ending_of(author_.rest()));
    ++own_attempts_;
    return attempt(**candidate, seconds_left);
  }

  // Judges a candidate; an ending if there can be no further one.
  Result<std::optional<Ending>> attempt(const Candidate& candidate, double seconds_left) {
    const int number = static_cast<int>(outcome_.attempts.size());
    const bool known = TRY(is_known(number, candidate));
    if (!known) TRY(record_.store.save_attempt(record_.run, number, candidate, std::nullopt));
    events_.on_candidate(number, candidate);
    const auto best = best_of(outcome_.attempts);
    outcome_.attempts.push_back({candidate, {}});
    Attempt& added = outcome_.attempts.back();
    if (known) {
      added.verdict = record_.earlier[static_cast<size_t>(number)].verdict;
      added.pairings = record_.earlier[static_cast<size_t>(number)].pairings;
    } else {
      TRY(judge(number));
    }
    events_.on_attempt(number, added);
    if (!known && seconds_left > 0 && author_.needs_ranking()) TRY(pair(static_cast<size_t>(number), best));
    const bool failed = added.verdict.outcome == eval::Outcome::worker_failed;
    return failed ? std::optional(Ending::worker_failed) : std::nullopt;
  }

  // Whether the run had judged this candidate before it was interrupted. If it had another one, or was judging it then,
  // what was written down from there on is forgotten.
  Result<bool> is_known(int number, const Candidate& candidate) {
    auto& earlier = record_.earlier;
    const auto at = static_cast<size_t>(number);
    if (at < earlier.size() && earlier[at].candidate.source == candidate.source &&
        earlier[at].verdict.outcome != eval::Outcome::worker_failed)
      return true;
    if (at < earlier.size()) TRY(record_.store.drop_attempts(record_.run, number));
    earlier.resize(std::min(at, earlier.size()));
    return false;
  }

  Status judge(int number) {
    TRY(get_ready());
    Attempt& attempt = outcome_.attempts[static_cast<size_t>(number)];
    attempt.verdict = judge_.check({.source = attempt.candidate.source, .profile = eval::Profiling::quick});
    return record_.store.save_attempt(record_.run, number, attempt.candidate, attempt.verdict);
  }

  // Once: of a judge that fails later there are verdicts. Its reference is loaded meanwhile, and it may wait for
  // memory, which is no time of the author's.
  Status get_ready() {
    if (std::exchange(asked_judge_, true)) return {};
    const double begin = clock_.seconds();
    Status ready = judge_.ready();
    seconds_until_ready_ = clock_.seconds() - begin;
    if (!ready.ok()) TRY(record_.store.finish_run(record_.run, to_string(Ending::worker_failed), std::nullopt));
    return ready;
  }

  // Measures a new attempt beside the best so far, and a variant beside what it varies, where their own measurements
  // do not set them far apart.
  Status pair(size_t number, std::optional<size_t> best) {
    Attempt& attempt = outcome_.attempts[number];
    std::vector<size_t> others;
    const auto add = [&](std::optional<size_t> other) {
      const bool is_new = other && std::find(others.begin(), others.end(), *other) == others.end();
      if (is_new && wants_pairing(attempt.verdict, outcome_.attempts[*other].verdict)) others.push_back(*other);
    };
    add(best);
    if (attempt.candidate.is_variant) add(attempt.candidate.changes);
    if (others.empty()) return {};
    std::vector<eval::CheckRequest> requests = {{.source = attempt.candidate.source}};
    for (size_t other : others) requests.push_back({.source = outcome_.attempts[other].candidate.source});
    attempt.pairings = pairings_in(judge_.compare(requests), others);
    if (std::any_of(attempt.pairings.begin(), attempt.pairings.end(), is_unclear))
      attempt.pairings = narrower(attempt.pairings, pairings_in(judge_.compare(requests), others));
    if (attempt.pairings.empty()) return {};
    TRY(record_.store.save_pairings(record_.run, static_cast<int>(number), attempt.pairings));
    events_.on_paired(static_cast<int>(number), attempt);
    return {};
  }

  // Where several attempts are verified, a comparison decides. Finalists that fail in it hand their place to the next.
  Status compare_finalists() {
    std::vector<size_t> finalists = choose_finalists(outcome_.attempts);
    if (finalists.size() < 2) return {};
    for (; !finalists.empty(); finalists = choose_finalists(outcome_.attempts)) {
      if (!TRY(measure_together(finalists))) return {};
      const auto ranking = rank_finalists(outcome_.attempts, finalists);
      if (!ranking) continue;
      outcome_.best = ranking->best;
      outcome_.indistinguishable = ranking->indistinguishable;
      return {};
    }
    return {};
  }

  // False if the worker failed: then each attempt's own verdict is all there is.
  Result<bool> measure_together(const std::vector<size_t>& finalists) {
    events_.on_finalists(finalists);
    std::vector<eval::CheckRequest> requests;
    for (size_t number : finalists) requests.push_back({.source = outcome_.attempts[number].candidate.source});
    std::vector<eval::Verdict> verdicts = judge_.compare(requests);
    auto is_lost = [](const eval::Verdict& verdict) { return verdict.outcome == eval::Outcome::worker_failed; };
    if (verdicts.size() != finalists.size() || std::any_of(verdicts.begin(), verdicts.end(), is_lost)) return false;
    for (size_t i = 0; i < finalists.size(); ++i) {
      Attempt& attempt = outcome_.attempts[finalists[i]];
      attempt.compared = std::move(verdicts[i]);
      outcome_.finalists.push_back(finalists[i]);
      const int number = static_cast<int>(finalists[i]);
      TRY(record_.store.save_comparison(record_.run, number, *attempt.compared));
      events_.on_compared(number, attempt);
    }
    return true;
  }

  Author& author_;
  eval::Judge& judge_;
  RunRecord record_;
  const LoopEvents& events_;
  const Clock& clock_;
  const double begin_;
  RunOutcome outcome_;
  Tuner tuner_;
  int own_attempts_ = 0;  // the author's, without variants
  bool asked_judge_ = false;
  double seconds_until_ready_ = 0;  // of the judge
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
    case Ending::tokens_spent:
      return "tokens spent";
    case Ending::no_progress:
      return "no progress";
    case Ending::at_roofline:
      return "near the roofline";
    case Ending::not_worth_it:
      return "not worth more";
    case Ending::author_failed:
      return "the author failed";
    case Ending::worker_failed:
      return "the worker failed";
  }
  return "";
}

Result<RunOutcome> improve(Author& author, eval::Judge& judge, RunRecord record, const Budget& budget,
                           const LoopEvents& events, const Clock& clock) {
  return Loop(author, judge, std::move(record), budget, events, clock).run(budget);
}

}  // namespace tilepilot::agent
