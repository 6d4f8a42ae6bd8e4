// What timed samples come to.
#pragma once

#include <utility>
#include <vector>

#include "eval/judge.h"

namespace tilepilot::eval {

double median(std::vector<double> samples);
Timing timing_of(std::vector<double> seconds);
// The 95 % confidence interval of the ratio of the medians, by bootstrap over rounds: sample i of both was taken in one
// round. Of fewer than six rounds, the least and the greatest ratio of a round.
std::pair<double, double> ratio_interval(const std::vector<double>& above, const std::vector<double>& below);

}  // namespace tilepilot::eval
