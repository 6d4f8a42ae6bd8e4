// The order in which a call becomes a CUDA graph and is replayed, and what its times come to. What the driver does is
// tested with a made-up one (tests/cuda/driver_test.cpp).
#include "eval/worker/graph_replays.h"

#include <gmock/gmock.h>

#include "eval/worker/judge/timing/graph_timing.h"

namespace tilepilot::eval {
namespace {

// Each stretch between start and stop takes a second, and is written down.
class NotedStopwatch final : public Stopwatch {
 public:
  explicit NotedStopwatch(std::string& events) : events_(events) {}
  void start() override { events_ += "<"; }
  void stop() override {
    events_ += ">";
    ++seconds_;
  }

 private:
  std::string& events_;
};

class GraphReplay : public ::testing::Test {
 protected:
  Result<double> run(const GraphReplays::Step& call, const char* refused = nullptr, const char* broken = nullptr) {
    NotedStopwatch stopwatch(events_);
    const auto capture = [&](const GraphReplays::Step& work) -> Result<GraphReplays::Step> {
      events_ += "[";
      TRY(work());
      events_ += "]";
      if (refused) return make_error(DiagnosticKind::device_failed, {}, refused);
      return GraphReplays::Step([this, broken]() -> Status {
        events_ += "r";
        if (broken) return make_error(DiagnosticKind::device_failed, {}, broken);
        return {};
      });
    };
    return run_graph_replays({stopwatch, call, capture});
  }
  Status call() {
    events_ += "c";
    return {};
  }

  std::string events_;
};

TEST_F(GraphReplay, WarmsUpCapturesOneCallAndTimesReplaysAlone) {
  const auto seconds = run([this] { return call(); });
  ASSERT_TRUE(seconds.ok());
  EXPECT_DOUBLE_EQ(*seconds, 1);
  std::string expected = "ccc[c]";
  for (int i = 0; i < kGraphReplays; ++i) expected += "<r>";
  EXPECT_EQ(events_, expected);
}

TEST_F(GraphReplay, fail_WhatCannotBeCapturedOrReplayed) {
  const auto refused = run([this] { return call(); }, "no graph");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "no graph");
  EXPECT_EQ(events_, "ccc[c]");
  events_.clear();
  const auto broken = run([this] { return call(); }, nullptr, "no launch");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message, "no launch");
  EXPECT_EQ(events_, "ccc[c]<r");
  const auto raised = run([]() -> Status { return make_error(DiagnosticKind::raised, {}, "it raised"); });
  ASSERT_FALSE(raised.ok());
  EXPECT_EQ(raised.error().message, "it raised");
}

TEST(GraphTiming, IsOfWhatIsLaunchBoundOnEitherSide) {
  Verdict verdict;
  EXPECT_FALSE(is_launch_bound(verdict));
  verdict.candidate = Timing{30, 29, 31, 15};
  verdict.eager = Timing{40, 39, 41, 15};
  EXPECT_FALSE(is_launch_bound(verdict));
  verdict.candidate->median_us = 19;
  EXPECT_TRUE(is_launch_bound(verdict));
}

TEST(GraphTiming, ComparesTheSidesByRound) {
  const auto timing = graph_timing({8e-6, 4e-6, 6e-6}, {4e-6, 2e-6, 3e-6});
  EXPECT_DOUBLE_EQ(timing.speedup(), 2);
  EXPECT_DOUBLE_EQ(timing.candidate.median_us, 3);
  EXPECT_EQ(timing.eager.samples, 3);
  EXPECT_DOUBLE_EQ(timing.speedup_low, 2);
  EXPECT_DOUBLE_EQ(timing.speedup_high, 2);
}

}  // namespace
}  // namespace tilepilot::eval
