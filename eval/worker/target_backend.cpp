#include "eval/worker/target_backend.h"

#include <fmt/format.h>

#include "compiler/emulator/backend.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/cuda_kernel.h"
#include "compiler/untrusted/compiler_socket.h"
#include "eval/torch/gpu.h"

namespace tilepilot::eval {
namespace {

using runtime::Place;
using runtime::Target;

runtime::ToolchainOptions toolchain_with(const TargetOptions& given) {
  if (given.compiler_socket) return {untrusted::compiler_at_socket(*given.compiler_socket), {}, {}};
  return {.compiler = {}, .cache = given.cache, .extra_flags = {}};
}

TargetBackend on_processor(const TargetOptions& given) {
  return {runtime::cpu_backend(toolchain_with(given)), nullptr, {Place::cpu, ""}};
}

// All that a GPU needs, in the order in which a user would install it.
Result<TargetBackend> on_gpu(const std::string& architecture, const TargetOptions& given) {
  std::shared_ptr<const runtime::cuda::Device> gpu = TRY(runtime::cuda::Device::open());
  const std::string best = TRY(runtime::cuda::architecture_of(gpu->capability()));
  if (!architecture.empty()) TRY(runtime::cuda::check_runs(architecture, gpu->capability()));
  if (!libtorch_sees_gpu())
    return make_error(DiagnosticKind::worker_unavailable, {},
                      libtorch_has_cuda() ? "LibTorch sees no GPU, although the driver has one"
                                          : "the LibTorch of this build has no CUDA: its tensors cannot be on the GPU",
                      "build against a PyTorch with CUDA, of a version that this driver is new enough for");
  runtime::cuda::CudaOptions options;
  if (given.compiler_socket)
    options.nvrtc.library = untrusted::compiler_at_socket(*given.compiler_socket);
  else
    options.nvrtc = nvrtc_options(given.cache);
  options.sources = given.sources;
  options.architecture = architecture;
  options.stream = current_stream;
  if (!given.compiler_socket) TRY(runtime::cuda::Nvrtc(options.nvrtc).version());
  return TargetBackend{runtime::cuda::cuda_backend(std::move(options)),
                       std::move(gpu),
                       {Place::gpu, architecture.empty() ? best : architecture}};
}

}  // namespace

runtime::cuda::NvrtcOptions nvrtc_options(const std::filesystem::path& cache) {
  runtime::cuda::NvrtcOptions options;
  options.folders = runtime::cuda::default_cuda_folders();
  if (const auto packages = libtorch_packages(); !packages.empty())
    options.folders.insert(options.folders.begin(), packages);
  options.cache = cache;
  return options;
}

Result<TargetBackend> open_target(const Target& target, const TargetOptions& options) {
  switch (target.place) {
    case Place::cpu:
      return on_processor(options);
    case Place::gpu:
      return on_gpu(target.architecture, options);
    case Place::emulator: {
      using targets::gpu::Architecture;
      const bool hopper = target.architecture == "sm_90a";
      return TargetBackend{
          emulator::emulator_backend(
              hopper ? Architecture::sm_90a : Architecture::sm_80,
              {.toolchain = toolchain_with(options), .checks = {}, .sources = options.sources, .costs = options.costs}),
          nullptr, target};
    }
    case Place::automatic:
      break;
  }
  // The driver is asked only where LibTorch could use what it has.
  if (libtorch_has_cuda()) {
    if (auto gpu = on_gpu("", options); gpu.ok()) return gpu;
  }
  return on_processor(options);
}

}  // namespace tilepilot::eval
