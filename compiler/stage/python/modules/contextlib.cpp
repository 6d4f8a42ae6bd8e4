// The module `contextlib`: contexts made of generator functions, and the small ready ones.
#include "compiler/stage/python/evaluation/generator.h"
#include "compiler/stage/python/modules/contexts.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

using Generator = std::shared_ptr<GeneratorObject>;

// Runs `function` as the body of a `with`.
Result<Value> run_inside(Interpreter& interpreter, NativeContext& context, const Value& function, CallArgs args) {
  const Span span = args.span;
  TRY(context.on_enter(interpreter, span));
  auto result = interpreter.call(function, std::move(args));
  if (result.ok() || !context.on_error || !is_catchable(result.error().kind)) {
    Status left = context.exit(interpreter, span);
    if (result.ok() && !left.ok()) return std::move(left).take_error();
    return result;
  }
  Error error = std::move(result).take_error();
  if (TRY(context.on_error(interpreter, *error, span))) return Value();
  return error;
}

Result<Value> begin(const Generator& generator, Interpreter& interpreter, Span span) {
  if (std::optional<Value> item = TRY(generator->run->resume({}, span))) return *std::move(item);
  return interpreter.raise("RuntimeError", "generator didn't yield", span);
}

Status finish(const Generator& generator, Interpreter& interpreter, Span span) {
  if (!TRY(generator->run->resume({}, span))) return {};
  return interpreter.raise("RuntimeError", "generator didn't stop", span);
}

// The error is raised at the `yield`: what comes out is it, another one, or nothing.
Result<bool> throw_into(const Generator& generator, Interpreter& interpreter, Diagnostic& error, Span span) {
  exception_of(interpreter, error);  // made now, so that both sides know the same one
  auto outcome = generator->run->resume({{}, make_error(error)}, span);
  if (!outcome.ok()) {
    Error raised = std::move(outcome).take_error();
    if (raised->thrown == error.thrown) return false;
    return raised;
  }
  if (*outcome) return interpreter.raise("RuntimeError", "generator didn't stop after throw()", span);
  return true;
}

Value context_of(Generator generator) {
  auto context = std::make_shared<NativeContext>();
  context->on_enter = [generator](Interpreter& i, Span span) { return begin(generator, i, span); };
  context->on_exit = [generator](Interpreter& i, Span span) { return finish(generator, i, span); };
  context->on_error = [generator](Interpreter& i, Diagnostic& error, Span span) {
    return throw_into(generator, i, error, span);
  };
  return Value(std::move(context));
}

Result<Value> new_context(Interpreter& interpreter, const Value& function, const CallArgs& call) {
  Value made = TRY(interpreter.call(function, call));
  Generator generator = made.get_shared<GeneratorObject>();
  if (!generator) return type_error(call.span, "a context manager function must be a generator function");
  Value context = context_of(std::move(generator));
  context.get_if<NativeContext>()->remake = [function, call](Interpreter& inner) {
    return new_context(inner, function, call);
  };
  return context;
}

// What stands before the function's `yield` is the entry of the context, what stands behind it the exit.
Result<Value> context_manager(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"contextmanager", {"func"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto* function = read[0]->get_if<FunctionObject>();
  return make_method(function ? function->name.str() : "context",
                     [function = *read[0]](Interpreter& interpreter, CallArgs& call) -> Result<Value> {
                       return new_context(interpreter, function, call);
                     });
}

Result<Value> suppress(Interpreter&, CallArgs& args) {
  auto context = std::make_shared<NativeContext>();
  context->on_enter = [](Interpreter&, Span) -> Result<Value> { return Value(); };
  context->on_error = [classes = args.positional](Interpreter& i, Diagnostic& error, Span) -> Result<bool> {
    const auto raised = i.class_of(exception_of(i, error));
    return std::any_of(classes.begin(), classes.end(), [&](const Value& each) {
      auto* wanted = each.get_if<ClassObject>();
      return wanted && raised->is_subclass_of(*wanted);
    });
  };
  return Value(std::move(context));
}

Result<Value> closing(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"closing", {"thing"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto context = std::make_shared<NativeContext>();
  context->on_enter = [thing = *read[0]](Interpreter&, Span) -> Result<Value> { return thing; };
  context->on_exit = [thing = *read[0]](Interpreter& interpreter, Span span) -> Status {
    TRY(interpreter.call_method(thing, Name("close"), CallArgs{{}, {}, span, {}}, span));
    return {};
  };
  return Value(std::move(context));
}

Result<Value> null_context(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"nullcontext", {"enter_result"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto context = std::make_shared<NativeContext>();
  context->on_enter = [value = read[0] ? *read[0] : Value()](Interpreter&, Span) -> Result<Value> { return value; };
  return Value(std::move(context));
}

}  // namespace

Result<Value> NativeContext::call(Interpreter&, CallArgs args) {
  if (!remake || args.positional.size() != 1) return type_error(args.span, "a context manager is entered by `with`");
  auto self = std::static_pointer_cast<NativeContext>(shared_from_this());
  return make_method("context",
                     [self, function = args.positional[0]](Interpreter& interpreter, CallArgs& call) -> Result<Value> {
                       const Value fresh = TRY(self->remake(interpreter));
                       return run_inside(interpreter, *fresh.get_if<NativeContext>(), function, std::move(call));
                     });
}

void fill_contextlib(Interpreter&, ModuleObject& module) {
  module.function("nullcontext", null_context);
  module.function("contextmanager", context_manager);
  module.function("suppress", suppress);
  module.function("closing", closing);
}

}  // namespace tilepilot::stage
