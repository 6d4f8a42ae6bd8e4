#include "eval/process/memory_reservation.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGigabyte = 1'000'000'000;

class Reservations : public ::testing::Test {
 protected:
  Reservations() {
    char pattern[] = "/tmp/tilepilot_memory_XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~Reservations() override { std::filesystem::remove_all(folder_); }

  static MemoryNeed need(int64_t host, int64_t gpu = 0) {
    MemoryNeed need;
    need.host = host * kGigabyte;
    need.gpu = gpu * kGigabyte;
    return need;
  }
  ReservationOptions options(double patience_s = 0.1) {
    return {.folder = folder_,
            .available = [this]() -> Result<MemoryAvailable> { return free_; },
            .waits = [this](const std::string& what) { waited_for_.push_back(what); },
            .patience_s = patience_s};
  }
  Result<MemoryReservation> take(const MemoryNeed& need, double patience_s = 0.1) {
    return MemoryReservation::take(need, options(patience_s));
  }

  std::filesystem::path folder_;
  MemoryAvailable free_ = {100 * kGigabyte, 140 * kGigabyte};
  std::vector<std::string> waited_for_;
};

TEST_F(Reservations, FitSideBySide) {
  auto first = take(need(40, 45)), second = take(need(40, 45));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(first->is_shared());
  EXPECT_TRUE(waited_for_.empty());
}

TEST_F(Reservations, fail_WhatDoesNotFitAloneIsToldAtOnce) {
  auto refused = take(need(101));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, DiagnosticKind::out_of_memory);
  EXPECT_THAT(refused.error().message, HasSubstr("needs about 101.0 GB of memory, 100.0 GB are free here"));
  auto first = take(need(40));
  refused = take(need(10, 141), 60);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("of the GPU's memory"));
  EXPECT_TRUE(waited_for_.empty());
}

TEST_F(Reservations, fail_GivesUpAfterItsPatience) {
  auto first = take(need(10, 80));
  auto second = take(need(10, 80));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, DiagnosticKind::out_of_memory);
  ASSERT_EQ(waited_for_.size(), 1u);
  EXPECT_EQ(waited_for_[0],
            "waiting for memory of the GPU: this needs 88.0 GB, other runs have reserved 88.0 of 140.0 GB");
}

// What is free while others use theirs is not what there is.
TEST_F(Reservations, CountWhatWasFreeBeforeAnyWasTaken) {
  auto first = take(need(40, 45));
  free_ = {60 * kGigabyte, 95 * kGigabyte};  // it takes what it has reserved
  auto second = take(need(50, 50));
  EXPECT_TRUE(second.ok()) << second.error().message;
}

// A run on the processor does not ask for the GPU's memory.
TEST_F(Reservations, WaitForWhatEndedProcessesGiveBackLater) {
  { auto before = take(need(10, 80)); }
  int asked = 0;
  auto slow = options(60);
  slow.available = [&]() -> Result<MemoryAvailable> {
    return MemoryAvailable{100 * kGigabyte, (++asked < 4 ? 60 : 140) * kGigabyte};
  };
  // A small one meanwhile, which measures too little.
  EXPECT_TRUE(MemoryReservation::take(need(1, 1), slow).ok());
  auto later = MemoryReservation::take(need(10, 80), slow);
  EXPECT_TRUE(later.ok()) << later.error().message;
  EXPECT_EQ(waited_for_.size(), 1u);
}

TEST_F(Reservations, fail_LessIsFreeThanThereWas) {
  { auto before = take(need(10, 80)); }
  free_.gpu = 60 * kGigabyte;
  auto brief = options(60);
  brief.settling_s = 0.1;
  auto refused = MemoryReservation::take(need(10, 80), brief);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("needs about 80.0 GB of the GPU's memory, 60.0 GB are free"));
  // With the same free all along nobody waits.
  EXPECT_TRUE(MemoryReservation::take(need(10, 50), brief).ok());
}

TEST_F(Reservations, OfTheProcessorDoNotBlockThoseOfTheGpu) {
  free_.gpu = 0;
  auto on_processor = take(need(40));
  free_.gpu = 140 * kGigabyte;
  auto on_gpu = take(need(40, 120));
  EXPECT_TRUE(on_gpu.ok()) << on_gpu.error().message;
  free_.gpu = 0;
  auto another = take(need(10));
  EXPECT_FALSE(take(need(5, 120)).ok());
}

TEST_F(Reservations, OfOneGpuDoNotWaitForAnother) {
  const auto on = [this](const std::string& gpu) {
    auto options = this->options();
    options.gpu = gpu;
    return options;
  };
  auto first = MemoryReservation::take(need(10, 120), on("0000:1b:00.0"));
  auto second = MemoryReservation::take(need(10, 120), on("0000:2b:00.0"));
  EXPECT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(waited_for_.empty());
  auto third = MemoryReservation::take(need(10, 120), on("0000:2b:00.0"));
  ASSERT_FALSE(third.ok());
  EXPECT_THAT(third.error().message, HasSubstr("other runs have reserved 132.0 of 140.0 GB"));
  // The host's memory is one for all of them.
  third = MemoryReservation::take(need(90, 10), on("0000:3b:00.0"));
  ASSERT_FALSE(third.ok());
  EXPECT_THAT(third.error().message, HasSubstr("other runs have reserved 20.0 of 100.0 GB"));
}

// Who waits for the memory of one GPU keeps nobody of another GPU waiting.
TEST_F(Reservations, OfOneGpuAreNotBehindThoseWhoWaitForAnother) {
  auto here = options(60), there = options();
  here.gpu = "0000:1b:00.0";
  there.gpu = "0000:2b:00.0";
  auto first = MemoryReservation::take(need(10, 120), here);
  ASSERT_TRUE(first.ok());
  std::atomic<bool> waits = false, admitted = false;
  here.waits = [&](const std::string&) { waits = true; };
  std::thread waiting([&] { admitted = MemoryReservation::take(need(10, 120), here).ok(); });
  while (!waits) std::this_thread::yield();
  EXPECT_TRUE(MemoryReservation::take(need(10, 120), there).ok());
  EXPECT_FALSE(admitted);
  first = MemoryReservation();
  waiting.join();
  EXPECT_TRUE(admitted);
}

TEST_F(Reservations, EndWithTheirHolder) {
  auto first = take(need(80));
  EXPECT_FALSE(take(need(80)).ok());
  first = MemoryReservation();
  EXPECT_TRUE(take(need(80)).ok());
}

TEST_F(Reservations, EndWithAProcessThatIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto held = take(need(80));
    const char told = held.ok() ? 'y' : 'n';
    if (write(ends[1], &told, 1) == 1) pause();
    _exit(1);
  }
  char told = 0;
  ASSERT_EQ(read(ends[0], &told, 1), 1);
  ASSERT_EQ(told, 'y');
  EXPECT_FALSE(take(need(80)).ok());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(take(need(80)).ok());
  close(ends[0]);
  close(ends[1]);
  // Nothing is left but the file itself.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()), 1);
}

TEST_F(Reservations, OfSmallOnesDoNotWait) {
  auto first = take(need(90, 135));
  auto small = take(need(5, 8));
  EXPECT_TRUE(small.ok()) << small.error().message;
  EXPECT_FALSE(take(need(6, 9)).ok());
  first = MemoryReservation();
  // They count all the same.
  EXPECT_FALSE(take(need(97)).ok());
}

// One that needs much is not starved by those that need less and come later.
TEST_F(Reservations, AreNotOvertakenWhileTheyWait) {
  auto first = std::make_unique<MemoryReservation>(*take(need(60)));
  std::atomic<bool> admitted = false, waits = false;
  std::thread large([&] {
    auto own = options(30);
    own.waits = [&](const std::string&) { waits = true; };
    auto held = MemoryReservation::take(need(90), own);
    admitted = held.ok();
  });
  while (!waits) std::this_thread::yield();
  EXPECT_FALSE(take(need(20), 0.3).ok());
  EXPECT_FALSE(admitted);
  first.reset();
  large.join();
  EXPECT_TRUE(admitted);
  EXPECT_TRUE(take(need(20)).ok());
}

// Many at once never hold more together than there is.
TEST_F(Reservations, NeverExceedWhatThereIs) {
  std::atomic<int64_t> held = 0, most = 0;
  std::vector<std::thread> runs;
  for (int i = 0; i < 12; ++i) {
    runs.emplace_back([&, i] {
      auto own = options(60);
      own.waits = [](const std::string&) {};
      const int64_t mine = 10 + 7 * (i % 5);
      for (int repeat = 0; repeat < 3; ++repeat) {
        auto reservation = MemoryReservation::take(need(mine), own);
        ASSERT_TRUE(reservation.ok()) << reservation.error().message;
        const int64_t now = held += mine;
        for (int64_t before = most; now > before && !most.compare_exchange_weak(before, now);) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        held -= mine;
      }
    });
  }
  for (auto& run : runs) run.join();
  EXPECT_LE(most, 100);
  EXPECT_GT(most, 38);
}

TEST_F(Reservations, WithoutAFolderOnlyTheNeedIsChecked) {
  auto own = options();
  own.folder.clear();
  auto first = MemoryReservation::take(need(80), own);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(first->is_shared());
  EXPECT_TRUE(MemoryReservation::take(need(80), own).ok());
  EXPECT_FALSE(MemoryReservation::take(need(101), own).ok());
}

}  // namespace
}  // namespace tilepilot::eval
