// What eager spends where, measured on this machine: for what a language model is told before its first attempt. Kept
// in the cache, so that a model is measured once, and what is told does not change from one request to the next.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "eval/graph/preflight.h"
#include "eval/profile/eager_times.h"

namespace tilepilot::agent {

// A call that takes longer by the rates of the machine is not measured: that would cost more than it tells.
inline constexpr double kLongestEagerCall = 2;

struct EagerQuestion {
  const eval::Reference& reference;
  const eval::Preflight& preflight;
  std::string target;  // not `auto`
  eval::JudgeOptions judge;
};
// nullopt: they are not known; `progress` was told why. `measure` is called where the cache has nothing.
std::optional<eval::EagerTimes> eager_times(const EagerQuestion& question,
                                            const std::function<Result<eval::EagerTimes>()>& measure,
                                            const std::function<void(const std::string&)>& progress);

}  // namespace tilepilot::agent
