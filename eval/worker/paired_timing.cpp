#include "eval/worker/paired_timing.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "eval/argument_json.h"
#include "eval/torch/stopwatch.h"
#include "eval/worker/digest.h"
#include "eval/worker/output_structure.h"
#include "eval/worker/rotating_inputs.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

constexpr double kSampleSeconds = 12e-3;  // a sample holds as many calls as take this long
constexpr double kWarmUpSeconds = 0.1;
constexpr int64_t kMaxCalls = 20'000;
constexpr int kMinSamples = 5;
constexpr size_t kFewestToSettle = 8;  // samples before the ratio may count as known
constexpr double kSettled = 0.02;      // of the ratio: half the width of its confidence interval
constexpr double kPatience = 10;       // budgets: then what there is must do
constexpr size_t kSetBytes = size_t{256} << 20;
constexpr auto kThreadsSleep =
    std::chrono::milliseconds(1);  // longer than idle OpenMP threads spin (worker_process.cpp)

Timing summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  size_t count = samples.size();
  return {samples[count / 2] * 1e6, samples[count / 4] * 1e6, samples[count * 3 / 4] * 1e6, static_cast<int>(count)};
}

// Half the width of the 95 % confidence interval of a median, relative to it (McGill, Tukey and Larsen, "Variations of
// box plots", 1978).
double uncertainty_of_median(std::vector<double> samples) {
  Timing timing = summarize(std::move(samples));
  return 1.57 * (timing.high_us - timing.low_us) / std::sqrt(timing.samples) / timing.median_us;
}

class PairedTiming {
 public:
  PairedTiming(const ReferenceSide& side, CandidateLink& link, const JudgeOptions& options)
      : side_(side),
        link_(link),
        options_(options),
        random_(std::random_device{}()),
        mutates_(!side.trials()[0].mutated.empty()) {}

  std::optional<Verdict> run(Verdict& verdict) {
    if (!prepare()) return failure_;
    Cost eager_call = warm_up([&](int64_t calls) { return time_eager({0, calls}); });
    Cost candidate_call = warm_up([&](int64_t calls) { return time_candidate({0, calls}, false); });
    if (candidate_call.timed < 0 || !watch_kernels()) return failure_;
    if (!sample(eager_call, candidate_call)) return failure_;
    verdict.eager = summarize(eager_samples_);
    verdict.candidate = summarize(candidate_samples_);
    verdict.generated_share = total_seconds_ > 0 ? kernel_seconds_ / total_seconds_ : 0;
    const std::string few = "timed with few samples: a call takes too long for more";
    bool told = std::find(verdict.notes.begin(), verdict.notes.end(), few) != verdict.notes.end();
    if (out_of_patience_ && !told) verdict.notes.push_back(few);
    return std::nullopt;
  }

 private:
  // Several sets of fresh inputs on both sides; fewer if they are large.
  bool prepare() {
    std::vector<std::vector<at::Tensor>> tensors;
    size_t bytes = 0;
    do {
      auto leaves = side_.fresh_inputs(random_());
      if (!leaves.ok()) return failed(Outcome::worker_failed, leaves.error().message);
      tensors.push_back(tensors_of(*leaves));
      contents_.push_back({*leaves, random_() >> 1, std::nullopt});
      leaves_.push_back(*std::move(leaves));
      bytes = 0;
      for (auto& tensor : tensors.back()) bytes += tensor.nbytes();
    } while (tensors.size() < 2 || (tensors.size() < 4 && bytes * (tensors.size() + 1) < kSetBytes));
    std::vector<std::vector<at::Tensor>> files = tensors;
    hold_inputs(std::move(tensors));
    json request = {{"op", "prepare_timing"},
                    {"arguments", to_json(tensor_numbers(side_.reference().inputs.outputs))},
                    {"mutates", mutates_}};
    return ask(request, files).has_value();
  }

  // Eager's sets, and its weights.
  void hold_inputs(std::vector<std::vector<at::Tensor>> contents) {
    inputs_ = std::make_unique<RotatingInputs>(std::move(contents), side_.device());
    for (size_t set = 0; set < inputs_->size(); ++set) {
      size_t next = 0;
      for (auto& leaf : leaves_[set]) {
        if (leaf.isTensor()) leaf = (*inputs_)[set][next++];
      }
    }
    state_ = copy_state(side_.weight_sets()[0], false, side_.device());
    stopwatch_ = stopwatch_for(side_.device());
  }

  bool failed(Outcome outcome, std::string detail) {
    failure_.outcome = outcome;
    failure_.detail = std::move(detail);
    return false;
  }

  // Each request holds few calls if they are long, so each gets the time that all checked calls together had.
  std::optional<Message> ask(const json& request, const std::vector<std::vector<at::Tensor>>& files = {}) {
    link_.set_limit(options_.time_limit_s);
    auto answer = link_.ask(request, files);
    if (!answer) failure_ = link_.failure();
    return answer;
  }

  // A sample's. A call that the sleep before it would show in, of threads and caches, leads the timed ones.
  struct Calls {
    int64_t lead, timed;
  };

  // Seconds of the timed calls of eager.
  double time_eager(Calls calls) {
    for (int64_t i = 0; i < calls.lead + calls.timed; ++i) {
      if (i == calls.lead) stopwatch_->read();
      stopwatch_->start();
      if (!side_.eager().run(leaves_[static_cast<size_t>(i) % leaves_.size()], state_).ok()) return -1;
      stopwatch_->stop();
    }
    std::this_thread::sleep_for(kThreadsSleep);
    return stopwatch_->read();
  }

  // One content after the other becomes one that the candidate has never seen; all move round on both sides. The answer
  // to the new one is verified.
  bool turn() {
    size_t fresh = turns_++ % contents_.size();
    auto leaves = side_.fresh_inputs(random_());
    if (!leaves.ok()) return failed(Outcome::worker_failed, leaves.error().message);
    auto& content = contents_[fresh] = {*std::move(leaves), random_() >> 1, std::nullopt};
    auto tensors = tensors_of(content.leaves);
    inputs_->replace(fresh, tensors);
    inputs_->rotate();
    auto answer = ask({{"op", "turn"}, {"content", fresh}, {"seed", content.seed}}, {tensors});
    if (!answer || !verify(*answer, fresh)) return false;
    std::this_thread::sleep_for(kThreadsSleep);
    return true;
  }

  // Seconds of the timed calls of the candidate; negative: it failed. `check`: at a place among them that the
  // candidate cannot foresee, a call is verified that takes no part in the time.
  double time_candidate(Calls calls, bool check) {
    json request = {{"op", "time"},
                    {"calls", calls.timed},
                    {"lead", calls.lead},
                    {"restore", mutates_},
                    {"watch_kernels", watches_always_}};
    size_t content = random_() % contents_.size();
    if (check) {
      request["content"] = content;
      request["before"] = random_() % static_cast<uint64_t>(calls.timed + 1);
      request["seed"] = contents_[content].seed;
    }
    auto answer = ask(request);
    if (!answer) return -1;
    auto& body = answer->body;
    double seconds = body.at("seconds");
    if (watches_always_) count_share(body);
    if (!does_its_work(body)) return -1;
    if (check && !verify(*answer, content)) return -1;
    std::this_thread::sleep_for(kThreadsSleep);
    return seconds;
  }

  void count_share(const json& body) {
    total_seconds_ += body.at("seconds").get<double>();
    kernel_seconds_ += body.at("kernel_seconds").get<double>();
  }

  // Where a launch only begins the work, kernels are watched in calls of their own: waiting for them takes time.
  bool watch_kernels() {
    if (watches_always_) return true;
    constexpr int kCalls = 4;
    auto answer = ask({{"op", "time"}, {"calls", kCalls}, {"lead", 1}, {"restore", mutates_}, {"watch_kernels", true}});
    if (answer) count_share(answer->body);
    return answer.has_value();
  }

  bool does_its_work(const json& body) {
    auto complaint = body.at("complaint").get<std::string>();
    if (!complaint.empty()) {
      return failed(Outcome::rejected, "the program remembers answers: of the timed calls, " + complaint);
    }
    if (!body.at("earlier_changed").get<bool>()) return true;
    return failed(Outcome::rejected,
                  "an output changed after later timed calls: the program returns memory it uses again");
  }

  // Of one call, in seconds: what counts, negative if it failed, and what passes, flushed caches included.
  struct Cost {
    double timed = 0, spent = 0;
  };

  // After enough calls.
  template <class TimeCalls>
  Cost warm_up(const TimeCalls& time_calls) {
    double total = 0;
    Cost cost;
    for (int64_t calls = 1; total < kWarmUpSeconds; calls = std::min(calls * 2, kMaxCalls)) {
      const double begin = monotonic_seconds();
      double seconds = time_calls(calls);
      if (seconds < 0) return {-1, 0};
      const double slept = std::chrono::duration<double>(kThreadsSleep).count();
      const double passed = watches_always_ ? seconds : monotonic_seconds() - begin - slept;
      total += std::max(passed, 1e-6);
      cost = {seconds / static_cast<double>(calls), passed / static_cast<double>(calls)};
    }
    return cost;
  }

  // What a timed program must give for a content; made when first asked for.
  const std::vector<Expected>* expected_of(size_t content) {
    auto& [leaves, seed, expected] = contents_[content];
    if (!expected) {
      auto made = side_.expect(leaves, seed);
      if (!made.ok()) return nullptr;
      expected = *std::move(made);
    }
    return &*expected;
  }

  bool verify(const Message& answer, size_t content) {
    const bool right = is_right(answer, content);
    // What is expected is four times what is large already; it can be computed again.
    size_t bytes = 0;
    for (auto& each : contents_[content].expected.value_or(std::vector<Expected>())) bytes += each.truth.nbytes();
    if (bytes > kSetBytes) contents_[content].expected.reset();
    return right;
  }

  bool is_right(const Message& answer, size_t content) {
    auto* expected = expected_of(content);
    if (!expected) return failed(Outcome::worker_failed, "the reference failed beside the timed calls");
    auto match = match_structure(side_.reference().forward, answer.body.at("structure"));
    auto tensors = unpack_tensors(answer.body.at("tensors"), answer.descriptors.at(0));
    if (!tensors || !match.mismatch.empty()) {
      return failed(Outcome::rejected, "a timed call returned something else than the checked ones");
    }
    for (size_t i = 0; i < match.tensors.size(); ++i) {
      auto& tensor = (*tensors)[match.tensors[i]];
      auto strides = tensor.strides().vec();
      auto comparison = compare({tensor, strides}, (*expected)[i], side_.allowance(i));
      if (comparison.outcome != Outcome::verified) {
        return failed(Outcome::rejected,
                      fmt::format("a timed call gave another answer than the checked ones: {}", comparison.detail));
      }
      auto alias = answer.body.at("aliases").at(match.tensors[i]).get<std::string>();
      if (!alias.empty() && !side_.output_may_alias(i)) {
        return failed(Outcome::rejected, fmt::format("output {} of a timed call shares its memory with {}", i, alias));
      }
    }
    return true;
  }

  struct Plan {
    Calls eager, candidate;
    int samples;
  };
  Plan plan(Cost eager_call, Cost candidate_call) const {
    auto calls_for = [](Cost call) {
      auto timed = std::clamp(static_cast<int64_t>(kSampleSeconds / std::max(call.spent, 1e-9)), int64_t{1}, kMaxCalls);
      return Calls{call.timed < kSampleSeconds ? 1 : 0, timed};
    };
    auto seconds = [](Calls calls, Cost call) { return static_cast<double>(calls.lead + calls.timed) * call.spent; };
    Calls eager = calls_for(eager_call), candidate = calls_for(candidate_call);
    double pair = seconds(eager, eager_call) + seconds(candidate, candidate_call);
    int wanted = std::max(1, options_.timing_samples);
    int affordable = static_cast<int>(options_.timing_budget_s / pair);
    return {eager, candidate, std::clamp(affordable, std::min(kMinSamples, wanted), wanted)};
  }

  bool sample(Cost eager_call, Cost candidate_call) {
    auto [eager_calls, candidate_calls, samples] = plan(eager_call, candidate_call);
    // Before the samples may end, and at none that the candidate can foresee.
    const int second_turn = 2 + static_cast<int>(random_() % (kFewestToSettle - 2));
    double begin = monotonic_seconds();
    std::vector<double> ratios;
    for (int i = 0; i < samples; ++i) {
      if (ratios.size() >= kFewestToSettle && uncertainty_of_median(ratios) < kSettled) break;
      out_of_patience_ = i > 0 && monotonic_seconds() - begin > kPatience * options_.timing_budget_s;
      if (out_of_patience_) break;
      bool turns = i == 0 || i == second_turn;
      if (turns && !turn()) return false;
      if (mutates_) inputs_->restore();
      double eager = time_eager(eager_calls);
      // Where calls change their inputs, contents are known only right after a turn.
      double candidate = time_candidate(candidate_calls, turns && !mutates_);
      if (eager < 0) return failed(Outcome::worker_failed, "the reference failed while it was timed");
      if (candidate < 0) return false;
      eager_samples_.push_back(eager / static_cast<double>(eager_calls.timed));
      candidate_samples_.push_back(candidate / static_cast<double>(candidate_calls.timed));
      ratios.push_back(eager_samples_.back() / candidate_samples_.back());
    }
    return true;
  }

  struct Content {
    std::vector<c10::IValue> leaves;
    uint64_t seed = 0;
    std::optional<std::vector<Expected>> expected;
  };

  const ReferenceSide& side_;
  CandidateLink& link_;
  const JudgeOptions& options_;
  std::mt19937_64 random_;
  bool mutates_;
  const bool watches_always_ = side_.device().is_cpu();
  std::unique_ptr<Stopwatch> stopwatch_;
  std::vector<std::vector<c10::IValue>> leaves_;  // by set: what eager is called on
  std::vector<Content> contents_;
  std::unique_ptr<RotatingInputs> inputs_;  // the tensors of `leaves_`
  State state_;
  size_t turns_ = 0;
  std::vector<double> eager_samples_, candidate_samples_;
  double total_seconds_ = 0, kernel_seconds_ = 0;
  bool out_of_patience_ = false;
  Verdict failure_;
};

}  // namespace

std::optional<Verdict> time_pair(const ReferenceSide& side, CandidateLink& link, const JudgeOptions& options,
                                 Verdict& verdict) {
  return PairedTiming(side, link, options).run(verdict);
}

}  // namespace tilepilot::eval
