#include "compiler/targets/gpu/machine/machine.h"

#include <algorithm>

namespace tilepilot::targets::gpu {

const Machine& machine_of(Architecture architecture) {
  static const Machine kA100{.name = "A100",
                             .target = "sm_80",
                             .compute_capability = 80,
                             .multiprocessors = 108,
                             .block_shared_bytes = 163 << 10,
                             .shared_bytes = 164 << 10,
                             .cache_bytes = 40 << 20,
                             .clock = 1.3e9,
                             .memory_rate = 1.75e12,
                             .cache_rate = 36,
                             .half_rate = 2048,
                             .float_rate = 128,
                             .latency = 700,
                             .barrier_cycles = 60};
  // Clock, rate from L2 and cycles of barriers make the model agree with measurements: GEMMs of 8192 x 8192 with tiles
  // of 128 x 256 x 64 at 674 TFLOP/s and of 128 x 128 x 32 at 474, copies at 4.25 TB/s.
  static const Machine kH200{.name = "H200",
                             .target = "sm_90a",
                             .compute_capability = 90,
                             .has_wgmma = true,
                             .has_tma = true,
                             .has_stmatrix = true,
                             .has_clusters = true,
                             .adds_vectors = true,
                             .reallocates_registers = true,
                             .multiprocessors = 132,
                             .block_shared_bytes = 227 << 10,
                             .shared_bytes = 228 << 10,
                             .cache_bytes = 50 << 20,
                             .clock = 1.5e9,
                             .memory_rate = 4.25e12,
                             .cache_rate = 64,
                             .half_rate = 4096,
                             .float_rate = 256,
                             .latency = 900,
                             .barrier_cycles = 150};
  return architecture == Architecture::sm_80 ? kA100 : kH200;
}

int64_t registers_of_thread(int64_t threads) {
  return std::min(kMostRegistersOfThread, kRegistersOfBlock / threads / kRegisterUnit * kRegisterUnit);
}

bool has_room_for_parts(int64_t held, int64_t parts, int64_t threads) {
  constexpr int64_t kAddresses = 28;
  return held + parts + kAddresses <= registers_of_thread(threads);
}

}  // namespace tilepilot::targets::gpu
