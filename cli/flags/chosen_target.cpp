#include "cli/flags/chosen_target.h"

#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::cli {

runtime::Target chosen_target(const runtime::Target& target) {
  if (target.place != runtime::Place::automatic) return target;
  auto gpu = runtime::cuda::Device::open();
  if (!gpu.ok()) return {runtime::Place::cpu, ""};
  auto architecture = runtime::cuda::architecture_of((*gpu)->capability());
  return architecture.ok() ? runtime::Target{runtime::Place::gpu, *architecture}
                           : runtime::Target{runtime::Place::cpu, ""};
}

}  // namespace tilepilot::cli
