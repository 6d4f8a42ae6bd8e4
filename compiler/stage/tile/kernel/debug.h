// Checks of run-time values.
#pragma once

#include <string>

#include "compiler/stage/tile/kernel/builder.h"

namespace tilepilot::stage {

// The launch fails with the message where the condition does not hold.
Status emit_check(ProgramBuilder& builder, const Value& condition, const std::string& message, Span span);

}  // namespace tilepilot::stage
