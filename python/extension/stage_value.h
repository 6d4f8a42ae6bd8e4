// Names and values of the tile language as objects of Python: what Python does with one, the evaluator does.
#pragma once

#include <nanobind/nanobind.h>

namespace tilepilot::package {

void add_stage_value(nanobind::module_& module);

}  // namespace tilepilot::package
