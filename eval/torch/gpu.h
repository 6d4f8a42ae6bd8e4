// LibTorch's GPU, through interfaces that LibTorch without CUDA has too, so that one source builds with both.
#pragma once

#include <filesystem>

#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::eval {

// This LibTorch was built with CUDA.
bool libtorch_has_cuda();
// It sees a GPU too.
bool libtorch_sees_gpu();
// Where LibTorch launches its own operators in this thread. @pre libtorch_sees_gpu()
runtime::cuda::Stream current_stream();
// Waits until the GPU has done all that it was given; throws what LibTorch throws if it failed. @pre
// libtorch_sees_gpu()
void synchronize_gpu();
// The folder of Python packages that this LibTorch lies in, with those that it brings; empty if it lies elsewhere.
std::filesystem::path libtorch_packages();

}  // namespace tilepilot::eval
