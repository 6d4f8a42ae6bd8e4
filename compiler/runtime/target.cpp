#include "compiler/runtime/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "compiler/runtime/cuda/architecture.h"

namespace tilepilot::runtime {

std::span<const std::string_view> target_names() {
  static constexpr std::string_view kNames[] = {"auto",        "cpu",           "cuda:sm_80",
                                                "cuda:sm_90a", "emulate:sm_80", "emulate:sm_90a"};
  return kNames;
}

Result<Target> parse_target(std::string_view name) {
  if (name == "auto") return Target{Place::automatic, ""};
  if (name == "cpu") return Target{Place::cpu, ""};
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  if (colon == std::string_view::npos || (kind != "cuda" && kind != "emulate"))
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("there is no target `{}`", name),
                      fmt::format("one of {}", fmt::join(target_names(), ", ")));
  std::string_view architecture = name.substr(colon + 1);
  // The emulator of what another target names.
  if (kind == "emulate" && architecture.starts_with("cuda:")) architecture.remove_prefix(5);
  if (architecture == "sm_80" || architecture == "sm_90a")
    return Target{kind == "cuda" ? Place::gpu : Place::emulator, std::string(architecture)};
  std::string message = fmt::format("no code is written for `{}`", name);
  int capability = 0;
  const std::string_view number = architecture.substr(std::min<size_t>(3, architecture.size()));
  const bool is_number =
      architecture.starts_with("sm_") && std::from_chars(number.begin(), number.end(), capability).ec == std::errc();
  if (is_number) {
    const auto runs = cuda::architecture_of(capability);
    message += runs ? fmt::format(": such a GPU runs that of `{}:{}`", kind, *runs)
                    : fmt::format(": {}", cuda::what_is_lacking(capability));
  }
  return make_error(DiagnosticKind::bad_usage, {}, std::move(message), std::string(cuda::kTargets));
}

std::string to_string(const Target& target) {
  switch (target.place) {
    case Place::automatic:
      return "auto";
    case Place::cpu:
      return "cpu";
    case Place::emulator:
      return "emulate:" + target.architecture;
    case Place::gpu:
      return "cuda:" + target.architecture;
  }
  return "";
}

}  // namespace tilepilot::runtime
