// Shared libraries made for a test: a CUDA driver or an NVRTC that does what the test wants, on machines without
// either.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "compiler/runtime/process.h"

namespace tilepilot::testing {

// Compiles C++ text to folder/name.
inline std::filesystem::path fake_library(const std::filesystem::path& folder, const std::string& name,
                                          const std::string& source) {
  const std::filesystem::path text = folder / (name + ".cpp"), library = folder / name;
  std::ofstream(text) << source;
  const auto made =
      runtime::run_process({"c++", "-shared", "-fPIC", "-O0", "-w", "-o", library.string(), text.string()});
  EXPECT_TRUE(made.ok() && made->exit_code == 0) << (made.ok() ? made->err : made.error().message);
  return library;
}

// A driver of one H200, in which everything succeeds except that waiting for a stream answers `wait_status`. One block
// of a launch fits each multiprocessor; of these, groups of 18 and 12 can have clusters.
inline std::string fake_driver_source(int version = 13000, int wait_status = 0, int capability = 90) {
  std::string text = R"(
#ifndef DEVICES
#define DEVICES 1
#endif
#define SUCCEEDS(name) extern "C" int name() { return 0; }
SUCCEEDS(cuInit) SUCCEEDS(cuDevicePrimaryCtxRetain) SUCCEEDS(cuDevicePrimaryCtxRelease_v2)
SUCCEEDS(cuCtxSetCurrent) SUCCEEDS(cuCtxGetCurrent) SUCCEEDS(cuModuleLoadData) SUCCEEDS(cuModuleUnload)
SUCCEEDS(cuModuleGetFunction) SUCCEEDS(cuFuncSetAttribute) SUCCEEDS(cuFuncGetAttribute)
SUCCEEDS(cuMemFree_v2) SUCCEEDS(cuMemHostAlloc)
SUCCEEDS(cuMemFreeHost) SUCCEEDS(cuMemHostGetDevicePointer_v2) SUCCEEDS(cuMemcpyHtoD_v2) SUCCEEDS(cuMemcpyDtoH_v2)
SUCCEEDS(cuTensorMapEncodeTiled)
)"
                     R"(
// Memory that processes share is a memory file; what cuMemCreate gives is a descriptor of it, plus one.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
typedef unsigned long long u64;
static const u64 kGranularity = 2 << 20;
extern "C" int cuMemGetInfo_v2(u64* free, u64* all) { *free = 100ull << 30; *all = 140ull << 30; return 0; }
extern "C" int cuMemGetAllocationGranularity(u64* unit, const void*, int) { *unit = kGranularity; return 0; }
extern "C" int cuMemCreate(u64* handle, u64 bytes, const int* properties, u64) {
  if (bytes > 1000000000000ull) return 2;
  if (bytes % kGranularity || properties[0] != 1 || properties[1] != 1) return 1;
  const int file = memfd_create("fake device memory", MFD_CLOEXEC);
  *handle = (u64)file + 1;
  return ftruncate(file, (off_t)bytes) == 0 ? 0 : 2;
}
extern "C" int cuMemRelease(u64 handle) { return close((int)handle - 1) == 0 ? 0 : 1; }
extern "C" int cuMemExportToShareableHandle(int* file, u64 handle, int, u64) { *file = dup((int)handle - 1); return 0; }
extern "C" int cuMemImportFromShareableHandle(u64* handle, void* file, int) {
  const int own = dup((int)(long)file);
  *handle = (u64)own + 1;
  return own < 0 ? 1 : 0;
}
extern "C" int cuMemAddressReserve(u64* address, u64 bytes, u64, u64, u64) {
  *address = (u64)mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return 0;
}
extern "C" int cuMemMap(u64 address, u64 bytes, u64, u64 handle, u64) {
  struct stat info;
  if (fstat((int)handle - 1, &info) != 0 || (u64)info.st_size < bytes) return 1;
  return mmap((void*)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)handle - 1, 0) == MAP_FAILED;
}
extern "C" int cuMemSetAccess(u64 address, u64 bytes, const int*, u64) { return mprotect((void*)address, bytes, 3); }
extern "C" int cuMemUnmap(u64 address, u64 bytes) {
  return mmap((void*)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
}
extern "C" int cuMemAddressFree(u64 address, u64 bytes) { return munmap((void*)address, bytes); }
struct Configuration { unsigned grid[3], threads[3], shared_bytes; void* stream; int* attributes; unsigned count; };
extern "C" int cuModuleGetGlobal_v2() { return 500; }
extern "C" int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks) { *blocks = 1; return 0; }
extern "C" int cuOccupancyMaxActiveClusters(int* clusters, void*, const Configuration* c) {
  const int* dims = c->attributes + 2;
  if (c->count != 1 || c->attributes[0] != 4 || c->grid[0] != dims[0]) return 1;
  const int blocks = dims[0] * dims[1] * dims[2];
  *clusters = 6 * (18 / blocks) + 2 * (12 / blocks);
  return 0;
}
extern "C" int cuLaunchKernelEx(const Configuration* c, void*, void**, void**) { return c->threads[0] > 1024 ? 1 : 0; }
extern "C" int cuMemAlloc_v2(unsigned long long* address, unsigned long long bytes) {
  *address = 4096;
  return bytes > 1000000000000ull ? 2 : 0;
}
extern "C" int cuDriverGetVersion(int* version) { *version = VERSION; return 0; }
extern "C" int cuDeviceGet(int* device, int number) { *device = number; return 0; }
extern "C" int cuDeviceGetCount(int* count) { *count = DEVICES; return 0; }
extern "C" int cuDeviceGetName(char* name, int, int) { for (const char* c = "NVIDIA H200"; *c; ++c) *name++ = *c; return 0; }
extern "C" int cuDeviceGetPCIBusId(char* id, int, int) { for (const char* c = "0000:1b:00.0"; *c; ++c) *id++ = *c; return 0; }
extern "C" int cuDeviceGetUuid_v2(unsigned char* id, int device) {
  for (int i = 0; i < 16; ++i) id[i] = i;
  id[15] = device;
  return 0;
}
extern "C" int cuDeviceGetAttribute(int* value, int which, int) {
  *value = which == 75 ? CAPABILITY / 10 : which == 76 ? CAPABILITY % 10 : which == 97 ? 232448 : 132;
  return 0;
}
// Any stream can be captured but the default one; what goes into stream 13 cannot be.
extern "C" int cuStreamBeginCapture_v2(void* stream, int mode) { return mode == 2 && stream ? 0 : 1; }
extern "C" int cuStreamEndCapture(void* stream, void** graph) {
  *graph = stream == (void*)13 ? 0 : (void*)1;
  return *graph ? 0 : 901;
}
extern "C" int cuGraphInstantiateWithFlags(void** executable, void* graph, u64) { *executable = graph; return 0; }
extern "C" int cuGraphLaunch(void* executable, void*) { return executable ? WAIT_STATUS : 1; }
SUCCEEDS(cuGraphDestroy) SUCCEEDS(cuGraphExecDestroy)
extern "C" int cuStreamSynchronize() { return WAIT_STATUS; }
extern "C" int cuGetErrorName(int status, const char** name) {
  *name = status == 1 ? "CUDA_ERROR_INVALID_VALUE" : status == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : status == 901 ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" : "CUDA_ERROR_NOT_FOUND";
  return 0;
}
extern "C" int cuGetErrorString(int status, const char** text) {
  *text = status == 1 ? "invalid argument" : status == 719 ? "unspecified launch failure" : "named symbol not found";
  return 0;
}
)";
  return "#define VERSION " + std::to_string(version) + "\n#define WAIT_STATUS " + std::to_string(wait_status) +
         "\n#define CAPABILITY " + std::to_string(capability) + text;
}

// An NVML that knows one H200 on the bus at 0000:1b:00.0, which is hot and limited by its power.
inline std::string fake_nvml_source() {
  return R"(
extern "C" int nvmlInit_v2() { return 0; }
extern "C" int nvmlShutdown() { return 0; }
extern "C" int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = (void*)1; return index == 0 ? 0 : 2; }
extern "C" int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  *device = (void*)1;
  for (const char* known = "0000:1b:00.0"; *known; ++known, ++id)
    if (*known != *id) return 6;
  return 0;
}
extern "C" int nvmlDeviceGetClockInfo(void*, int kind, unsigned* mhz) { *mhz = kind == 1 ? 1980 : 3201; return 0; }
extern "C" int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { *milliwatts = 523500; return 0; }
extern "C" int nvmlDeviceGetTemperature(void*, int, unsigned* degrees) { *degrees = 41; return 0; }
extern "C" int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) { *reasons = 4; return 0; }
)";
}

// An NVRTC of this version that is no compiler: it fails, or what it makes is the same for every text.
inline std::string fake_nvrtc_source(int major, int minor, bool compiles = false) {
  const std::string status = compiles ? "0" : "1";
  return "#define STATUS " + status + "\n" +
         "extern \"C\" int nvrtcVersion(int* major, int* minor) { *major = " + std::to_string(major) +
         "; *minor = " + std::to_string(minor) + R"(; return 0; }
#define ANSWERS(name) extern "C" int name() { return STATUS; }
ANSWERS(nvrtcCreateProgram) ANSWERS(nvrtcDestroyProgram) ANSWERS(nvrtcCompileProgram)
#define MAKES(name) extern "C" int name(void*, char* text) { *text = 'x'; return STATUS; }
#define OF_SIZE(name) extern "C" int name(void*, unsigned long* size) { *size = 1; return STATUS; }
OF_SIZE(nvrtcGetProgramLogSize) MAKES(nvrtcGetProgramLog) OF_SIZE(nvrtcGetPTXSize) MAKES(nvrtcGetPTX)
OF_SIZE(nvrtcGetCUBINSize) MAKES(nvrtcGetCUBIN)
extern "C" const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_OUT_OF_MEMORY"; }
)";
}

}  // namespace tilepilot::testing
