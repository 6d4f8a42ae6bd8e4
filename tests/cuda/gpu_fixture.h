// Launching the hand-written kernels of tests/cuda/kernels: on the GPU, or in the emulator where there is none. That
// takes them as code of sm_90a, which has all that sm_80 has; its own semantics are the same for both. What it finds
// wrong in a launch is an error, as what the driver reports is.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::testing {

// Memory of what runs the kernels.
class KernelMemory {
 public:
  KernelMemory() = default;
  explicit KernelMemory(runtime::cuda::DeviceMemory device) : device_(std::move(device)), size_(device_.size()) {}
  explicit KernelMemory(int64_t host_bytes);
  void* data() const { return host_ ? host_.get() : reinterpret_cast<void*>(device_.address()); }
  int64_t size() const { return size_; }

 private:
  runtime::cuda::DeviceMemory device_;
  std::unique_ptr<std::max_align_t[]> host_;
  int64_t size_ = 0;
};

// Boxes of a matrix of float32 for TMA; the innermost axis comes first.
struct BoxesOfMatrix {
  size_t array = 0;  // the number of the parameter that the matrix is
  std::array<int64_t, 2> extents{}, box{};
};

// In the order of a kernel's parameters.
struct KernelArguments {
  std::vector<const KernelMemory*> arrays;
  std::vector<int64_t> scalars{};
  std::vector<BoxesOfMatrix> boxes{};
};

class GpuTest : public ::testing::Test {
 protected:
  using Shape = runtime::cuda::Function::Shape;
  using Memory = KernelMemory;

  // Skips the test where a GPU has no NVRTC.
  void SetUp() override;
  // The GPU, or null.
  static runtime::cuda::Device* device();
  // Why there is none.
  static const std::string& gpu_missing();
  // Whether kernels may use what this compute capability has.
  static bool has(int capability) { return capability <= (device() ? device()->capability() : 90); }
  // That may wait for each other.
  static int64_t blocks_at_once() { return device() ? device()->multiprocessors() : 8; }

  // Launches a function of kernels/UNIT.cu and waits; fails the test on any error.
  static void run(const std::string& unit, const std::string& function, const Shape& shape,
                  const KernelArguments& arguments);
  static Status try_run(const std::string& unit, const std::string& function, const Shape& shape,
                        const KernelArguments& arguments);
  // With so many threads in one row of blocks; the count is the last parameter.
  static void run_over(const std::string& unit, const std::string& function, int64_t count,
                       const std::vector<const Memory*>& arrays);

  static Memory zeros(int64_t bytes);
  static Memory copy_in(const void* data, size_t bytes);
  static void copy_out(void* data, const Memory& memory, size_t bytes);
  template <class T>
  static Memory upload(const std::vector<T>& values) {
    return copy_in(values.data(), values.size() * sizeof(T));
  }
  template <class T>
  static std::vector<T> download(const Memory& memory) {
    std::vector<T> values(static_cast<size_t>(memory.size()) / sizeof(T));
    copy_out(values.data(), memory, values.size() * sizeof(T));
    return values;
  }
};

// For tests that are about the device itself.
#define SKIP_WITHOUT_GPU() \
  if (!gpu_missing().empty()) GTEST_SKIP() << gpu_missing()

// An array of elements of any type, seen as numbers.
class Elements {
 public:
  Elements(ir::DType type, size_t count) : type_(type), bytes_(count * static_cast<size_t>(type.bytes())) {}
  void set(size_t index, double value);
  double get(size_t index) const;
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  ir::DType type_;
  std::vector<std::byte> bytes_;
};

}  // namespace tilepilot::testing
