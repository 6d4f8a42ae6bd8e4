// What a GPU says of itself while it works: clocks, power, temperature, and what holds the clocks down. Read through
// NVML, which is opened at run time; nothing is ever set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

// Why the clocks are not as high as they could be: NVML's bits.
enum ClockReason : uint64_t {
  kGpuIdle = 0x1,
  kApplicationClocks = 0x2,
  kSwPowerCap = 0x4,
  kHwSlowdown = 0x8,
  kSyncBoost = 0x10,
  kSwThermalSlowdown = 0x20,
  kHwThermalSlowdown = 0x40,
  kHwPowerBrake = 0x80,
  kDisplayClocks = 0x100,
};
constexpr uint64_t kPowerOrHeat = kSwPowerCap | kHwSlowdown | kSwThermalSlowdown | kHwThermalSlowdown | kHwPowerBrake;

// "sw_power_cap", ..., in the order of the bits; bits without a name are left out.
std::vector<std::string> names_of_reasons(uint64_t reasons);

// Some GPUs, and parts of a GPU, do not tell everything.
struct GpuSample {
  std::optional<int> sm_mhz, mem_mhz, temperature;  // degrees Celsius
  std::optional<double> power_w;
  uint64_t reasons = 0;
};

class GpuMonitor {
 public:
  virtual ~GpuMonitor() = default;
  virtual GpuSample sample() = 0;
};

struct NvmlOptions {
  std::filesystem::path library;  // NVML itself; empty: wherever the system has libnvidia-ml.so.1
  std::string bus_id;             // of the GPU; empty: the first that NVML counts
};
// Errors: driver_missing.
Result<std::unique_ptr<GpuMonitor>> open_nvml(const NvmlOptions& options = {});

}  // namespace tilepilot::runtime::cuda
