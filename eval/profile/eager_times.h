// What eager spends where, as measured: how long a call of the model takes, node by node of its graph. Plain data.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "eval/judge.h"

namespace tilepilot::eval {

struct EagerTimes {
  Timing call;
  std::vector<double> node_us;  // by node of the forward graph: the first quartile of the calls
  // For how much of a second threads waited for a processor: with others at work, times are longer than on a free
  // machine.
  double waited = 0;
  static constexpr double kBusy = 0.15;  // from here on that is told
};

nlohmann::json to_json(const EagerTimes& times);
// May throw what nlohmann::json throws on another shape.
EagerTimes eager_times_from_json(const nlohmann::json& node);

}  // namespace tilepilot::eval
