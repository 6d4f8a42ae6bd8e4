#include "eval/torch/gpu_memory_limit.h"

#include <dlfcn.h>

#include <mutex>
#include <unordered_map>

namespace {

constexpr int kOutOfMemory = 2, kNoDevice = 100;  // cudaErrorMemoryAllocation, cudaErrorNoDevice

// Of the process: CUDA's runtime knows no other.
struct Account {
  std::mutex mutex;  // guards what follows
  int64_t limit = 0, held = 0;
  std::optional<tilepilot::eval::RefusedGpuMemory> refused;
  std::unordered_map<void*, int64_t> sizes;
};

Account& account() {
  static auto* instance = new Account;  // tensors may outlive static objects
  return *instance;
}

// The one that CUDA's runtime has; null: it is not there.
template <class Function>
Function* of_runtime(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int cudaMalloc(void** address, size_t bytes) {
  auto* take = of_runtime<int(void**, size_t)>("cudaMalloc");
  if (!take) return kNoDevice;
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  const auto size = static_cast<int64_t>(bytes);
  if (all.limit > 0 && (size < 0 || size > all.limit - all.held)) {
    all.refused = {size, all.held, all.limit};
    return kOutOfMemory;
  }
  const int status = take(address, bytes);
  if (status != 0) return status;
  all.held += size;
  all.sizes[*address] = size;
  all.refused.reset();
  return status;
}

extern "C" int cudaFree(void* address) {
  auto* give_back = of_runtime<int(void*)>("cudaFree");
  if (!give_back) return kNoDevice;
  Account& all = account();
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.sizes.find(address);
    if (found != all.sizes.end()) {
      all.held -= found->second;
      all.sizes.erase(found);
    }
  }
  return give_back(address);
}

namespace tilepilot::eval {

void limit_gpu_memory(int64_t bytes) {
  const std::lock_guard lock(account().mutex);
  account().limit = bytes;
}

std::optional<RefusedGpuMemory> refused_gpu_memory() {
  const std::lock_guard lock(account().mutex);
  return account().refused;
}

}  // namespace tilepilot::eval
