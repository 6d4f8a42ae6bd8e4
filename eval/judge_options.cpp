// Which options a judge can keep: they come from a command line, from a certificate, or from another program.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "eval/judge.h"

namespace tilepilot::eval {
namespace {

struct NumberOption {
  std::string_view name;
  double value, least, most;
};

struct NameOption {
  std::string_view name, value;
  std::initializer_list<std::string_view> allowed;
};

}  // namespace

Status check_options(const JudgeOptions& options) {
  const NumberOption ranges[] = {{"trials", static_cast<double>(options.trials), 1, 1000},
                                 {"time_limit_s", options.time_limit_s, 0.001, 1e6},
                                 {"memory_limit_bytes", static_cast<double>(options.memory_limit_bytes), 0, 1e15},
                                 {"timing_samples", static_cast<double>(options.timing_samples), 1, 1e5},
                                 {"timing_budget_s", options.timing_budget_s, 0, 1e5},
                                 {"compile_limit_s", options.compile_limit_s, 0.001, 1e6},
                                 {"threads", static_cast<double>(options.threads), 0, 4096}};
  for (const NumberOption& range : ranges) {
    if (range.value >= range.least && range.value <= range.most) continue;
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("no judge keeps `{}` of {}: it is between {} and {}", range.name, range.value,
                                  range.least, range.most));
  }
  const NameOption choices[] = {{"dtype", options.dtype, {"model", "fp32", "fp16", "bf16"}},
                                {"precision", options.precision, {"", "fp16", "bf16"}},
                                {"aten", options.aten, {"none", "data", "hybrid", "any"}}};
  for (const NameOption& choice : choices) {
    if (std::find(choice.allowed.begin(), choice.allowed.end(), choice.value) != choice.allowed.end()) continue;
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("no judge knows `{}` as `{}`", choice.value, choice.name));
  }
  return {};
}

}  // namespace tilepilot::eval
