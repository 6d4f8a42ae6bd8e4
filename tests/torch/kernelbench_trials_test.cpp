// The order in which KernelBench's script times calls, and what its numbers are.
#include "eval/worker/kernelbench_trials.h"

#include <gmock/gmock.h>

#include "eval/worker/judge/timing/kernelbench_timing.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

// Each stretch between start and stop is as many seconds long as there were before it, and is written down.
class FakeStopwatch final : public Stopwatch {
 public:
  explicit FakeStopwatch(std::string& events) : events_(events) {}
  void start() override { events_ += "<"; }
  void stop() override {
    events_ += ">";
    seconds_ += stretches_++;
  }

 private:
  std::string& events_;
  double stretches_ = 0;
};

TEST(KernelBenchTrial, WarmsUpThenTimesEachCallForItself) {
  std::string events;
  FakeStopwatch stopwatch(events);
  const auto seconds = run_kernelbench_trials({stopwatch, [&] { events += "|"; },
                                               [&](size_t) {
                                                 events += "c";
                                                 return Status();
                                               }});
  ASSERT_TRUE(seconds.ok());
  std::string expected = "ccc|";
  for (int trial = 0; trial < 101; ++trial) expected += "<c>";
  EXPECT_EQ(events, expected);
  ASSERT_EQ(seconds->size(), 100u);
  EXPECT_EQ(seconds->front(), 1);  // the first of all trials is dropped
  EXPECT_EQ(seconds->back(), 100);
}

TEST(KernelBenchTrial, fail_StopsAtACallThatFails) {
  std::string events;
  FakeStopwatch stopwatch(events);
  const auto seconds =
      run_kernelbench_trials({stopwatch, [] {},
                              [](size_t number) -> Status {
                                if (number < 10) return {};
                                return make_error(DiagnosticKind::raised, {}, "call " + std::to_string(number));
                              }});
  ASSERT_FALSE(seconds.ok());
  EXPECT_EQ(seconds.error().message, "call 10");
}

TEST(KernelBenchTrial, NumbersAreThoseOfTheScript) {
  const KernelBenchTimes times = kernelbench_times({1e-3, 3e-3});
  EXPECT_DOUBLE_EQ(times.mean_ms, 2);
  EXPECT_DOUBLE_EQ(times.std_ms, 1);  // of all trials, not of a sample
  EXPECT_DOUBLE_EQ(times.min_ms, 1);
  EXPECT_DOUBLE_EQ(times.max_ms, 3);
  EXPECT_EQ(times.trials, 2);
}

TEST(KernelBenchTrial, LongCallsAreLeftOut) {
  Verdict verdict;
  EXPECT_EQ(kernelbench_obstacle(verdict, 1), "");
  verdict.candidate = Timing{100, 90, 110, 15};
  verdict.eager = Timing{1e6, 1e6, 1e6, 5};
  EXPECT_THAT(kernelbench_obstacle(verdict, 120), HasSubstr("104 calls would take 104 seconds"));
  EXPECT_EQ(kernelbench_obstacle(verdict, 300), "");
}

TEST(KernelBenchTrial, SpeedupsThatDifferAreRemarked) {
  const KernelBenchTiming timing{{.mean_ms = 3}, {.mean_ms = 1}};
  EXPECT_EQ(kernelbench_remark(timing, 2.9), "");
  EXPECT_EQ(kernelbench_remark(timing, 0), "");
  EXPECT_THAT(kernelbench_remark(timing, 1), HasSubstr("finds a speed-up of 3.00x; with fresh inputs it is 1.00x"));
}

}  // namespace
}  // namespace tilepilot::eval
