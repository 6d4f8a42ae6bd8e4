#include "compiler/interpret/fault.h"

namespace tilepilot::interpret {

std::string_view to_string(FaultKind kind) {
  static constexpr std::string_view names[] = {"bad_arguments", "outside_tile",    "uninitialised",  "undefined_cast",
                                               "threads_part",  "threads_differ",  "deadlock",       "check_failed",
                                               "race",          "budget_exceeded", "not_interpreted"};
  return names[static_cast<size_t>(kind)];
}

}  // namespace tilepilot::interpret
