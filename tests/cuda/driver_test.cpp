// The driver as we use it, where there is none: what users are told, by drivers made for the test.
#include "compiler/runtime/cuda/driver.h"

#include <gmock/gmock.h>

#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/graph.h"
#include "compiler/runtime/cuda/shared_memory.h"
#include "compiler/runtime/cuda/visible_gpus.h"
#include "tests/fake_library.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using runtime::cuda::Device;
using runtime::cuda::Graph;
using runtime::cuda::visible_gpus;
using ::testing::HasSubstr;

class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-driver-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<std::shared_ptr<Device>> open(const std::string& source, int number = 0) const {
    return Device::open({.library = fake_library(folder_, "libcuda.so.1", source), .number = number});
  }

  fs::path folder_;
};

TEST_F(DriverTest, DescribesTheDevice) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  EXPECT_EQ((*device)->name(), "NVIDIA H200");
  EXPECT_EQ((*device)->capability(), 90);
  EXPECT_EQ((*device)->multiprocessors(), 132);
  EXPECT_EQ((*device)->shared_bytes(), 232448);
  EXPECT_EQ((*device)->driver_version(), "13.0");
  EXPECT_EQ((*device)->bus_id(), "0000:1b:00.0");
}

TEST_F(DriverTest, NamesTheGpusThatAreVisible) {
  const auto driver = fake_library(folder_, "libcuda.so.1", "#define DEVICES 2\n" + fake_driver_source());
  const auto gpus = visible_gpus(driver);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(gpus[0].id, "GPU-00010203-0405-0607-0809-0a0b0c0d0e00");
  EXPECT_NE(gpus[1].id, gpus[0].id);
  EXPECT_TRUE(visible_gpus(folder_ / "no_driver.so").empty());
}

TEST_F(DriverTest, SaysHowManyBlocksRunAtOnce) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto module = (*device)->load("machine code");
  ASSERT_TRUE(module.ok()) << module.error().message;
  const auto function = (*module)->function("kernel", 1000);
  ASSERT_TRUE(function.ok()) << function.error().message;
  const auto resident = [&](uint32_t cluster) {
    return *(*device)->resident_blocks(*function, {.grid = {500, 1, 1}, .cluster = {cluster, 1, 1}});
  };
  EXPECT_EQ(resident(1), 132);
  EXPECT_EQ(resident(2), 132);
  EXPECT_EQ(resident(4), 120);  // multiprocessors that belong to no cluster are idle
}

TEST_F(DriverTest, CapturesWorkAsAGraph) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  char stream = 0;
  int worked = 0;
  const auto graph = Graph::capture(*device, &stream, [&]() -> Status {
    ++worked;
    return {};
  });
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(worked, 1);
  EXPECT_TRUE(graph->launch(&stream).ok());
  EXPECT_TRUE(graph->launch(&stream).ok());
  EXPECT_EQ(worked, 1);
}

TEST_F(DriverTest, fail_WorkThatCannotBeCaptured) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto nothing = []() -> Status { return {}; };
  const auto invalid = Graph::capture(*device, reinterpret_cast<void*>(13), nothing);
  ASSERT_FALSE(invalid.ok());
  EXPECT_THAT(invalid.error().message, HasSubstr("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
  EXPECT_FALSE(Graph::capture(*device, nullptr, nothing).ok());
  char stream = 0;
  const auto failed = Graph::capture(
      *device, &stream, []() -> Status { return make_error(DiagnosticKind::raised, {}, "the call raised"); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "the call raised");
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(DriverTest, SharesMemoryByDescriptor) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto free = (*device)->free_memory();
  ASSERT_TRUE(free.ok());
  EXPECT_EQ(*free, int64_t{100} << 30);
  using runtime::cuda::SharedMemory;
  const int before = open_descriptors();
  {
    auto made = SharedMemory::create(*device, 5'000'000);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->size(), 3 * (2 << 20));
    ASSERT_GE(made->descriptor(), 0);
    auto* theirs = reinterpret_cast<int*>(made->address());
    theirs[1'000'000] = 42;
    const auto opened = SharedMemory::open(*device, made->descriptor(), 5'000'000);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ(opened->descriptor(), -1);
    EXPECT_NE(opened->address(), made->address());
    EXPECT_EQ(reinterpret_cast<int*>(opened->address())[1'000'000], 42);
    *made = *SharedMemory::create(*device, 1);  // what it held before is still mapped by the other
    EXPECT_EQ(reinterpret_cast<int*>(opened->address())[1'000'000], 42);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DriverTest, fail_SharedMemoryThatIsNone) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  using runtime::cuda::SharedMemory;
  const int before = open_descriptors();
  EXPECT_EQ(SharedMemory::create(*device, int64_t{2} << 40).error().kind, DiagnosticKind::out_of_memory);
  EXPECT_EQ(SharedMemory::open(*device, 999, 100).error().kind, DiagnosticKind::device_failed);
  const auto made = SharedMemory::create(*device, 100);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(SharedMemory::open(*device, made->descriptor(), 5'000'000).error().kind, DiagnosticKind::device_failed);
  EXPECT_EQ(open_descriptors(), before + 2);  // of the memory that was made: the driver's and ours
}

TEST_F(DriverTest, fail_LaunchThatIsRefused) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto module = (*device)->load("machine code");
  ASSERT_TRUE(module.ok()) << module.error().message;
  EXPECT_EQ((*module)->variable("x"), 0u);
  const auto function = (*module)->function("kernel", 1000);
  ASSERT_TRUE(function.ok()) << function.error().message;
  EXPECT_TRUE(function->launch({.threads = {1024, 1, 1}}, nullptr, nullptr).ok());
  const Status status = function->launch({.grid = {7, 1, 1}, .threads = {2048, 1, 1}}, nullptr, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::device_failed);
  EXPECT_EQ(status.error().message,
            "the CUDA driver's `cuLaunchKernelEx` failed: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_THAT(status.error().notes.at(0).message, HasSubstr("`kernel`: grid 7 x 1 x 1, 2048 x 1 x 1 threads"));
}

TEST_F(DriverTest, fail_TooMuchSharedMemory) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto module = (*device)->load("machine code");
  ASSERT_TRUE(module.ok()) << module.error().message;
  const auto function = (*module)->function("kernel", 300000);
  ASSERT_FALSE(function.ok());
  EXPECT_EQ(function.error().kind, DiagnosticKind::load_failed);
  EXPECT_EQ(function.error().message, "`kernel` needs 300000 bytes of shared memory a block; NVIDIA H200 has 232448");
}

TEST_F(DriverTest, fail_OutOfMemory) {
  const auto device = open(fake_driver_source());
  ASSERT_TRUE(device.ok()) << device.error().message;
  EXPECT_TRUE((*device)->allocate(1 << 20).ok());
  const auto memory = (*device)->allocate(int64_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().kind, DiagnosticKind::out_of_memory);
}

TEST_F(DriverTest, fail_TooOld) {
  const auto device = open(fake_driver_source(11080));
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().kind, DiagnosticKind::driver_missing);
  EXPECT_EQ(device.error().message, "the CUDA driver is for CUDA 11.8; 12.0 or newer is needed");
}

TEST_F(DriverTest, fail_NoSuchDevice) {
  const auto device = open(fake_driver_source(), 3);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().message, "there is no GPU number 3: this machine has 1");
}

TEST_F(DriverTest, fail_NoDriverAtAll) {
  const auto device = open("extern \"C\" int cuInit() { return 0; }\n");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().kind, DiagnosticKind::driver_missing);
  EXPECT_THAT(device.error().message, HasSubstr("is no CUDA driver: it lacks `cuDriverGetVersion`"));
}

TEST(ArchitectureTest, ComesFromTheDevice) {
  EXPECT_EQ(*runtime::cuda::architecture_of(90), "sm_90a");
  EXPECT_EQ(*runtime::cuda::architecture_of(80), "sm_80");
  EXPECT_EQ(*runtime::cuda::architecture_of(89), "sm_80");
}

TEST(ArchitectureTest, CodeOfTheOlderRunsOnTheNewer) {
  EXPECT_TRUE(runtime::cuda::check_runs("sm_80", 80).ok());
  EXPECT_TRUE(runtime::cuda::check_runs("sm_80", 89).ok());
  EXPECT_TRUE(runtime::cuda::check_runs("sm_80", 90).ok());
  EXPECT_TRUE(runtime::cuda::check_runs("sm_90a", 90).ok());
  const auto refused = runtime::cuda::check_runs("sm_90a", 80);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("8.0, which cannot run `cuda:sm_90a`"));
  EXPECT_FALSE(runtime::cuda::check_runs("sm_80", 75).ok());
}

TEST(ArchitectureTest, fail_OtherDevices) {
  for (const auto& [capability, reason] : std::vector<std::pair<int, std::string>>{
           {75, "it lacks the asynchronous copies"}, {100, "`tcgen05`"}, {120, "needs a target of its own"}}) {
    const auto refused = runtime::cuda::architecture_of(capability);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, DiagnosticKind::driver_missing);
    EXPECT_THAT(refused.error().message, HasSubstr(reason));
  }
}

}  // namespace
}  // namespace tilepilot::testing
