// What targets need of this machine, and what is said where it is not there.
#include "eval/worker/target_backend.h"

#include <gmock/gmock.h>

#include "eval/torch/gpu.h"

namespace tilepilot::eval {
namespace {

using runtime::parse_target;
using ::testing::AnyOf;

TEST(TargetBackend, ProcessorAndEmulatorAreEverywhere) {
  for (const char* name : {"cpu", "emulate:sm_80", "emulate:sm_90a"}) {
    auto opened = open_target(*parse_target(name), {TILEPILOT_KERNEL_CACHE});
    ASSERT_TRUE(opened.ok()) << name;
    EXPECT_NE(opened->kernels, nullptr);
    EXPECT_EQ(opened->gpu, nullptr);
  }
}

TEST(TargetBackend, AutoTakesTheGpuOnlyWhereLibTorchHasOne) {
  auto opened = open_target(*parse_target("auto"), {TILEPILOT_KERNEL_CACHE});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_NE(opened->kernels, nullptr);
  if (!libtorch_sees_gpu()) { EXPECT_EQ(opened->gpu, nullptr); }
}

TEST(TargetBackend, fail_GpuThatIsNotHere) {
  if (libtorch_sees_gpu()) GTEST_SKIP() << "there is a GPU";
  auto opened = open_target(*parse_target("cuda:sm_80"), {TILEPILOT_KERNEL_CACHE});
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().kind, AnyOf(DiagnosticKind::driver_missing, DiagnosticKind::worker_unavailable));
  EXPECT_FALSE(opened.error().hint.empty());
}

TEST(TargetBackend, NamesAreReadAndPrinted) {
  for (const char* name : {"auto", "cpu", "cuda:sm_80", "cuda:sm_90a", "emulate:sm_80", "emulate:sm_90a"})
    EXPECT_EQ(to_string(*parse_target(name)), name);
  EXPECT_EQ(to_string(*parse_target("emulate:cuda:sm_90a")), "emulate:sm_90a");
  for (const char* name : {"", "gpu", "cuda", "cuda:", "cuda:sm_75", "emulate:sm_100", "hip:gfx942"}) {
    auto target = parse_target(name);
    ASSERT_FALSE(target.ok()) << name;
    EXPECT_EQ(target.error().kind, DiagnosticKind::bad_usage);
  }
}

TEST(Gpu, KnowsWhereLibTorchLies) {
  const auto packages = libtorch_packages();
  if (packages.empty()) GTEST_SKIP() << "this LibTorch is not in a folder of Python packages";
  EXPECT_TRUE(std::filesystem::exists(packages / "torch"));
}

}  // namespace
}  // namespace tilepilot::eval
