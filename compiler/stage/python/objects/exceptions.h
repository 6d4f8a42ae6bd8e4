// Python's exceptions and our errors: an error on its way up carries the exception object that `except` binds, or gets
// one made for its kind (key_error is a KeyError).
#pragma once

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

// False for the errors that a program must not hide: spent budgets and forbidden acts.
bool is_catchable(DiagnosticKind kind);
// The name of the built-in exception class that errors of this kind are, for `except`.
std::string_view exception_class_of(DiagnosticKind kind);

ObjectRef make_exception(Interpreter& interpreter, std::string_view class_name, std::vector<Value> args);
// The exception object of an error.
Value exception_of(Interpreter& interpreter, Diagnostic& error);
// The error that raises an exception object.
Error error_of(Interpreter& interpreter, const Value& exception, Span span);
bool is_exception(Interpreter& interpreter, const Value& value);
// True if the error is an exception of that built-in class, such as StopIteration.
bool is_raised(Interpreter& interpreter, const Diagnostic& error, std::string_view class_name);

}  // namespace tilepilot::stage
