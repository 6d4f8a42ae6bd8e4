// A verdict in words, for people.
#pragma once

#include <string>

#include "eval/judge.h"

namespace tilepilot::cli {

// "verified", "verified, but degenerate", or the outcome's name.
std::string state_of(const eval::Verdict& verdict);

// "verified, 812.4 us against 2410.0 us of eager: 2.97x", or what went wrong and where.
std::string one_line(const eval::Verdict& verdict);

// Everything a person wants to see of a checked candidate, several lines.
std::string full_text(const eval::Verdict& verdict);

}  // namespace tilepilot::cli
