// Where kernels run, as `--target` names it. Plain data: what is behind a name, this machine may lack.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime {

enum class Place {
  automatic,  // a GPU if there is one and all that it needs, else the processor
  cpu,
  emulator,  // the code for a GPU, on the processor
  gpu,
};

struct Target {
  Place place = Place::cpu;
  std::string architecture;  // "sm_80" or "sm_90a"; empty of the first two
};

// The names of all targets: auto, cpu, cuda:sm_80, cuda:sm_90a, emulate:sm_80, emulate:sm_90a.
std::span<const std::string_view> target_names();
// Errors: bad_usage, with what another GPU would need.
Result<Target> parse_target(std::string_view name);
// As parse_target reads it.
std::string to_string(const Target& target);

}  // namespace tilepilot::runtime
