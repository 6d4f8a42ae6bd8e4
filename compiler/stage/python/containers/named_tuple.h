// Named tuples, made by collections.namedtuple or by deriving from typing.NamedTuple.
#pragma once

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

// Lets calls of the class make tuples with named items; `defaults` are for the last of them.
void make_named_tuple(const std::shared_ptr<ClassObject>& class_object, std::vector<Name> names,
                      std::vector<Value> defaults);

}  // namespace tilepilot::stage
