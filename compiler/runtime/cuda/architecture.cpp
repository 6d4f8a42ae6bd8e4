#include <fmt/format.h>

#include "compiler/runtime/cuda/architecture.h"

namespace tilepilot::runtime::cuda {

std::string_view what_is_lacking(int capability) {
  if (capability < 80)
    return "it lacks the asynchronous copies and the tensor-core instructions that the kernels are made of";
  if (capability >= 100 && capability < 120)
    return "its tensor cores are used through `tcgen05` and tensor memory, for which there is no code generation yet";
  if (capability >= 120)
    return "it takes neither the code of `sm_80` nor that of `sm_90a`, and needs a target of its own";
  return "its code generation is not written yet";
}

Result<std::string> architecture_of(int capability) {
  if (capability == 90) return "sm_90a";
  if (capability >= 80 && capability < 90) return "sm_80";
  return make_error(DiagnosticKind::driver_missing, {},
                    fmt::format("no target for a GPU of compute capability {}.{}: {}", capability / 10, capability % 10,
                                what_is_lacking(capability)),
                    std::string(kTargets));
}

Status check_runs(const std::string& architecture, int capability) {
  if (architecture == TRY(architecture_of(capability)) || (architecture == "sm_80" && capability == 90)) return {};
  return make_error(DiagnosticKind::driver_missing, {},
                    fmt::format("the GPU has compute capability {}.{}, which cannot run `cuda:{}`", capability / 10,
                                capability % 10, architecture));
}

}  // namespace tilepilot::runtime::cuda
