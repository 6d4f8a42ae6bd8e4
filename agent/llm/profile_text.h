// Where the time of a verified program's call goes, part by part, and what could be gained where: for a language model.
#pragma once

#include <string>
#include <vector>

#include "agent/llm/prompt.h"
#include "eval/profile/profile.h"

namespace tilepilot::agent {

// At most about sixty lines. What kernels take of the machine, and what the compiler could not do, are parts that can
// be left out. `least_s`: the roofline of the whole model; 0: not known.
// @pre verdict.profile
std::vector<PromptPart> profile_parts(const eval::Verdict& verdict, double least_s);
// The times alone, at most fifteen lines.
std::string profile_rows(const eval::Profile& profile);

}  // namespace tilepilot::agent
