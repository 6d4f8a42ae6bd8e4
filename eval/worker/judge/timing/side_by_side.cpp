#include "eval/worker/judge/timing/side_by_side.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "compiler/runtime/process.h"
#include "eval/process/gpu_log.h"
#include "eval/process/wire.h"
#include "eval/samples.h"
#include "eval/worker/judge/timing/graph_timing.h"
#include "eval/worker/judge/timing/kernelbench_timing.h"
#include "eval/worker/judge/timing/timing_lock.h"
#include "eval/worker/truth/state_noise.h"

namespace tilepilot::eval {
namespace {

constexpr double kSampleSeconds = 6e-3;   // a sample holds as many calls as take this long
constexpr double kLongestRatio = 10;      // of the slower side's sample to that
constexpr double kWarmUpSeconds = 50e-3;  // of calls, on each side
constexpr int kMostWarmUps = 3;           // rounds of as many calls as there may be
constexpr int64_t kMaxCalls = 512;
constexpr int64_t kBatchBytes = int64_t{64} << 20;  // of inputs and outputs, on each side
constexpr int kMinRounds = 5, kUsualRounds = 15;
constexpr double kBudgetShare = 0.4;  // of the budget: rounds are planned for that
constexpr double kPatience = 10;      // budgets: then what there is must do
constexpr size_t kPicks = 8;          // calls of a batch that are compared, and its traps
constexpr int kTruths = 2;            // rounds in which one of them is compared with the truth
constexpr int kLoggedEvery = 3;       // rounds, of what the GPU says
constexpr auto kThreadsSleep =
    std::chrono::milliseconds(1);  // longer than idle OpenMP threads spin (worker_process.cpp)

void add_note(Verdict& verdict, const std::string& note) {
  if (std::find(verdict.notes.begin(), verdict.notes.end(), note) == verdict.notes.end()) verdict.notes.push_back(note);
}

class SideBySide {
 public:
  SideBySide(const ReferenceSide& side, CallSource& source, EagerCalls& eager, std::vector<Contestant>& contestants,
             const SideBySideOptions& options)
      : side_(side),
        source_(source),
        eager_(eager),
        contestants_(contestants),
        options_(options.examination.judge),
        share_(options.examination.share),
        timing_lock_(options.examination.timing_lock),
        check_(side, source),
        compiled_(options.examination.compiled, side, source, check_),
        samples_(contestants.size()),
        log_(options.examination.monitor) {}

  bool run(std::vector<Interlude> interludes, bool time) {
    if (!time) return run_steps(std::move(interludes), 0);
    auto stateful = eager_.remembers();
    if (!stateful.ok()) return eager_failed(stateful.error().message);
    // Only the first call after the seed, and on the model's own state, is what the truth can say.
    single_ = *stateful || side_.reads_state() || side_.is_random();
    reloads_ = *stateful || !side_.judged_state().empty();
    const NoShare alone(share_);
    const TimingLock lock(timing_lock_, [&] {
      for (auto& each : contestants_) add_note(each.verdict, "waited until another run on this machine had been timed");
    });
    lock_ = &lock;
    for (auto& each : contestants_) each.verdict.seconds["waiting"] += lock.waited_s();
    compiled_.get_ready(eager_.weights(), {options_.compile_limit_s, options_.time_limit_s, [&] { lock.touch(); }});
    if (!warm_up()) return false;
    log_.read();
    if (!run_steps(std::move(interludes), rounds_)) return false;
    log_.read();
    summarize();
    return alive() > 0 && time_by_kernelbench() && time_graphs();
  }

 private:
  struct Samples {
    std::vector<double> seconds, round_trips;  // of batches
    std::vector<size_t> calls;
    std::vector<ClockView> views;
    std::vector<double> per_call;  // of each round, once all have run
    double kernel_seconds = 0, claimed = 0;
    double queued = 0;  // in all threads, for a processor
  };

  size_t alive() const {
    return static_cast<size_t>(
        std::count_if(contestants_.begin(), contestants_.end(), [](auto& each) { return !each.failure; }));
  }

  bool eager_failed(const std::string& why) {
    for (auto& each : contestants_) {
      each.failure.emplace();
      each.failure->detail = "the reference failed beside the candidate: " + why;
    }
    return false;
  }

  // Rounds and interludes, shuffled.
  bool run_steps(std::vector<Interlude> interludes, int rounds) {
    std::vector<int> steps(static_cast<size_t>(rounds), -1);
    for (size_t i = 0; i < interludes.size(); ++i) steps.push_back(static_cast<int>(i));
    for (size_t i = steps.size(); i > 1; --i) std::swap(steps[i - 1], steps[source_.random() % i]);
    std::set<int> truths;
    for (int i = 0; i < kTruths && rounds > 0; ++i)
      truths.insert(static_cast<int>(source_.random() % static_cast<uint64_t>(rounds)));
    int round_number = 0;
    const double begin = monotonic_seconds();
    for (const int step : steps) {
      if (step >= 0) {
        auto& interlude = interludes[static_cast<size_t>(step)];
        if (!interlude.run()) return false;
        if (interlude.weights >= 0) use_weights(interlude.weights);
        continue;
      }
      out_of_patience_ =
          out_of_patience_ || (round_number > 0 && monotonic_seconds() - begin > kPatience * options_.timing_budget_s);
      if (out_of_patience_) continue;
      // Several have no interludes that would bring them other weights.
      if (contestants_.size() > 1 && round_number == rounds / 2 && !load_weights(1)) return false;
      if (!round(true, truths.count(round_number) > 0)) return false;
      ++round_number;
    }
    return true;
  }

  void use_weights(int set) {
    eager_.use_weights(set);
    if (lock_) compiled_.load_weights(set, reloads_);
  }

  bool load_weights(int set) {
    use_weights(set);
    for (auto& each : contestants_)
      if (!each.failure && !each.load_weights(set)) each.failure = each.channel.link().failure();
    return alive() > 0;
  }

  // Twice as many calls in each round, until they take long enough; then one as those that count.
  bool warm_up() {
    double spent = 0;
    const int64_t most = most_calls();
    int rounds_at_most = 0;
    for (calls_ = 1; spent < kWarmUpSeconds; calls_ = std::min(calls_ * 2, most)) {
      if (!round(false, false)) return false;
      spent += slowest_;
      if (calls_ == most && ++rounds_at_most == kMostWarmUps) break;
    }
    calls_ = std::clamp(static_cast<int64_t>(kSampleSeconds / fastest_call_), int64_t{1}, most);
    const auto tolerable = static_cast<int64_t>(kLongestRatio * kSampleSeconds / slowest_call_);
    calls_ = std::max<int64_t>(1, std::min(calls_, tolerable));
    // A second call of a large batch takes as much memory again.
    const bool large = !side_.device().is_cpu() && source_.bytes() > kLargeOnGpu;
    lead_ = !single_ && !large && fastest_call_ < kSampleSeconds ? 1 : 0;
    const double begin = monotonic_seconds();
    if (!round(false, false)) return false;
    const double passed = monotonic_seconds() - begin;
    const int wanted = std::max(1, std::min(options_.timing_samples, kUsualRounds));
    const int affordable = static_cast<int>(std::min(1e6, kBudgetShare * options_.timing_budget_s / passed));
    rounds_ = std::clamp(affordable, std::min(kMinRounds, wanted), wanted);
    return true;
  }

  int64_t most_calls() const {
    if (single_) return 1;
    return std::clamp<int64_t>(kBatchBytes / std::max<int64_t>(source_.bytes(), 1), 1, kMaxCalls);
  }

  // All run the same batch; the order is drawn.
  bool round(bool counts, bool against_truth) {
    lock_->touch();
    auto next = source_.next(static_cast<size_t>(calls_), static_cast<size_t>(lead_));
    if (!next.ok()) return eager_failed(next.error().message);
    const PlannedBatch planned = *std::move(next);
    if (reloads_ && !load_weights(eager_.weights())) return false;
    // Contestants, eager, compiled sides.
    std::vector<size_t> order(contestants_.size() + 1 + compiled_.count());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[source_.random() % i]);
    fastest_call_ = 1e9;
    slowest_ = slowest_call_ = 0;
    const size_t timed = planned.batch.calls.size() - static_cast<size_t>(planned.batch.lead);
    std::optional<EagerBatch> eager;
    for (const size_t who : order) {
      if (who < contestants_.size()) {
        if (!contestants_[who].failure) run_contestant(who, planned, counts);
        continue;
      }
      if (who > contestants_.size()) {
        const auto seconds = compiled_.run(who - contestants_.size() - 1, planned, counts,
                                           [] { std::this_thread::sleep_for(kThreadsSleep); });
        if (seconds) note_cost(*seconds, timed);
        continue;
      }
      const double queued = runtime::queued_seconds_of_threads(getpid());
      auto ran = eager_.run(planned.batch, source_);
      if (!ran.ok()) return eager_failed(ran.error().message);
      if (counts) eager_queued_ += runtime::queued_seconds_of_threads(getpid()) - queued;
      if (counts) eager_seconds_ += ran->seconds;
      eager = *std::move(ran);
      note_cost(eager->seconds, timed);
      if (counts) eager_samples_.push_back(eager->seconds / static_cast<double>(timed));
      std::this_thread::sleep_for(kThreadsSleep);
    }
    if (counts && rounds_counted_++ % kLoggedEvery == 0) log_.read();
    for (size_t who = 0; who < contestants_.size(); ++who)
      if (!contestants_[who].failure) check(contestants_[who], planned, *eager, against_truth);
    compiled_.check(planned, *eager, eager_.weights());
    eager_.drop(*std::move(eager));
    return alive() > 0;
  }

  void note_cost(double seconds, size_t calls) {
    const double call = std::max(seconds / static_cast<double>(calls), 1e-7);
    fastest_call_ = std::min(fastest_call_, call);
    slowest_call_ = std::max(slowest_call_, call);
    slowest_ = std::max(slowest_, seconds);
  }

  void run_contestant(size_t who, const PlannedBatch& planned, bool counts) {
    Contestant& contestant = contestants_[who];
    Samples& samples = samples_[who];
    CallChannel& channel = contestant.channel;
    channel.link().set_limit(options_.time_limit_s);
    const std::vector<CallChannel::Base> bases = fresh_bases(planned, source_);
    Batch batch = planned.batch;
    batch.waits = side_.device().is_cpu() || !counts;
    if (!channel.prepare(batch, bases)) return lose(contestant);
    const double queued = channel.link().queued_seconds_of_threads();
    auto ran = channel.go();
    if (!ran) return lose(contestant);
    if (counts) samples.queued += channel.link().queued_seconds_of_threads() - queued;
    std::this_thread::sleep_for(kThreadsSleep);
    const double after = channel.busy_since();
    auto round_trip = channel.round_trip();
    if (!round_trip) return lose(contestant);
    const size_t timed = batch.calls.size() - static_cast<size_t>(batch.lead);
    note_cost(side_.device().is_cpu() ? ran->judged : ran->claimed, timed);
    // On a GPU kernels are waited for in batches that do not count: waiting takes time.
    if (counts == side_.device().is_cpu()) {
      samples.kernel_seconds += ran->kernel_seconds;
      samples.claimed += ran->claimed;
    }
    samples.round_trips.push_back(*round_trip);
    if (!counts) return;
    samples.seconds.push_back(side_.device().is_cpu() ? ran->judged : ran->claimed);
    samples.calls.push_back(timed);
    samples.views.push_back({ran->claimed, ran->judged - *round_trip - ran->queued, ran->busy, after});
  }

  bool time_by_kernelbench() {
    if (!options_.kernelbench_timing) return true;
    if (!load_weights(0)) return false;
    time_as_kernelbench({side_, source_, eager_, check_, single_, options_.time_limit_s}, contestants_);
    return alive() > 0;
  }

  bool time_graphs() {
    if (side_.device().is_cpu()) return true;
    const bool any = std::any_of(contestants_.begin(), contestants_.end(),
                                 [](auto& each) { return !each.failure && each.verdict.launch_bound; });
    if (any && load_weights(0))
      time_as_graphs({side_, source_, eager_, check_, single_ || reloads_, options_.time_limit_s}, contestants_);
    return alive() > 0;
  }

  static void looked(Contestant& contestant, const char* guard) { ++contestant.verdict.guards_run[guard]; }
  static void lose(Contestant& contestant) { contestant.failure = contestant.channel.link().failure(); }

  // Which calls are compared is decided here, after they have run.
  void check(Contestant& contestant, const PlannedBatch& planned, const EagerBatch& eager, bool against_truth) {
    std::vector<size_t> picks;
    const size_t count = planned.batch.calls.size();
    // Traps first: what an old answer does to other calls has other names.
    for (size_t i = 0; i < count; ++i)
      if (planned.traps[i]) picks.push_back(i);
    for (size_t i = 0; i < kPicks; ++i) {
      const size_t call = source_.random() % count;
      if (std::find(picks.begin(), picks.end(), call) == picks.end()) picks.push_back(call);
    }
    for (const size_t call : picks) {
      auto answer = contestant.channel.fetch(call, source_.mutated());
      if (!answer) return lose(contestant);
      for (const char* guard : {"aliasing", "inconsistent", "reused_memory", "unwritten"}) looked(contestant, guard);
      if (planned.traps[call]) looked(contestant, "remembers");
      // A truth is of the first call after the seed where the model draws numbers.
      contestant.failure = check_.check({planned, eager, call, eager_.weights(), std::exchange(against_truth, false)},
                                        contestant.channel.link(), *answer);
      if (contestant.failure) return;
    }
    if (!side_.judged_state().empty())
      contestant.failure = check_state(contestant, picks.back(), planned.batch.calls.size());
    if (!contestant.failure && !contestant.channel.rest()) lose(contestant);
  }

  // What the calls of the batch have made of the model's buffers, which were set back before it on both sides.
  std::optional<Verdict> check_state(Contestant& contestant, size_t call, size_t calls) {
    std::map<std::string, size_t> values;
    std::vector<std::string> names;
    for (auto& [name, value] : side_.judged_state()) {
      values[name] = value;
      names.push_back(name);
    }
    auto answer = contestant.channel.fetch(call, {}, &names);
    if (!answer) return contestant.channel.link().failure();
    const auto tensors = contestant.channel.link().tensors_of(*answer);
    const auto found = answer->body.at("state").get<std::vector<std::string>>();
    if (!tensors.ok()) return rejection("protocol", tensors.error().message);
    if (tensors->size() < found.size()) return rejection("protocol", "buffers did not arrive whole");
    std::optional<StateNoise> noise;  // once something is wrong
    for (size_t i = 0; i < found.size(); ++i) {
      const auto value = values.find(found[i]);
      if (value == values.end()) continue;
      const at::Tensor& model = eager_.state()[value->second];
      const Expected expected{model, model, {}};
      const auto strides = model.strides().vec();
      const CandidateOutput output{(*tensors)[tensors->size() - found.size() + i], strides};
      auto comparison = compare(output, expected, side_.allowance_of_changed(expected));
      if (comparison.outcome == Outcome::wrong_values) {
        if (!noise) noise.emplace(side_, eager_.weights());
        comparison =
            compare(output, expected, side_.allowance_of_changed(expected, noise->after(calls, value->second, model)));
      }
      if (comparison.outcome == Outcome::verified) continue;
      return rejection("inconsistent", fmt::format("after other calls `{}` is not what the model makes of "
                                                   "it: {}",
                                                   found[i], comparison.detail));
    }
    return std::nullopt;
  }

  void summarize() {
    for (size_t who = 0; who < contestants_.size(); ++who) {
      Contestant& contestant = contestants_[who];
      if (contestant.failure) continue;
      Samples& samples = samples_[who];
      if (side_.device().is_cpu()) contestant.verdict.guards_run["clock"] += static_cast<int>(samples.views.size());
      const std::string complaint = clock_complaint(samples.views, options_.threads);
      if (side_.device().is_cpu() && !complaint.empty()) {
        contestant.failure = rejection("clock", "the candidate's time cannot be believed: " + complaint);
        continue;
      }
      const double round_trip = side_.device().is_cpu() ? median(samples.round_trips) : 0;
      std::vector<double>& seconds = samples.per_call;
      for (size_t i = 0; i < samples.seconds.size(); ++i)
        seconds.push_back(std::max(samples.seconds[i] - round_trip, 1e-8) / static_cast<double>(samples.calls[i]));
      Verdict& verdict = contestant.verdict;
      verdict.candidate = timing_of(seconds);
      verdict.eager = timing_of(eager_samples_);
      std::tie(verdict.speedup_low, verdict.speedup_high) = ratio_interval(eager_samples_, seconds);
      // Where all samples are alike, rounding alone sets them apart.
      verdict.speedup_low = std::min(verdict.speedup_low, verdict.speedup());
      verdict.speedup_high = std::max(verdict.speedup_high, verdict.speedup());
      verdict.generated_share =
          samples.claimed > 0 ? std::clamp(samples.kernel_seconds / samples.claimed, 0.0, 1.0) : 0;
      compiled_.summarize(verdict, seconds);
      verdict.graph.reset();
      verdict.gpu_state = log_.state();
      for (const std::string& note : log_.notes()) add_note(verdict, note);
      if (side_.device().is_cpu()) note_others(samples, verdict);
      if (out_of_patience_) add_note(verdict, "timed with few samples: a call takes too long for more");
      if (source_.repeats())
        add_note(verdict,
                 "`get_inputs` gives the same integers at each call: a program that keeps its answer is not noticed");
      verdict.launch_bound = !side_.device().is_cpu() && is_launch_bound(verdict);
      if (verdict.launch_bound)
        add_note(verdict, "launch-bound: a call takes less than 20 µs, most of which is launching kernels");
    }
    pair_contestants();
  }

  // Each to each: what slows a round slows both, so that their ratio tells more than those to eager.
  void pair_contestants() {
    for (size_t one = 0; one < contestants_.size(); ++one) {
      auto& paired = contestants_[one].verdict.paired;
      paired.clear();
      for (size_t other = 0; other < contestants_.size(); ++other) {
        if (one == other || contestants_[one].failure || contestants_[other].failure) continue;
        const auto &mine = samples_[one].per_call, &theirs = samples_[other].per_call;
        const auto [low, high] = ratio_interval(theirs, mine);
        paired.push_back({contestants_[other].place, median(theirs) / median(mine), low, high});
      }
    }
  }

  // Threads that wait for a processor hold up those that wait for them: then one side, or both, may be many times
  // slower than on a free machine, in every round alike.
  void note_others(const Samples& samples, Verdict& verdict) const {
    constexpr double kBusy = 0.15;
    double seconds = 0;
    for (const double each : samples.seconds) seconds += each;
    const double candidate = samples.queued / std::max(seconds, 1e-9);
    const double eager = eager_queued_ / std::max(eager_seconds_, 1e-9);
    if (std::max(candidate, eager) < kBusy) return;
    add_note(verdict, fmt::format("threads waited for a processor while this was timed: of a second, the candidate's "
                                  "{:.2f} s and eager's {:.2f} s; measure again when the machine is free",
                                  candidate, eager));
  }

  const ReferenceSide& side_;
  CallSource& source_;
  EagerCalls& eager_;
  std::vector<Contestant>& contestants_;
  const JudgeOptions& options_;
  DeviceShare* share_;
  std::filesystem::path timing_lock_;
  CallCheck check_;
  CompiledRounds compiled_;
  const TimingLock* lock_ = nullptr;  // held while something is timed
  std::vector<Samples> samples_;
  std::vector<double> eager_samples_;
  double eager_queued_ = 0, eager_seconds_ = 0;
  GpuLog log_;
  bool single_ = false, reloads_ = false, out_of_patience_ = false;
  int64_t calls_ = 1, lead_ = 0;
  int rounds_ = 0, rounds_counted_ = 0;
  double fastest_call_ = 0, slowest_call_ = 0, slowest_ = 0;  // of the last round
};

}  // namespace

bool run_side_by_side(const ReferenceSide& side, CallSource& source, EagerCalls& eager,
                      std::vector<Contestant>& contestants, std::vector<Interlude> interludes,
                      const SideBySideOptions& options) {
  return SideBySide(side, source, eager, contestants, options).run(std::move(interludes), options.time);
}

}  // namespace tilepilot::eval
