// Launching the hand-written kernels of tests/cuda/kernels on a GPU. Where there is none tests skip, aloud.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::testing {

class GpuTest : public ::testing::Test {
 protected:
  using Shape = runtime::cuda::Function::Shape;
  using Memory = runtime::cuda::DeviceMemory;

  void SetUp() override;
  // Skips the test where the device is older than this compute capability.
  static bool has(int capability);
  static runtime::cuda::Device& device();

  // Launches a function of kernels/UNIT.cu and waits; fails the test on any error. Parameters point to values.
  static void run(const std::string& unit, const std::string& function, Shape shape,
                  std::vector<const void*> parameters);
  static Status try_run(const std::string& unit, const std::string& function, Shape shape,
                        const std::vector<const void*>& parameters);
  // With so many threads in one row of blocks; all parameters are addresses and then the count.
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
