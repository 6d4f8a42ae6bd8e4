// What earlier runs have learnt (retrieval/lessons.h), as a language model is told it.
#pragma once

#include <string>
#include <vector>

#include "retrieval/lessons.h"

namespace tilepilot::agent {

// Changes after which programs that had failed alike were verified. Empty: there are none.
std::string fixes_text(const std::vector<retrieval::Fix>& fixes);
// Changes that made verified programs faster, each with its measurement. Empty: there are none.
std::string lessons_text(const std::vector<retrieval::Lesson>& lessons);

}  // namespace tilepilot::agent
