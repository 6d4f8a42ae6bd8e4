#include "compiler/runtime/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>

namespace tilepilot::runtime {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

std::string processor_identity() {
  constexpr std::array<std::string_view, 8> kFields = {"vendor_id", "cpu family", "model",           "flags",
                                                       "Features",  "CPU part",   "CPU implementer", "isa"};
  std::ifstream file("/proc/cpuinfo");
  std::string identity, line;
  while (std::getline(file, line) && !line.empty()) {  // the first processor
    const std::string_view name = std::string_view(line).substr(0, line.find_first_of("\t:"));
    for (const std::string_view field : kFields)
      if (name == field) identity += line + "\n";
  }
  return identity;
}

std::string file_identity(const std::filesystem::path& path) {
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(path, code);
  const auto size = std::filesystem::file_size(real, code);
  const auto time = std::filesystem::last_write_time(real, code).time_since_epoch().count();
  return fmt::format("{} {} {}", real.string(), size, time);
}

}  // namespace tilepilot::runtime
