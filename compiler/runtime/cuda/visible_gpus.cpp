#include "compiler/runtime/cuda/visible_gpus.h"

#include <fmt/format.h>

#include "compiler/runtime/cuda/driver_functions.h"

namespace tilepilot::runtime::cuda {
namespace {

// As nvidia-smi writes it.
std::string uuid_text(const unsigned char (&bytes)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
  return text;
}

}  // namespace

std::vector<VisibleGpu> visible_gpus(const std::filesystem::path& library) {
  const auto driver = DriverFunctions::open(library);
  if (!driver) return {};
  const DriverFunctions& call = **driver;
  int count = 0;
  if (call.device_count(&count) != kDriverSuccess) return {};
  std::vector<VisibleGpu> gpus;
  for (int number = 0; number < count; ++number) {
    int handle = 0;
    unsigned char uuid[16] = {};
    char name[256] = {};
    if (call.device_get(&handle, number) != kDriverSuccess || call.uuid(uuid, handle) != kDriverSuccess ||
        call.device_name(name, sizeof(name) - 1, handle) != kDriverSuccess)
      return {};
    gpus.push_back({uuid_text(uuid), name});
  }
  return gpus;
}

}  // namespace tilepilot::runtime::cuda
