#include "agent/llm/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "agent/llm/processor_facts.h"
#include "compiler/runtime/target.h"
#include "compiler/targets/gpu/estimate/tiles.h"

namespace tilepilot::agent {
namespace {

// The widest vectors that this processor has, in bits; 0: unknown.
int vector_bits() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Features") && line.find("asimd") != std::string::npos) return 128;
    if (!line.starts_with("flags")) continue;
    if (line.find(" avx512f") != std::string::npos) return 512;
    return line.find(" avx") != std::string::npos ? 256 : 128;
  }
  return 0;
}

std::string describe_processor(const eval::MachineRates& rates, int wanted) {
  const int threads = wanted > 0 ? wanted : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const ProcessorFacts facts = processor_facts();
  std::string text = fmt::format("The processor: {}; {} thread{}", rates.name, threads, threads == 1 ? "" : "s");
  if (facts.cores > 0) text += fmt::format(" of a machine with {} core{}", facts.cores, facts.cores == 1 ? "" : "s");
  if (const int bits = vector_bits(); bits > 0) text += fmt::format(", vectors of {} float32", bits / 32);
  const std::string caches = caches_text(facts);
  text += caches.empty() ? fmt::format(", {} MB in the last cache", rates.cache_bytes >> 20) : caches;
  text += fmt::format(
      ". Memory moves {:.3g} GB/s with all threads, products reach at most {:.3g} GFLOP/s, other arithmetic in vectors "
      "{:.3g} GFLOP/s.\n",
      rates.bytes_per_s / 1e9, rates.product_flops / 1e9, rates.vector_flops / 1e9);
  return text;
}

}  // namespace

std::string describe_hardware(const std::string& target, const eval::MachineRates& rates, int threads) {
  const auto parsed = runtime::parse_target(target);
  if (!parsed.ok() || parsed->place != runtime::Place::gpu) return describe_processor(rates, threads);
  using targets::gpu::Architecture;
  const auto gpu =
      targets::gpu::machine_of(parsed->architecture == "sm_90a" ? Architecture::sm_90a : Architecture::sm_80);
  return fmt::format(
      "The GPU ({}), as an {}: {} multiprocessors of 65,536 registers and {} KB of shared memory, of which a block can "
      "have {} KB; {} MB of L2. Memory moves {:.3g} TB/s, products reach at most {:.3g} TFLOP/s in this dtype, other "
      "arithmetic {:.3g} TFLOP/s. A launch takes about {:.1f} us.\n",
      target, gpu.name, gpu.multiprocessors, gpu.shared_bytes >> 10, gpu.block_shared_bytes >> 10,
      gpu.cache_bytes >> 20, rates.bytes_per_s / 1e12, rates.product_flops / 1e12, rates.other_flops / 1e12,
      rates.launch_s * 1e6);
}

}  // namespace tilepilot::agent
