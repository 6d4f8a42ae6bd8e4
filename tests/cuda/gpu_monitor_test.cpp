// NVML, played by a library made for the test.
#include "compiler/runtime/cuda/gpu_monitor.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/fake_library.h"

namespace tilepilot::runtime::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GpuMonitors : public ::testing::Test {
 protected:
  GpuMonitors() : folder_(std::filesystem::temp_directory_path() / ("tilepilot-nvml-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~GpuMonitors() override { std::filesystem::remove_all(folder_); }
  NvmlOptions fake(const std::string& name, const std::string& source, const std::string& bus_id = "") const {
    return {testing::fake_library(folder_, name, source), bus_id};
  }
  std::filesystem::path folder_;
};

TEST_F(GpuMonitors, ReadTheGpuOfABusId) {
  auto monitor = open_nvml(fake("libnvml.so", testing::fake_nvml_source(), "0000:1b:00.0"));
  ASSERT_TRUE(monitor.ok()) << monitor.error().message;
  const GpuSample sample = (*monitor)->sample();
  EXPECT_EQ(sample.sm_mhz, 1980);
  EXPECT_EQ(sample.mem_mhz, 3201);
  EXPECT_EQ(sample.temperature, 41);
  EXPECT_DOUBLE_EQ(sample.power_w.value_or(0), 523.5);
  EXPECT_EQ(sample.reasons, kSwPowerCap);
}

TEST_F(GpuMonitors, ReadTheReasonsOfOlderDrivers) {
  std::string source = testing::fake_nvml_source();
  source.replace(source.find("EventReasons"), 12, "ThrottleReasons");
  auto monitor = open_nvml(fake("libold.so", source));
  ASSERT_TRUE(monitor.ok()) << monitor.error().message;
  EXPECT_EQ((*monitor)->sample().reasons, kSwPowerCap);
}

TEST_F(GpuMonitors, LeaveOutWhatTheGpuDoesNotTell) {
  std::string source = testing::fake_nvml_source();
  source.replace(source.find("*milliwatts = 523500; return 0;"), 31, "return 3;");
  auto monitor = open_nvml(fake("libsilent.so", source));
  ASSERT_TRUE(monitor.ok()) << monitor.error().message;
  EXPECT_FALSE((*monitor)->sample().power_w);
  EXPECT_TRUE((*monitor)->sample().sm_mhz);
}

TEST_F(GpuMonitors, fail_NoLibraryNoFunctionNoGpu) {
  auto none = open_nvml({folder_ / "nowhere.so", ""});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, DiagnosticKind::driver_missing);
  EXPECT_EQ(none.error().message, "NVML was not found");
  auto lacking = open_nvml(fake("libempty.so", "extern \"C\" int nvmlInit_v2() { return 0; }"));
  ASSERT_FALSE(lacking.ok());
  EXPECT_THAT(lacking.error().message, HasSubstr("lacks `nvmlShutdown`"));
  auto other = open_nvml(fake("libnvml2.so", testing::fake_nvml_source(), "0000:99:00.0"));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("does not know the GPU 0000:99:00.0"));
}

TEST(ClockReasons, HaveNames) {
  EXPECT_THAT(names_of_reasons(kSwPowerCap | kHwThermalSlowdown | 0x8000),
              ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
  EXPECT_TRUE(names_of_reasons(0).empty());
}

}  // namespace
}  // namespace tilepilot::runtime::cuda
