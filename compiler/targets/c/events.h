// What a launch tells its caller: checks that fail, lines of text.
#pragma once

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::c {

// Ends the launch where a region reaches out of a tile.
void check_inside(Context& context, const ir::Region& region);
void emit_check(Context& context, const ir::Check& check, Span span);
void emit_print(Context& context, const ir::Print& print);
// The arguments of printf for it.
std::string print_arguments(Context& context, const ir::Print& print);

}  // namespace tilepilot::targets::c
