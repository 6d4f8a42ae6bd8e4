#include "eval/torch/gpu.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <link.h>

#include <string_view>

#include "compiler/runtime/cuda/nvrtc.h"

namespace tilepilot::eval {
namespace {

// Versions of LibTorch name it differently, or lack it; then nothing leaves the default stream, which is null.
template <typename AnyStream>
void* handle_of(const AnyStream& stream) {
  if constexpr (requires { stream.native_handle(); })
    return stream.native_handle();
  else if constexpr (requires { stream.stream_handle(); })
    return stream.stream_handle();
  else
    return nullptr;
}

c10::impl::VirtualGuardImpl cuda_guard() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA); }

}  // namespace

bool libtorch_has_cuda() { return at::globalContext().hasCUDART(); }

bool libtorch_sees_gpu() { return at::globalContext().hasCUDA(); }

c10::Device gpu_device() {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  return {c10::DeviceType::CUDA, 0};
}

runtime::cuda::Stream current_stream() {
  const auto guard = cuda_guard();
  return handle_of(guard.getStream(guard.getDevice()));
}

OtherStream::OtherStream()
    : before_([] {
        synchronize_gpu();
        const auto guard = cuda_guard();
        return guard.exchangeStream(guard.getStreamFromGlobalPool(guard.getDevice()));
      }()) {}

OtherStream::~OtherStream() {
  cuda_guard().exchangeStream(before_);
  try {
    synchronize_gpu();
  } catch (const std::exception&) {}  // told where the GPU is asked for something next
}

void synchronize_gpu() { cuda_guard().synchronizeDevice(0); }

namespace {

constexpr size_t kOfAllPools = 0;  // of the allocator's statistics

}  // namespace

int64_t gpu_memory_taken() {
  return c10::getDeviceAllocator(c10::DeviceType::CUDA)->getDeviceStats(0).reserved_bytes[kOfAllPools].current;
}

void release_unused_gpu_memory(int64_t idle) {
  auto* allocator = c10::getDeviceAllocator(c10::DeviceType::CUDA);
  if (idle > 0) {
    const auto stats = allocator->getDeviceStats(0);
    if (stats.reserved_bytes[kOfAllPools].current - stats.allocated_bytes[kOfAllPools].current <= idle) return;
  }
  allocator->emptyCache();
}

std::filesystem::path libtorch_packages() {
  std::filesystem::path library;  // .../site-packages/torch/lib/libtorch_cpu.so
  dl_iterate_phdr(
      [](dl_phdr_info* loaded, size_t, void* found) {
        const std::filesystem::path path(loaded->dlpi_name);
        if (path.filename() == "libtorch_cpu.so") *static_cast<std::filesystem::path*>(found) = path;
        return 0;
      },
      &library);
  const std::filesystem::path torch = library.parent_path().parent_path();
  return torch.filename() == "torch" ? torch.parent_path() : std::filesystem::path();
}

std::vector<std::filesystem::path> cuda_folders_beside_libtorch() {
  auto folders = runtime::cuda::default_cuda_folders();
  if (const auto packages = libtorch_packages(); !packages.empty()) folders.insert(folders.begin(), packages);
  return folders;
}

}  // namespace tilepilot::eval
