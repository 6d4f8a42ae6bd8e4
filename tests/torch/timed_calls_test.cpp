// What checked and timed calls are made of: fresh memory, secret changes of inputs, and what the clock is held against.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "eval/samples.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/judge/timing/clock_check.h"
#include "eval/worker/judge/timing/timing_lock.h"
#include "eval/worker/truth/input_change.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

class FreshMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = c10::GetCPUAllocator();
    install_fresh_memory();
    set_fresh_memory(FreshMemory::pooled);
  }
  void TearDown() override {
    set_fresh_memory(FreshMemory::plain);
    release_fresh_memory();
    c10::SetCPUAllocator(before_, 1);  // other tests of this process tell its words
  }

 private:
  c10::Allocator* before_ = nullptr;
};

TEST_F(FreshMemoryTest, IsFiniteAndRandomInEveryFloatingType) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    renew_fresh_memory(static_cast<uint64_t>(type));
    const at::Tensor made = at::empty({100'000}, type), other = at::empty({100'000}, type);
    EXPECT_TRUE(made.isfinite().all().item<bool>()) << type;
    const double below = made.abs().lt(1).to(at::kDouble).mean().item<double>();
    const double negative = made.lt(0).to(at::kDouble).mean().item<double>();
    EXPECT_TRUE(below > 0.3 && below < 0.9 && negative > 0.4 && negative < 0.6) << type << below << " " << negative;
    EXPECT_FALSE(made.equal(other)) << type;
  }
}

TEST_F(FreshMemoryTest, KeepsNothingFromOneCallToTheNext) {
  for (const int64_t count : {16, 5000, 1'000'000}) {
    { at::full({count}, 7.0F); }
    renew_fresh_memory(11);
    const at::Tensor made = at::empty({count}, at::kFloat);
    EXPECT_FALSE(made.eq(7).any().item<bool>()) << count;
  }
}

// Small blocks are new altogether, large ones in each page: zeros that were freed are no zeros.
TEST_F(FreshMemoryTest, IsChangedWithinACallToo) {
  for (const int64_t count : {16, 5000, 1'000'000}) {
    { at::zeros({count}, at::kFloat); }
    const at::Tensor made = at::empty({count}, at::kFloat);
    EXPECT_TRUE(made.ne(0).any().item<bool>()) << count;
  }
}

TEST_F(FreshMemoryTest, IsNotAlwaysAtTheSamePlace) {
  std::set<const void*> places;
  for (int call = 0; call < 20; ++call) {
    {
      std::vector<at::Tensor> several;
      for (int i = 0; i < 4; ++i) several.push_back(at::empty({999}, at::kFloat));
    }
    renew_fresh_memory(static_cast<uint64_t>(call));
    places.insert(at::empty({999}, at::kFloat).data_ptr());
  }
  EXPECT_GT(places.size(), 1u);
}

TEST_F(FreshMemoryTest, UnwrittenElementsAreCounted) {
  renew_fresh_memory(17);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kInt}) {
    at::Tensor made = at::empty({10'000}, type);
    made.narrow(0, 0, 6000).fill_(1);
    EXPECT_EQ(unwritten_elements(made, 17), 4000);
    EXPECT_EQ(unwritten_elements(made, 18), 0);
  }
  EXPECT_EQ(unwritten_elements(at::randn({100'000}), 17), 0);
}

at::Tensor changed_copy(const at::Tensor& base, const InputChange& change, ChangeRule rule) {
  at::Tensor copy = copy_of(base, at::kCPU);
  change_elements(copy, change, rule);
  return copy;
}

TEST(InputChange, IsFeltByEveryElementAndKeepsTheRange) {
  const at::Tensor base = at::rand({300, 700}) + 0.001;
  const at::Tensor one = changed_copy(base, {.key = 5}, ChangeRule::factors);
  EXPECT_TRUE(one.equal(changed_copy(base, {.key = 5}, ChangeRule::factors)));
  EXPECT_LT(one.eq(base).sum().item<int64_t>(), 100);
  EXPECT_LT(one.eq(changed_copy(base, {.key = 6}, ChangeRule::factors)).sum().item<int64_t>(), 100);
  EXPECT_TRUE(one.le(base).all().item<bool>() && one.ge(base * 0.87).all().item<bool>());
}

TEST(InputChange, CanBeOfAStretchAndKeepsStridesAndZeros) {
  at::Tensor base = at::ones({64, 64}).t();
  const at::Tensor part = changed_copy(base, {.key = 5, .from = 0.5, .to = 0.75}, ChangeRule::symmetric);
  EXPECT_EQ(part.strides(), base.strides());
  EXPECT_EQ(part.narrow(1, 0, 32).ne(1).sum().item<int64_t>(), 0);
  EXPECT_GT(part.narrow(1, 32, 16).ne(1).sum().item<int64_t>(), 1000);
  EXPECT_EQ(part.narrow(1, 48, 16).ne(1).sum().item<int64_t>(), 0);
  const at::Tensor zeros = at::zeros({10}), whole = at::arange(10);
  EXPECT_TRUE(changed_copy(zeros, {.key = 5}, ChangeRule::factors).equal(zeros));
  EXPECT_TRUE(changed_copy(whole, {.key = 5}, ChangeRule::none).equal(whole));
}

TEST(InputChange, ChangesSignsAndPlacesWhereDrawsAreAlike) {
  const at::Tensor base = at::randn({300, 700});
  const at::Tensor other = changed_copy(base, {.key = 5}, ChangeRule::symmetric);
  const double kept_signs = other.gt(0).eq(base.gt(0)).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(kept_signs, 0.5, 0.05);
  const at::Tensor places = at::arange(1, 1001).to(at::kFloat);
  const at::Tensor moved = changed_copy(places, {.key = 5}, ChangeRule::alike);
  EXPECT_GT(moved.div(places).sub(1).abs().gt(0.2).sum().item<int64_t>(), 500);
  EXPECT_TRUE(moved.gt(0).all().item<bool>());
}

TEST(InputChange, KeepsTheOrderAndTheProportionsOfConstants) {
  const at::Tensor base = at::linspace(-1, 1, 100);
  const at::Tensor other = changed_copy(base, {.key = 5}, ChangeRule::one_factor);
  EXPECT_FALSE(other.equal(base));
  EXPECT_TRUE(other.div(base).sub(other[0].div(base[0])).abs().lt(1e-6).all().item<bool>());
  EXPECT_TRUE(changed_copy(base, {.key = 5, .from = 0.2, .to = 0.5}, ChangeRule::one_factor).equal(base));
}

TEST(InputChange, GivesRowsOfConstantsFactorsOfTheirOwn) {
  const at::Tensor base = at::rand({40, 60}) + 1, symmetric = at::mm(base, base.t());
  const at::Tensor other = changed_copy(base, {.key = 5}, ChangeRule::rows), factor = other.div(base);
  EXPECT_TRUE(factor.sub(factor.slice(1, 0, 1)).abs().lt(1e-6).all().item<bool>());
  EXPECT_GT(factor.select(1, 0).std().item<double>(), 0.01);
  EXPECT_TRUE(changed_copy(base, {.key = 5, .from = 0.2, .to = 0.5}, ChangeRule::rows).equal(base));
  const at::Tensor changed = changed_copy(symmetric, {.key = 5}, ChangeRule::rows);
  EXPECT_TRUE(changed.equal(changed.t()));
  EXPECT_FALSE(changed.equal(symmetric));
}

TEST(ClockCheck, BelievesWhatTheJudgeSawToo) {
  const std::vector<ClockView> honest(15, {.claimed = 6e-3, .judged = 6.2e-3, .busy = 11.5e-3, .after = 1e-4});
  EXPECT_EQ(clock_complaint(honest, 2), "");
  std::vector<ClockView> disturbed = honest;
  for (int i = 0; i < 5; ++i) disturbed[static_cast<size_t>(i)].judged = 40e-3;  // the machine was busy
  EXPECT_EQ(clock_complaint(disturbed, 2), "");
  for (auto& sample : disturbed) sample.judged = 40e-3;  // all the time: the judge found no processor
  EXPECT_EQ(clock_complaint(disturbed, 2), "");
}

TEST(ClockCheck, fail_ClaimsThatCannotBe) {
  const ClockView honest = {.claimed = 6e-3, .judged = 6.2e-3, .busy = 11.5e-3, .after = 1e-4};
  auto complaint = [&](auto change) {
    std::vector<ClockView> samples(15, honest);
    for (auto& sample : samples) change(sample);
    return clock_complaint(samples, 2);
  };
  EXPECT_THAT(complaint([](auto& sample) { sample.claimed = 1e-4; }), HasSubstr("claims to take"));
  EXPECT_THAT(complaint([](auto& sample) { sample.busy = 40e-3; }), HasSubstr("of the processors' time"));
  EXPECT_THAT(complaint([](auto& sample) { sample.after = 9e-3; }), HasSubstr("after it had answered"));
}

TEST(Samples, IntervalHoldsTheRatio) {
  std::vector<double> eager, candidate;
  for (int i = 0; i < 15; ++i) {
    eager.push_back(2 + 0.01 * (i % 5));
    candidate.push_back(1 + 0.01 * (i % 3));
  }
  auto [low, high] = ratio_interval(eager, candidate);
  EXPECT_LE(low, median(eager) / median(candidate));
  EXPECT_GE(high, median(eager) / median(candidate));
  EXPECT_GT(low, 1.9);
  EXPECT_LT(high, 2.1);
  EXPECT_EQ(ratio_interval({2, 4}, {1, 1}), (std::pair<double, double>{2, 4}));
  EXPECT_EQ(ratio_interval({}, {}), (std::pair<double, double>{0, 0}));
}

TEST(TimingLock, IsHeldByOneAndFreedByDeath) {
  const auto file = testing::scratch("timing-lock") / "lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const TimingLock lock(file, [] {});
    const char byte = lock.holds() ? 1 : 0;
    if (write(ready[1], &byte, 1) == 1) pause();
    _exit(0);
  }
  char held = 0;
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 1);
  int waits = 0;
  EXPECT_FALSE(TimingLock(
                   file, [&] { ++waits; }, 0.05)
                   .holds());
  EXPECT_EQ(waits, 1);
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  EXPECT_TRUE(TimingLock(file, [&] { ++waits; }).holds());
  EXPECT_EQ(waits, 1);
  close(ready[0]);
  close(ready[1]);
}

// Compiling may take long: others wait for a holder that is seen to live.
TEST(TimingLock, WaitsAsLongAsItsHolderGivesSignsOfLife) {
  const auto file = testing::scratch("touched-lock") / "lock";
  const pid_t holder = fork();
  if (holder == 0) {
    const TimingLock lock(file, [] {});
    for (int i = 0; i < 40; ++i) {
      usleep(50'000);
      lock.touch();
    }
    _exit(0);
  }
  while (!std::filesystem::exists(file)) usleep(1000);
  usleep(20'000);
  const double begin = monotonic_seconds();
  const TimingLock lock(
      file, [] {}, 0.7);
  EXPECT_TRUE(lock.holds());
  EXPECT_GT(monotonic_seconds() - begin, 1);
  waitpid(holder, nullptr, 0);
}

TEST(DeviceShare, LetsWhoIsTimedGoFirst) {
  const auto file = testing::scratch("device-share") / "lock";
  const DeviceShare::Limits no_turns = {.turn_s = 0};
  DeviceShare share(file, no_turns), other(file, no_turns);
  EXPECT_LT(share.renew() + other.renew(), 1);  // many have one
  std::atomic<bool> timed = false, done = false;
  std::thread timer([&] {
    const TimingLock lock(file, [] {});
    timed = true;
    usleep(200'000);
    done = true;
  });
  usleep(100'000);
  EXPECT_FALSE(timed);  // in the middle of a step nobody is
  other.release();
  usleep(50'000);
  EXPECT_FALSE(timed);
  EXPECT_GT(share.renew(), 0.1);
  EXPECT_TRUE(timed && done);
  timer.join();
}

// Else, where many are timed one after another, the others would come to one step between any two of them.
TEST(DeviceShare, LastsForATurn) {
  const auto file = testing::scratch("share-turn") / "lock";
  DeviceShare share(file, {.turn_s = 0.3});
  share.renew();
  const double begin = monotonic_seconds();
  std::atomic<bool> timed = false;
  std::thread timer([&] {
    const TimingLock lock(file, [] {});
    timed = true;
  });
  int steps = 0;
  for (; !timed && monotonic_seconds() - begin < 10; ++steps) {
    share.renew();
    usleep(20'000);
  }
  timer.join();
  EXPECT_GT(monotonic_seconds() - begin, 0.3);
  EXPECT_GT(steps, 3);
  EXPECT_LT(steps, 20);
}

TEST(DeviceShare, IsNoObstacleToItsOwnerWhileThatIsTimed) {
  const auto file = testing::scratch("suspended-share") / "lock";
  DeviceShare share(file, {.patience_s = 0.2});
  share.renew();
  share.suspend();
  {
    const TimingLock lock(
        file, [] {}, 0.2);
    EXPECT_TRUE(lock.holds());
    EXPECT_LT(lock.waited_s(), 0.1);
    EXPECT_EQ(share.renew(), 0);  // a step of its own, between rounds
  }
  share.resume();
  share.renew();
  const TimingLock in_vain(
      file, [] {}, 0.2);
  EXPECT_GT(in_vain.waited_s(), 0.2);  // the share that came back is never given back
}

TEST(DeviceShare, EndsWithItsProcess) {
  const auto file = testing::scratch("dead-share") / "lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    DeviceShare share(file);
    share.renew();
    if (write(ready[1], "x", 1) == 1) pause();
    _exit(0);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  EXPECT_LT(TimingLock(file, [] {}).waited_s(), 1);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace tilepilot::eval
