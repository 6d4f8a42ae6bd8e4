// The operators of list, dict, set and str as methods: `__len__`, `__getitem__`, `__add__`, `__eq__`, ...
#pragma once

#include "compiler/stage/python/objects/classes.h"

namespace tilepilot::stage {

void add_protocol_methods(ClassObject& built_in);

}  // namespace tilepilot::stage
