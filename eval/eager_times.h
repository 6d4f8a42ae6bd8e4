// What eager spends where, as measured: how long a call of the model takes, node by node of its graph. Plain data.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "eval/judge.h"

namespace tilepilot::eval {

struct EagerTimes {
  Timing call;
  std::vector<double> node_us;  // of a call, by node of the forward graph
};

nlohmann::json to_json(const EagerTimes& times);
// May throw what nlohmann::json throws on another shape.
EagerTimes eager_times_from_json(const nlohmann::json& node);

}  // namespace tilepilot::eval
