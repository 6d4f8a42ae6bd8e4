// A function of Python as one that our evaluator runs: its tree comes from its source, its defaults and annotations
// from the function object, and what its names outside refer to from its closure and its globals, when it comes to
// them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "compiler/stage/python/objects/classes.h"

namespace tilepilot::package {

namespace nb = nanobind;

// Null if Python must call it: it is no function with a source that our parser reads, such as a built-in, a lambda, a
// class, a bound method or a decorated function.
Result<std::shared_ptr<stage::FunctionObject>> function_from_source(nb::handle function, Span span);

// The same for the function that a decorator of the language gets, where anything else is an error.
Result<std::shared_ptr<stage::FunctionObject>> decorated_function(nb::handle function);

// What a name outside of a function refers to now. Invalid: nothing.
nb::object outer_object(nb::handle function, nb::handle name);

}  // namespace tilepilot::package
