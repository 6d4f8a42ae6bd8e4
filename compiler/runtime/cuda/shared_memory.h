// Memory of a device that two processes map: one creates it, the other opens it from a file descriptor. It is the
// virtual memory management of the CUDA driver API ("Virtual Memory Management", CUDA C++ Programming Guide), which,
// unlike `cudaIpcMemHandle`, works between processes of different PID and IPC namespaces.
#pragma once

#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::runtime::cuda {

class SharedMemory {
 public:
  // At least `bytes` of a device's memory, with whatever it held before. Errors: out_of_memory, device_failed.
  static Result<SharedMemory> create(std::shared_ptr<const Device> device, int64_t bytes);
  // The memory that another process created; the descriptor stays the caller's. Whoever holds a descriptor may write:
  // copy what must not change. Errors: device_failed (it is no such memory, or smaller than `bytes`).
  static Result<SharedMemory> open(std::shared_ptr<const Device> device, int descriptor, int64_t bytes);

  ~SharedMemory() { unmap(); }
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  DeviceAddress address() const { return address_; }
  int64_t size() const { return size_; }  // bytes, a multiple of the device's granularity
  // For the other process. Of memory that was created; -1 of memory that was opened.
  int descriptor() const { return descriptor_; }

 private:
  explicit SharedMemory(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
  Status map(int64_t bytes);
  void unmap();

  std::shared_ptr<const Device> device_;
  uint64_t handle_ = 0;
  DeviceAddress address_ = 0;
  int64_t size_ = 0;
  int descriptor_ = -1;
  bool reserved_ = false, mapped_ = false;
};

}  // namespace tilepilot::runtime::cuda
