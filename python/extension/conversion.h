// Values of Python as values of the evaluator, and back. Numbers, strings, tuples, lists and dicts are copied;
// functions and names of the language are what they are there; everything else stays an object of Python
// (python_object.h).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "compiler/stage/python/objects/value.h"

namespace tilepilot::package {

namespace nb = nanobind;

// Containers that are deeper in others stay Python's, as those have to that are in themselves.
inline constexpr int kDeepestContainer = 8;

stage::Value to_value(nb::handle object);
nb::object to_python(const stage::Value& value);

stage::CallArgs to_arguments(const nb::args& args, const nb::kwargs& kwargs, Span span);

// A value of the evaluator that Python holds.
struct StageValue {
  stage::Value value;
};

}  // namespace tilepilot::package
