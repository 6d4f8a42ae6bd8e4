// The functions of libcuda that we call, by their types (cuda.h of CUDA 12 and 13, whose numbers these are).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

constexpr int kDriverSuccess = 0, kDriverOutOfMemory = 2;

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kThreadsOfMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedBytesOfBlock = 97,  // with opting in
};
enum FunctionAttribute : int {
  kStaticSharedBytes = 1,
  kLocalBytes = 3,
  kRegisterCount = 4,
  kDynamicSharedBytes = 8,
};

struct LaunchAttribute {
  enum Kind : int { cooperative = 2, cluster = 4 };
  int kind = 0, padding = 0;
  union {
    char bytes[64];
    int flag;
    uint32_t cluster_shape[3];
  } value = {};
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfiguration {
  uint32_t grid[3], threads[3], shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};
static_assert(sizeof(LaunchConfiguration) == 56);

struct MemoryLocation {  // CUmemLocation
  enum Kind : int { device = 1 };
  int kind = device, number = 0;
};
struct AllocationProperties {  // CUmemAllocationProp, of memory that stays on a device
  int kind = 1, handle_types = 0;
  MemoryLocation location;
  void* metadata = nullptr;
  uint8_t flags[8] = {};
};
static_assert(sizeof(AllocationProperties) == 32);
struct MemoryAccess {  // CUmemAccessDesc
  enum Kind : int { read_and_write = 3 };
  MemoryLocation location;
  int kind = read_and_write;
};

struct DriverFunctions {
  // Errors: driver_missing. An empty path: wherever the system has libcuda.so.1.
  static Result<std::shared_ptr<const DriverFunctions>> open(const std::filesystem::path& path);
  ~DriverFunctions();

  // A diagnostic of what `call` answered, which was not success.
  Error failed(const char* call, int status, DiagnosticKind kind = DiagnosticKind::device_failed) const;
  Status check(const char* call, int status) const;

  int (*initialise)(unsigned);
  int (*version)(int*);
  int (*error_name)(int, const char**);
  int (*error_text)(int, const char**);
  int (*device_count)(int*);
  int (*device_get)(int*, int ordinal);
  int (*device_name)(char*, int size, int device);
  int (*device_attribute)(int*, int attribute, int device);
  int (*bus_id)(char*, int size, int device);
  int (*uuid)(unsigned char[16], int device);
  int (*retain_context)(void**, int device);
  int (*release_context)(int device);
  int (*set_context)(void*);
  int (*get_context)(void**);
  int (*load_module)(void**, const void* image);
  int (*unload_module)(void*);
  int (*get_function)(void**, void* module, const char* name);
  int (*get_variable)(uint64_t*, size_t*, void* module, const char* name);
  int (*set_function_attribute)(void*, int attribute, int value);
  int (*get_function_attribute)(int*, int attribute, void*);
  int (*launch)(const LaunchConfiguration*, void* function, void** parameters, void** extra);
  int (*resident_blocks)(int*, void* function, int threads, size_t shared_bytes);
  int (*resident_clusters)(int*, void* function, const LaunchConfiguration*);
  int (*memory)(size_t* free, size_t* all);
  int (*allocate)(uint64_t*, size_t);
  int (*release)(uint64_t);
  int (*allocate_host)(void**, size_t, unsigned flags);
  int (*release_host)(void*);
  int (*address_of_host)(uint64_t*, void*, unsigned flags);
  int (*granularity)(size_t*, const AllocationProperties*, int minimum_or_recommended);
  int (*create_allocation)(uint64_t*, size_t, const AllocationProperties*, uint64_t flags);
  int (*release_allocation)(uint64_t);
  int (*export_allocation)(void* handle, uint64_t, int handle_type, uint64_t flags);
  int (*import_allocation)(uint64_t*, void* handle, int handle_type);
  int (*reserve_addresses)(uint64_t*, size_t, size_t alignment, uint64_t wanted, uint64_t flags);
  int (*free_addresses)(uint64_t, size_t);
  int (*map)(uint64_t, size_t, size_t offset, uint64_t allocation, uint64_t flags);
  int (*unmap)(uint64_t, size_t);
  int (*set_access)(uint64_t, size_t, const MemoryAccess*, size_t count);
  int (*write)(uint64_t, const void*, size_t);
  int (*read)(void*, uint64_t, size_t);
  int (*wait)(void* stream);
  int (*begin_capture)(void* stream, int mode);
  int (*end_capture)(void* stream, void** graph);
  int (*instantiate_graph)(void** executable, void* graph, unsigned long long flags);
  int (*launch_graph)(void* executable, void* stream);
  int (*destroy_graph)(void* graph);
  int (*destroy_executable)(void* executable);
  int (*encode_map)(void* map, int type, uint32_t rank, void* data, const uint64_t* extents, const uint64_t* strides,
                    const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int promotion, int fill);

 private:
  void* library_ = nullptr;
};

}  // namespace tilepilot::runtime::cuda
