// What other programs get of this one's environment: no more than they need, and the key of a language model never.
#pragma once

#include <string>
#include <vector>

namespace tilepilot::untrusted {

enum class EnvironmentOf {
  workers,    // tilepilot-worker and what it starts: names from a list
  compilers,  // names from a shorter list
  the_user,   // Python that runs the user's own model, scripts: all but the key
};

// "NAME=value", of this process's environment.
std::vector<std::string> environment_of(EnvironmentOf kind);

}  // namespace tilepilot::untrusted
