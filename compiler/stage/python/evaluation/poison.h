// What a name is bound to when the statement that defines it failed and the trace of a kernel goes on, to find more
// errors: reading it fails in turn, and that failure is not reported.
#pragma once

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

struct PoisonObject final : TypedObject<PoisonObject> {
  static constexpr Type kType{"undefined"};
};

Error poisoned(Span span);
bool is_poisoned(const Diagnostic& error);

// The names that a statement would bind, those of its parts included.
std::vector<Name> names_bound_by(const syntax::Stmt& statement);

}  // namespace tilepilot::stage
