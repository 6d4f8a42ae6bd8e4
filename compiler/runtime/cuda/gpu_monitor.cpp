#include "compiler/runtime/cuda/gpu_monitor.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tilepilot::runtime::cuda {
namespace {

constexpr int kNvmlSuccess = 0;
constexpr const char* kNvmlName = "libnvidia-ml.so.1";
enum NvmlClock : int { kSmClock = 1, kMemoryClock = 2 };
constexpr int kDieTemperature = 0;

constexpr std::pair<ClockReason, const char*> kReasons[] = {
    {kGpuIdle, "gpu_idle"},
    {kApplicationClocks, "application_clocks"},
    {kSwPowerCap, "sw_power_cap"},
    {kHwSlowdown, "hw_slowdown"},
    {kSyncBoost, "sync_boost"},
    {kSwThermalSlowdown, "sw_thermal_slowdown"},
    {kHwThermalSlowdown, "hw_thermal_slowdown"},
    {kHwPowerBrake, "hw_power_brake"},
    {kDisplayClocks, "display_clocks"},
};

Error no_nvml(const std::string& message) {
  return make_error(DiagnosticKind::driver_missing, {}, message, "NVML comes with NVIDIA's driver");
}

// The functions of NVML that we call (nvml.h of CUDA 12 and 13). None of them changes anything.
class Nvml final : public GpuMonitor {
 public:
  static Result<std::unique_ptr<GpuMonitor>> open(const NvmlOptions& options) {
    const std::string name = options.library.empty() ? kNvmlName : options.library.string();
    auto nvml = std::make_unique<Nvml>();
    nvml->library_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (nvml->library_ == nullptr) return no_nvml("NVML was not found");
    if (const char* lacking = nvml->link()) return no_nvml(fmt::format("`{}` lacks `{}`", name, lacking));
    if (const int status = nvml->initialise_(); status != kNvmlSuccess)
      return no_nvml(fmt::format("NVML does not start: error {}", status));
    nvml->runs_ = true;
    const int status = options.bus_id.empty() ? nvml->by_index_(0, &nvml->device_)
                                              : nvml->by_bus_id_(options.bus_id.c_str(), &nvml->device_);
    if (status != kNvmlSuccess)
      return no_nvml(fmt::format("NVML does not know the GPU {}: error {}",
                                 options.bus_id.empty() ? "0" : options.bus_id, status));
    return std::unique_ptr<GpuMonitor>(std::move(nvml));
  }

  ~Nvml() override {
    if (runs_) shut_down_();
    if (library_ != nullptr) ::dlclose(library_);
  }

  GpuSample sample() override {
    GpuSample sample;
    unsigned value = 0;
    if (clock_(device_, kSmClock, &value) == kNvmlSuccess) sample.sm_mhz = static_cast<int>(value);
    if (clock_(device_, kMemoryClock, &value) == kNvmlSuccess) sample.mem_mhz = static_cast<int>(value);
    if (power_(device_, &value) == kNvmlSuccess) sample.power_w = value * 1e-3;
    if (temperature_(device_, kDieTemperature, &value) == kNvmlSuccess) sample.temperature = static_cast<int>(value);
    unsigned long long reasons = 0;
    if (reasons_ != nullptr && reasons_(device_, &reasons) == kNvmlSuccess) sample.reasons = reasons;
    return sample;
  }

 private:
  // The name of what is lacking, or null.
  const char* link() {
    const char* lacking = nullptr;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library_, name));
      return function != nullptr;
    };
    const auto need = [&](const char* name, auto& function) {
      if (!find(name, function) && lacking == nullptr) lacking = name;
    };
    need("nvmlInit_v2", initialise_);
    need("nvmlShutdown", shut_down_);
    need("nvmlDeviceGetHandleByIndex_v2", by_index_);
    need("nvmlDeviceGetHandleByPciBusId_v2", by_bus_id_);
    need("nvmlDeviceGetClockInfo", clock_);
    need("nvmlDeviceGetPowerUsage", power_);
    need("nvmlDeviceGetTemperature", temperature_);
    // Drivers from 535 on have the new name; the old one may go.
    if (!find("nvmlDeviceGetCurrentClocksEventReasons", reasons_))
      find("nvmlDeviceGetCurrentClocksThrottleReasons", reasons_);
    return lacking;
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
  bool runs_ = false;
  int (*initialise_)() = nullptr;
  int (*shut_down_)() = nullptr;
  int (*by_index_)(unsigned, void**) = nullptr;
  int (*by_bus_id_)(const char*, void**) = nullptr;
  int (*clock_)(void*, int kind, unsigned*) = nullptr;
  int (*power_)(void*, unsigned* milliwatts) = nullptr;
  int (*temperature_)(void*, int sensor, unsigned*) = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
};

}  // namespace

std::vector<std::string> names_of_reasons(uint64_t reasons) {
  std::vector<std::string> names;
  for (auto& [reason, name] : kReasons)
    if ((reasons & reason) != 0) names.emplace_back(name);
  return names;
}

Result<std::unique_ptr<GpuMonitor>> open_nvml(const NvmlOptions& options) { return Nvml::open(options); }

}  // namespace tilepilot::runtime::cuda
