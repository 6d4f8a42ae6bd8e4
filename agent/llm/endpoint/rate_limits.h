// What the headers of a response say of limits: when the next request may be sent.
#pragma once

#include <optional>
#include <string_view>

#include "agent/llm/endpoint/http.h"

namespace tilepilot::agent {

// Seconds until the endpoint takes another request; nullopt: it does not say. Of a response that was refused: after
// `retry-after-ms`, `Retry-After` (seconds or a date), or the resets below. Of any: until the reset of a limit of which
// nothing is left (OpenAI's `x-ratelimit-remaining-requests` and `-tokens` with durations such as "6m0s", Anthropic's
// `anthropic-ratelimit-...-remaining` with moments in RFC 3339). `now`: seconds since 1970, UTC.
std::optional<double> wait_told(const HttpResponse& response, double now);

// "6m0s", "1.5s", "20ms", "1h2m": seconds; nullopt: no duration.
std::optional<double> parse_duration(std::string_view text);

}  // namespace tilepilot::agent
