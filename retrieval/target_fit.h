// Whether what was verified for one target runs on another, and how much it teaches there.
#pragma once

#include <string>
#include <string_view>

namespace tilepilot::retrieval {

// What a program asks of a target beyond what all have, by the functions that it names: "clusters" (shared memory of
// several blocks), "foreign" (device source of its own); several with spaces between them, or empty.
std::string target_needs(const std::string& source);

// 1: the same target, or an empty one, which is any. Less: another machine of its kind; still less: another kind of
// machine, for which tile sizes and layouts say little. 0: it cannot run there.
double target_fit(std::string_view verified_for, std::string_view needs, std::string_view target);

}  // namespace tilepilot::retrieval
