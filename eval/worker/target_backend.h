// The backend behind a target, and what it needs of this machine.
#pragma once

#include <filesystem>
#include <memory>

#include "compiler/emulator/report/report.h"
#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/runtime/kernel.h"
#include "compiler/runtime/target.h"

namespace tilepilot::eval {

struct TargetBackend {
  std::unique_ptr<runtime::KernelBackend> kernels;
  std::shared_ptr<const runtime::cuda::Device> gpu;  // where tensors live; null: the processor's memory
  runtime::Target target;                            // what was opened: none of `auto`
};

struct TargetOptions {
  std::filesystem::path cache;                          // of compiled kernels
  const SourceMap* sources = nullptr;                   // that programs' spans point into; outlives the backend
  std::shared_ptr<emulator::CostBook> costs = nullptr;  // gets what launches in the emulator cost
  std::optional<int> compiler_socket = std::nullopt;    // compiles in place of this process (compiler_socket.h)
};

// Where NVRTC is looked for: beside LibTorch first.
runtime::cuda::NvrtcOptions nvrtc_options(const std::filesystem::path& cache);

// Errors: driver_missing, nvrtc_missing, worker_unavailable (a LibTorch without CUDA).
Result<TargetBackend> open_target(const runtime::Target& target, const TargetOptions& options);

}  // namespace tilepilot::eval
