#include "compiler/targets/cuda/prelude.h"

namespace tilepilot::embedded {
extern const char tilepilot_cuda_types[], tilepilot_cuda_math[], tilepilot_cuda_division[], tilepilot_cuda_memory[],
    tilepilot_cuda_threads[], tilepilot_cuda_atomics[], tilepilot_cuda_matrix[], tilepilot_cuda_hopper[];
}  // namespace tilepilot::embedded

namespace tilepilot::targets::cuda {

const std::string& prelude() {
  static const std::string text = std::string(embedded::tilepilot_cuda_types) + embedded::tilepilot_cuda_math +
                                  embedded::tilepilot_cuda_division + embedded::tilepilot_cuda_memory +
                                  embedded::tilepilot_cuda_threads + embedded::tilepilot_cuda_atomics +
                                  embedded::tilepilot_cuda_matrix + embedded::tilepilot_cuda_hopper;
  return text;
}

}  // namespace tilepilot::targets::cuda
