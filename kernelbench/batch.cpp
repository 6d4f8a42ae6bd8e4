#include "kernelbench/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

namespace tilepilot::kernelbench {
namespace {

// One call of `run_batch`. Workers take problems from a queue; whatever they share is under one lock, the store too.
class Call {
 public:
  Call(BatchStore& store, Batch batch, ProblemRunner& runner, const BatchOptions& options, const BatchEvents& events,
       const agent::Clock& clock)
      : store_(store),
        batch_(batch.id),
        runner_(runner),
        options_(options),
        events_(events),
        clock_(clock),
        begin_(clock.seconds()) {
    std::vector<BatchProblem> ours;
    for (size_t place = 0; place < batch.problems.size(); ++place)
      if (options.share.has(place)) ours.push_back(std::move(batch.problems[place]));
    progress_.total = static_cast<int>(ours.size());
    // The same order in every call: what one interrupts comes first in the next.
    if (options.shuffle) std::shuffle(ours.begin(), ours.end(), std::mt19937_64(static_cast<uint64_t>(batch.id)));
    for (BatchProblem& each : ours) {
      progress_.dollars += each.outcome.dollars;
      if (each.state == State::done) {
        count(each.outcome);
      } else {
        queue_.push_back({std::move(each.problem), 0});
      }
    }
  }

  Result<BatchResult> run() {
    std::vector<std::thread> workers;
    for (int i = 0; i < std::max(options_.jobs, 1); ++i) workers.emplace_back([this] { work(); });
    watch_time();
    for (std::thread& worker : workers) worker.join();
    if (failure_) return *std::move(failure_);
    TRY(store_.finish(batch_));
    return BatchResult{end_.value_or(BatchEnd::complete), why_, progress_};
  }

 private:
  struct Task {
    Problem problem;
    int tries;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (auto task = take(lock)) {
      const Allowance allowance = reserve();
      if (!note(store_.set_running(batch_, task->problem))) break;
      ++progress_.running;
      events_.on_begin(task->problem);
      lock.unlock();
      const double start = clock_.seconds();
      auto outcome = runner_.run(batch_, task->problem, allowance, [&](const std::string& stage) {
        std::lock_guard inside(mutex_);
        events_.on_stage(task->problem, stage);
      });
      if (outcome) outcome->seconds = clock_.seconds() - start;
      lock.lock();
      --progress_.running;
      reserved_ -= allowance.dollars;
      note(finish(*std::move(task), allowance, outcome));
      changed_.notify_all();
    }
    ++idle_;
    changed_.notify_all();
  }

  // The next problem; nullopt: there is none, or the call ends. Waits while others may still put one back, or give back
  // money that they do not spend.
  std::optional<Task> take(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      if (end_ || failure_) return std::nullopt;
      if (!options_.still_ours()) {
        halt("another machine goes on with this batch");
        return std::nullopt;
      }
      if (!queue_.empty() && can_pay()) {
        Task task = std::move(queue_.front());
        queue_.pop_front();
        return task;
      }
      if (progress_.running == 0) {
        if (!queue_.empty()) end_ = BatchEnd::money_spent;
        return std::nullopt;
      }
      changed_.wait(lock);
    }
  }

  double money_left() const { return options_.dollars - progress_.dollars - reserved_; }
  bool can_pay() const { return options_.dollars <= 0 || money_left() > too_little_; }

  Allowance reserve() {
    Allowance allowance = options_.each;
    if (options_.dollars > 0) allowance.dollars = std::min(allowance.dollars, money_left());
    reserved_ += allowance.dollars;
    return allowance;
  }

  Status finish(Task task, const Allowance& allowance, const std::optional<Outcome>& outcome) {
    if (!outcome) return store_.set_waiting(batch_, task.problem);
    TRY(store_.set_done(batch_, task.problem, *outcome));
    progress_.dollars += outcome->dollars;
    // What was left of the batch's money was too little, which says nothing of the problem.
    if (outcome->lacks_money && outcome->ending != Ending::verified && allowance.dollars < options_.each.dollars) {
      too_little_ = std::max(too_little_, allowance.dollars);
      TRY(store_.set_waiting(batch_, task.problem));
      queue_.push_front(std::move(task));
      return {};
    }
    const bool lost = outcome->ending == Ending::not_judged;
    failures_in_a_row_ = lost ? failures_in_a_row_ + 1 : 0;
    if (lost && ++task.tries < options_.most_tries) {
      TRY(store_.set_waiting(batch_, task.problem));
      events_.on_end(task.problem, *outcome, progress_);
      queue_.push_back(std::move(task));
    } else {
      count(*outcome);
      ++ended_here_;
      estimate();
      events_.on_end(task.problem, *outcome, progress_);
    }
    if (failures_in_a_row_ >= options_.most_failures_in_a_row && !end_) halt(outcome->reason);
    return {};
  }

  void halt(std::string why) {
    end_ = BatchEnd::halted;
    why_ = std::move(why);
    runner_.stop();
  }

  void count(const Outcome& outcome) {
    ++progress_.done;
    if (outcome.ending == Ending::verified) ++progress_.verified;
  }

  void estimate() {
    const double each = (clock_.seconds() - begin_) / ended_here_;
    progress_.seconds_left = each * (progress_.total - progress_.done);
  }

  // Ends what runs when the time is up.
  void watch_time() {
    if (options_.minutes <= 0) return;
    const double end = begin_ + options_.minutes * 60;
    std::unique_lock lock(mutex_);
    while (idle_ < std::max(options_.jobs, 1) && clock_.seconds() < end)
      changed_.wait_for(lock, std::chrono::duration<double>(std::clamp(end - clock_.seconds(), 0.01, 1.0)));
    if (idle_ == std::max(options_.jobs, 1)) return;
    if (!end_) end_ = BatchEnd::time_spent;
    runner_.stop();
    changed_.notify_all();
  }

  // The first error of the store ends the call.
  bool note(Status status) {
    if (status) return true;
    if (!failure_) failure_ = std::move(status).take_error();
    runner_.stop();
    changed_.notify_all();
    return false;
  }

  BatchStore& store_;
  int64_t batch_;
  ProblemRunner& runner_;
  const BatchOptions& options_;
  const BatchEvents& events_;
  const agent::Clock& clock_;
  const double begin_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  Progress progress_;
  double reserved_ = 0;    // dollars that running problems may still spend
  double too_little_ = 0;  // dollars that did not suffice for a problem
  int idle_ = 0;           // workers that have ended
  int ended_here_ = 0, failures_in_a_row_ = 0;
  std::optional<BatchEnd> end_;
  std::string why_;
  std::optional<Error> failure_;
};

}  // namespace

std::string_view to_string(BatchEnd end) {
  constexpr std::string_view kNames[] = {"complete", "time spent", "money spent", "halted"};
  return kNames[static_cast<size_t>(end)];
}

Result<Share> parse_share(std::string_view text) {
  Share share;
  const char *end = text.data() + text.size(), *slash = std::find(text.data(), end, '/');
  auto number = [](const char* from, const char* to, int& value) {
    const auto [stop, error] = std::from_chars(from, to, value);
    return from != to && stop == to && error == std::errc();
  };
  if (slash != end && number(text.data(), slash, share.index) && number(slash + 1, end, share.count) &&
      share.index >= 1 && share.index <= share.count)
    return share;
  return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` is no share of a batch", text),
                    "`--shard 2/8` is the second of eight");
}

Result<BatchResult> run_batch(BatchStore& store, int64_t batch, ProblemRunner& runner, const BatchOptions& options,
                              const BatchEvents& events, const agent::Clock& clock) {
  TRY(store.recover(batch));
  auto loaded = TRY(store.load(batch));
  if (!loaded)
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("there is no batch {}", batch),
                      "`tilepilot bench list` shows those that there are");
  return Call(store, *std::move(loaded), runner, options, events, clock).run();
}

}  // namespace tilepilot::kernelbench
