// Where the time of a verified program's call goes, part by part, and what could be gained where: for a language model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/llm/prompt.h"
#include "eval/profile/profile.h"

namespace tilepilot::agent {

// What the machine's rates say of the model.
struct ModelTimes {
  double least_s = 0;                      // the roofline of all of it; 0: not known
  std::map<std::string, double> products;  // eval::product_times
};

// At most about sixty lines. What kernels take of the machine, and what the compiler could not do, are parts that can
// be left out.
// @pre verdict.profile
std::vector<PromptPart> profile_parts(const eval::Verdict& verdict, const ModelTimes& model);
// The times alone, at most fifteen lines.
std::string profile_rows(const eval::Profile& profile, const ModelTimes& model);

}  // namespace tilepilot::agent
