// A verdict in words, for people, and as JSON, for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "eval/judge.h"

namespace tilepilot::cli {

// "verified", "verified for these inputs only", "verified, but degenerate", or the outcome's name.
std::string state_of(const eval::Verdict& verdict);

// "2.97x (95 % interval 2.91 to 3.02)".
std::string speedup_text(const eval::Verdict& verdict);

// "verified, 812.4 us against 2410.0 us of eager: 2.97x", or what went wrong and where.
std::string one_line(const eval::Verdict& verdict);

// Everything a person wants to see of a checked candidate, several lines.
std::string full_text(const eval::Verdict& verdict);

// The verdict as JSON; each span of a diagnostic has its line and column in `source`, the candidate, beside its bytes.
nlohmann::json verdict_json(const eval::Verdict& verdict, const std::string& source);

}  // namespace tilepilot::cli
