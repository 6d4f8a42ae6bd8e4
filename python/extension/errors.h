// Our diagnostics as Python's exceptions and warnings, and exceptions of Python code that the evaluator called as
// diagnostics.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::package {

namespace nb = nanobind;

// Raises the exception of tilepilot/errors.py for the diagnostic, with carets.
[[noreturn]] void raise(const Diagnostic& diagnostic);
// An error that has no place in a program.
[[noreturn]] void raise(DiagnosticKind kind, std::string_view message, std::string_view hint = {});

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}
inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}

// Python's exception as an error of the tile program at `span`.
Error error_of(nb::python_error& exception, Span span);

// The warnings since the last call, through Python's `warnings`.
void tell_warnings();

}  // namespace tilepilot::package
