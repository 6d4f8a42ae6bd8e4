// The CUDA driver, opened at run time: a device, modules of machine code, memory and launches. What the driver reports
// becomes a diagnostic that names the call and the driver's word for it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

struct DriverFunctions;
using DeviceAddress = uint64_t;
using Stream = void*;  // the driver's; null: the default stream

class Device;

// A function of a module, launched as often as wanted.
class Function {
 public:
  struct Shape {
    std::array<uint32_t, 3> grid = {1, 1, 1}, threads = {1, 1, 1}, cluster = {1, 1, 1};
    uint32_t shared_bytes = 0;
    bool cooperative = false;

    bool has_clusters() const { return cluster != std::array<uint32_t, 3>{1, 1, 1}; }
  };
  // `parameters` point to the values. The launch is asynchronous; faults of earlier ones may be reported here.
  // @pre shared_bytes is at most what the function was prepared for
  Status launch(const Shape& shape, void** parameters, Stream stream) const;
  const std::string& name() const { return name_; }
  // Of one thread, in registers and bytes of spilled or indexed registers.
  int registers() const { return registers_; }
  int local_bytes() const { return local_bytes_; }
  int static_shared() const { return static_shared_; }  // of a block, in bytes

 private:
  friend class Module;
  friend class Device;
  std::shared_ptr<const DriverFunctions> driver_;
  void* handle_ = nullptr;
  std::string name_;
  int registers_ = 0, local_bytes_ = 0, static_shared_ = 0;
};

class Module {
 public:
  ~Module();
  Module(const Module&) = delete;
  // Ready for launches with so much dynamic shared memory. Errors: load_failed (no such function, too much memory).
  Result<Function> function(const std::string& name, int64_t shared_bytes) const;
  // The address of a variable; 0 if there is none of this name.
  DeviceAddress variable(const std::string& name) const;

 private:
  friend class Device;
  Module(std::shared_ptr<const Device> device, void* handle) : device_(std::move(device)), handle_(handle) {}
  std::shared_ptr<const Device> device_;
  void* handle_;
};

// Memory of the device, or of the host where the device reaches it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  DeviceAddress address() const { return address_; }
  int64_t size() const { return size_; }
  void* host() const { return host_; }  // of shared_with_host alone

 private:
  friend class Device;
  std::shared_ptr<const Device> device_;
  DeviceAddress address_ = 0;
  int64_t size_ = 0;
  void* host_ = nullptr;
};

struct DeviceOptions {
  std::filesystem::path library;  // the driver itself; empty: wherever the system has libcuda.so.1
  int number = 0;                 // of the device, from 0 on
};

// A device with its primary context, which LibTorch uses as well.
class Device : public std::enable_shared_from_this<Device> {
 public:
  // Errors: driver_missing (none, older than CUDA 12.0, no device of this number).
  static Result<std::shared_ptr<Device>> open(const DeviceOptions& options = {});
  ~Device();
  Device(const Device&) = delete;

  const std::string& name() const { return name_; }  // "NVIDIA H200"
  // 90 for compute capability 9.0.
  int capability() const { return capability_; }
  int multiprocessors() const { return multiprocessors_; }
  int threads_of_multiprocessor() const;                  // at most at once; 0 if the driver does not say
  int64_t shared_bytes() const { return shared_bytes_; }  // that a block can have
  std::string driver_version() const;                     // "13.0"
  // By which other libraries know it: "0000:1b:00.0"; empty if the driver does not say.
  std::string bus_id() const;

  // Makes the context that of this thread. Needed once in each thread before anything else.
  Status use() const;
  // Errors: load_failed.
  Result<std::shared_ptr<Module>> load(const std::string& cubin) const;
  // Bytes of the device's memory that nobody has taken. Errors: device_failed.
  Result<int64_t> free_memory() const;
  // Errors: out_of_memory.
  Result<DeviceMemory> allocate(int64_t bytes) const;
  Result<DeviceMemory> shared_with_host(int64_t bytes) const;
  Status write(DeviceAddress to, const void* from, int64_t bytes) const;
  Status read(void* to, DeviceAddress from, int64_t bytes) const;
  // Waits for a stream. Errors: device_failed, also for what launches before did wrong.
  Status wait(Stream stream) const;
  // How many blocks of a launch run at once on the whole device, whatever its grid is. Clusters lie within a group of
  // multiprocessors each: where these are no multiple of a cluster's blocks, fewer blocks run than would alone.
  Result<int64_t> resident_blocks(const Function& function, const Function::Shape& shape) const;

  // A TMA descriptor, as the prelude's tensor_map. Strides of all axes but the innermost, in
  // bytes, innermost axes first everywhere. `type` and `swizzle` are the driver's numbers (CUtensorMapDataType,
  // CUtensorMapSwizzle). Errors: device_failed.
  struct TensorMap {
    uint64_t words[16] = {};
  };
  struct TensorShape {
    DeviceAddress data = 0;
    int type = 0, swizzle = 0;
    std::vector<uint64_t> extents, strides;
    std::vector<uint32_t> box;
  };
  Result<TensorMap> tensor_map(const TensorShape& shape) const;

 private:
  friend class Module;
  friend class DeviceMemory;
  friend class SharedMemory;
  friend class Graph;
  Device() = default;
  std::shared_ptr<const DriverFunctions> driver_;
  int number_ = 0, handle_ = 0, capability_ = 0, multiprocessors_ = 0, version_ = 0;
  int64_t shared_bytes_ = 0;
  void* context_ = nullptr;
  std::string name_;

  Status describe();
};

}  // namespace tilepilot::runtime::cuda
