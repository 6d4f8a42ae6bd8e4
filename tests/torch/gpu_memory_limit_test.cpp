// The limit on what LibTorch takes of a GPU, with a made-up runtime of CUDA where there is none.
#include "eval/torch/gpu_memory_limit.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "eval/torch/gpu.h"
#include "tests/fake_library.h"

namespace tilepilot::eval {
namespace {

constexpr const char* kRuntime = R"(
#include <stdlib.h>
extern "C" int cudaMalloc(void** address, unsigned long bytes) { *address = malloc(bytes); return *address ? 0 : 2; }
extern "C" int cudaFree(void* address) { free(address); return 0; }
)";

TEST(GpuMemoryLimit, RefusesWhatIsBeyondIt) {
  if (!libtorch_has_cuda()) {
    const auto folder = std::filesystem::temp_directory_path() / ("tilepilot-runtime-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    // Stays: the functions of the program find it once it is there.
    ASSERT_NE(
        dlopen(tilepilot::testing::fake_library(folder, "libcudart.so", kRuntime).c_str(), RTLD_NOW | RTLD_GLOBAL),
        nullptr);
    std::filesystem::remove_all(folder);
  } else if (!libtorch_sees_gpu()) {
    GTEST_SKIP() << "LibTorch sees no GPU";
  }
  constexpr size_t kMega = size_t{1} << 20;
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(cudaMalloc(&first, kMega), 0);
  EXPECT_FALSE(refused_gpu_memory());
  limit_gpu_memory(1);  // less than is taken
  EXPECT_EQ(cudaMalloc(&second, 1), 2);
  const auto refused = refused_gpu_memory();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->asked, 1);
  EXPECT_EQ(refused->limit, 1);
  const int64_t others = refused->held - static_cast<int64_t>(kMega);  // of other tests
  EXPECT_GE(others, 0);
  limit_gpu_memory(others + static_cast<int64_t>(3 * kMega));
  EXPECT_EQ(cudaMalloc(&second, 2 * kMega + 1), 2);
  EXPECT_EQ(cudaMalloc(&second, size_t{1} << 63), 2);
  EXPECT_EQ(cudaMalloc(&second, 2 * kMega), 0);
  EXPECT_FALSE(refused_gpu_memory());
  EXPECT_EQ(cudaFree(first), 0);
  EXPECT_EQ(cudaMalloc(&first, kMega), 0);  // what was given back counts no more
  limit_gpu_memory(0);
  EXPECT_EQ(cudaFree(first), 0);
  EXPECT_EQ(cudaFree(second), 0);
}

TEST(GpuMemoryLimit, HoldsForLibTorch) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  const auto bytes = [](int64_t count) { return at::empty({count}, at::device(gpu_device()).dtype(at::kByte)); };
  release_unused_gpu_memory();
  limit_gpu_memory(int64_t{1} << 30);
  EXPECT_THROW(bytes(int64_t{1} << 31), c10::OutOfMemoryError);
  ASSERT_TRUE(refused_gpu_memory());
  EXPECT_EQ(refused_gpu_memory()->asked, int64_t{1} << 31);
  for (int i = 0; i < 4; ++i) bytes(int64_t{600} << (20 - i));  // LibTorch gives back what it keeps
  limit_gpu_memory(0);
  bytes(int64_t{1} << 31);
  release_unused_gpu_memory();
}

}  // namespace
}  // namespace tilepilot::eval
