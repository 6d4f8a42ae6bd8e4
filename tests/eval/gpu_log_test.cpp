#include "eval/process/gpu_log.h"

#include <gmock/gmock.h>

namespace tilepilot::eval {
namespace {

using runtime::cuda::GpuSample;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Answers one sample after the other.
class FakeMonitor final : public runtime::cuda::GpuMonitor {
 public:
  explicit FakeMonitor(std::vector<GpuSample> samples) : samples_(std::move(samples)) {}
  GpuSample sample() override { return samples_.at(next_++); }

 private:
  std::vector<GpuSample> samples_;
  size_t next_ = 0;
};

GpuLog log_of(FakeMonitor& monitor, int samples) {
  GpuLog log(&monitor);
  for (int i = 0; i < samples; ++i) log.read();
  return log;
}

TEST(GpuLogs, WithoutAMonitorTellNothing) {
  GpuLog log(nullptr);
  log.read();
  EXPECT_FALSE(log.state());
  EXPECT_THAT(log.notes(), IsEmpty());
}

TEST(GpuLogs, TellTheRangeOfClocksAndTheMostOfTheRest) {
  FakeMonitor monitor({{1980, 3201, 40, 300.0, 0}, {1950, 3201, 52, 480.0, runtime::cuda::kApplicationClocks}});
  const GpuLog log = log_of(monitor, 2);
  const auto state = log.state();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->sm_mhz_low, 1950);
  EXPECT_EQ(state->sm_mhz_high, 1980);
  EXPECT_EQ(state->mem_mhz, 3201);
  EXPECT_EQ(state->temperature, 52);
  EXPECT_EQ(state->power_w, 480.0);
  EXPECT_THAT(state->throttled, ElementsAre("application_clocks"));
  EXPECT_EQ(state->samples, 2);
  EXPECT_THAT(log.notes(), IsEmpty());
}

TEST(GpuLogs, NoteAClockThatFell) {
  FakeMonitor monitor({{1980, 3201, 40, 300.0, 0}, {1800, 3201, 40, 300.0, 0}});
  EXPECT_THAT(log_of(monitor, 2).notes(), ElementsAre(HasSubstr("1800 to 1980 MHz")));
}

TEST(GpuLogs, NotePowerAndHeat) {
  FakeMonitor monitor({{1980, 3201, 40, 700.0, runtime::cuda::kSwPowerCap},
                       {1980, 3201, 88, 690.0, runtime::cuda::kHwThermalSlowdown}});
  EXPECT_THAT(log_of(monitor, 2).notes(), ElementsAre(HasSubstr("`sw_power_cap`, `hw_thermal_slowdown`")));
}

// The clock of a GPU that waits is not that of the timed calls.
TEST(GpuLogs, LeaveOutTheClocksOfAnIdleGpu) {
  FakeMonitor monitor({{345, 2619, 40, 90.0, runtime::cuda::kGpuIdle}, {1980, 3201, 40, 300.0, 0}});
  const GpuLog log = log_of(monitor, 2);
  EXPECT_EQ(log.state()->sm_mhz_low, 1980);
  EXPECT_EQ(log.state()->mem_mhz, 3201);
  EXPECT_THAT(log.state()->throttled, IsEmpty());
  EXPECT_THAT(log.notes(), IsEmpty());
}

TEST(GpuLogs, OfAGpuThatTellsNothingAreEmpty) {
  FakeMonitor monitor({{}, {}});
  const GpuLog log = log_of(monitor, 2);
  ASSERT_TRUE(log.state());
  EXPECT_FALSE(log.state()->sm_mhz_low);
  EXPECT_THAT(log.notes(), IsEmpty());
}

}  // namespace
}  // namespace tilepilot::eval
