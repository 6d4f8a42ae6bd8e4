#include "eval/profile/eager_times.h"

#include <nlohmann/json.hpp>

#include "eval/profile/profile_json.h"

namespace tilepilot::eval {

nlohmann::json to_json(const EagerTimes& times) {
  return {{"call", timing_to_json(times.call)}, {"node_us", times.node_us}, {"waited", times.waited}};
}

EagerTimes eager_times_from_json(const nlohmann::json& node) {
  return {timing_from_json(node.at("call")), node.at("node_us").get<std::vector<double>>(), node.at("waited")};
}

}  // namespace tilepilot::eval
