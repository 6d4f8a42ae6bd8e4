// Parts of a profile as JSON, which records of calls have too. All of the second kind may throw what nlohmann::json
// throws on another shape.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "eval/profile/profile.h"

namespace tilepilot::eval {

nlohmann::json timing_to_json(const Timing& timing);
Timing timing_from_json(const nlohmann::json& node);
nlohmann::json work_to_json(const KernelWork& work);
KernelWork work_from_json(const nlohmann::json& node);
nlohmann::json gpu_to_json(const GpuUse& gpu);
GpuUse gpu_from_json(const nlohmann::json& node);
nlohmann::json cpu_to_json(const CpuUse& cpu);
CpuUse cpu_from_json(const nlohmann::json& node);
nlohmann::json choices_to_json(const std::vector<Choice>& choices);
std::vector<Choice> choices_from_json(const nlohmann::json& list);

}  // namespace tilepilot::eval
