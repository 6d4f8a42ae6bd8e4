// How often a test with random inputs repeats. Under the sanitizers, which slow an unoptimised build down twentyfold,
// a twentieth as often: they look for faults of memory, and the plain build has compared the values.
#pragma once

#include <cstdlib>

namespace tilepilot {

constexpr int rounds(int count) {
#ifdef TILEPILOT_SANITIZED
  return (count + 19) / 20;
#else
  return count;
#endif
}

// How many steps a random program may take before it is left out. Under the sanitizers far fewer: the long ones do
// more of the same.
constexpr int steps(int count) {
#ifdef TILEPILOT_SANITIZED
  return count / 100;
#else
  return count;
#endif
}

// A number that who runs the test asks for.
inline int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

}  // namespace tilepilot
