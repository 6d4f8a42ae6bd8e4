#include "agent/llm/endpoint/rate_limits.h"

#include <curl/curl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

namespace tilepilot::agent {
namespace {

std::optional<double> parse_number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size() || !(value >= 0 && value < 1e9)) return std::nullopt;
  return value;
}

// "2025-01-31T12:00:00Z", or an HTTP date.
std::optional<double> parse_moment(std::string_view text) {
  const std::string copy(text);
  struct tm fields = {};
  if (const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &fields); rest != nullptr)
    return static_cast<double>(timegm(&fields));
  const time_t date = curl_getdate(copy.c_str(), nullptr);
  return date < 0 ? std::nullopt : std::optional(static_cast<double>(date));
}

struct Limit {
  const char* remaining;
  const char* reset;
};
constexpr std::array kLimits = {
    Limit{"x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"},
    Limit{"x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"},
    Limit{"anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"},
    Limit{"anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"},
    Limit{"anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"},
    Limit{"anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"},
};

// Until a moment, or for a duration, or for so many seconds.
std::optional<double> wait_for(std::string_view text, double now) {
  if (auto duration = parse_duration(text)) return duration;
  if (auto seconds = parse_number(text)) return seconds;
  if (auto moment = parse_moment(text)) return std::max(*moment - now, 0.0);
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_duration(std::string_view text) {
  double seconds = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const size_t unit = text.find_first_not_of("0123456789.");
    if (unit == std::string_view::npos || unit == 0) return std::nullopt;
    const auto number = parse_number(text.substr(0, unit));
    const size_t end = std::min(text.find_first_of("0123456789.", unit), text.size());
    const std::string_view name = text.substr(unit, end - unit);
    const double scale = name == "ms"  ? 1e-3
                         : name == "s" ? 1
                         : name == "m" ? 60
                         : name == "h" ? 3600
                         : name == "d" ? 86400
                                       : 0;
    if (!number || scale == 0) return std::nullopt;
    seconds += *number * scale;
    text.remove_prefix(end);
  }
  return seconds;
}

std::optional<double> wait_told(const HttpResponse& response, double now) {
  std::optional<double> wait;
  for (const Limit& limit : kLimits) {
    if (parse_number(response.header(limit.remaining)) != 0.0) continue;
    if (const auto until = wait_for(response.header(limit.reset), now)) wait = std::max(wait.value_or(0), *until);
  }
  if (response.status == 200) return wait;
  if (const auto milliseconds = parse_number(response.header("retry-after-ms"))) return *milliseconds / 1000;
  if (const auto seconds = wait_for(response.header("retry-after"), now)) return seconds;
  return wait;
}

}  // namespace tilepilot::agent
