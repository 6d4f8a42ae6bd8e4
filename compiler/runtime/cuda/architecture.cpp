#include <fmt/format.h>

#include "compiler/runtime/cuda/architecture.h"

namespace tilepilot::runtime::cuda {

Result<std::string> architecture_of(int capability) {
  if (capability == 90) return "sm_90a";
  if (capability >= 80 && capability < 90) return "sm_80";
  const char* needed = "its code generation is not written yet";
  if (capability < 80)
    needed = "it lacks the asynchronous copies and the tensor-core instructions that the kernels are made of";
  else if (capability >= 100 && capability < 120)
    needed = "its tensor cores are used through `tcgen05` and tensor memory, for which there is no code generation yet";
  else if (capability >= 120)
    needed = "it takes neither the code of `sm_80` nor that of `sm_90a`, and needs a target of its own";
  return make_error(
      DiagnosticKind::driver_missing, {},
      fmt::format("no target for a GPU of compute capability {}.{}: {}", capability / 10, capability % 10, needed),
      "the targets are `cuda:sm_80`, for 8.0 to 8.9, and `cuda:sm_90a`, for 9.0");
}

Status check_runs(const std::string& architecture, int capability) {
  if (architecture == TRY(architecture_of(capability)) || (architecture == "sm_80" && capability == 90)) return {};
  return make_error(DiagnosticKind::driver_missing, {},
                    fmt::format("the GPU has compute capability {}.{}, which cannot run `cuda:{}`", capability / 10,
                                capability % 10, architecture));
}

}  // namespace tilepilot::runtime::cuda
