// Contexts written in C++ that learn of the error that ends the body of their `with`, as `__exit__` does.
#pragma once

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

struct NativeContext final : TypedObject<NativeContext> {
  static constexpr Type kType{"context manager"};
  Result<Value> enter(Interpreter& interpreter, Span span) override { return on_enter(interpreter, span); }
  Status exit(Interpreter& interpreter, Span span) override { return on_exit ? on_exit(interpreter, span) : Status(); }

  // As a decorator: the function runs in a fresh context each time.
  Result<Value> call(Interpreter&, CallArgs args) override;

  std::function<Result<Value>(Interpreter&, Span)> on_enter;
  std::function<Status(Interpreter&, Span)> on_exit;  // after a body without error; may be null
  // After one with an error that can be caught: true if it goes no further. Null: as `on_exit`, and it goes on.
  std::function<Result<bool>(Interpreter&, Diagnostic& error, Span)> on_error;
  std::function<Result<Value>(Interpreter&)> remake;  // null: it is no decorator
};

}  // namespace tilepilot::stage
