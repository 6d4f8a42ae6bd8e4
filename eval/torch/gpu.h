// LibTorch's GPU, through interfaces that LibTorch without CUDA has too, so that one source builds with both.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <filesystem>
#include <vector>

#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::eval {

// This LibTorch was built with CUDA.
bool libtorch_has_cuda();
// It sees a GPU too.
bool libtorch_sees_gpu();
// The GPU as LibTorch's tensors name it, ready for them. @pre libtorch_sees_gpu()
c10::Device gpu_device();
// Where LibTorch launches its own operators in this thread. @pre libtorch_sees_gpu()
runtime::cuda::Stream current_stream();
// While it lives, this thread launches LibTorch's operators on another stream than the default one. What was launched
// before is waited for, and so is this stream's work at the end. @pre libtorch_sees_gpu()
class OtherStream {
 public:
  OtherStream();
  ~OtherStream();
  OtherStream(const OtherStream&) = delete;

 private:
  c10::Stream before_;
};
// Waits until the GPU has done all that it was given; throws what LibTorch throws if it failed. @pre
// libtorch_sees_gpu()
void synchronize_gpu();
// Bytes of the GPU that LibTorch has taken in this process, for tensors and to keep for others. @pre
// libtorch_sees_gpu()
int64_t gpu_memory_taken();
// Memory that LibTorch keeps for tensors to come goes back to the GPU, where other processes can have it. @pre
// libtorch_sees_gpu(). Unless it is no more than `idle` bytes: taking memory again takes time.
void release_unused_gpu_memory(int64_t idle = 0);
// The folder of Python packages that this LibTorch lies in, with those that it brings; empty if it lies elsewhere.
std::filesystem::path libtorch_packages();
// Where NVRTC may be: there first.
std::vector<std::filesystem::path> cuda_folders_beside_libtorch();

}  // namespace tilepilot::eval
