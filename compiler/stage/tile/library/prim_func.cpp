#include "compiler/stage/tile/library/prim_func.h"

#include <fmt/format.h>

#include "compiler/ir/text/text.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/buffers/declarations.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/macro.h"
#include "compiler/stage/tile/kernel/staging.h"
#include "compiler/stage/tile/library/dtypes.h"

namespace tilepilot::stage {
namespace {

// A parameter's annotation as a parameter of the program, and the value that the body sees.
Result<Value> declare_parameter(TileContext& context, ProgramBuilder& builder, Declarations& declarations,
                                const FunctionObject& function, size_t i) {
  const syntax::Parameter& parameter = (*function.parameters)[i];
  std::string name = parameter.name.str();
  const std::optional<Value>& annotation = function.annotations[i];
  bool says_nothing = !annotation || annotation->get_if<TensorSpecMaker>();
  if (says_nothing && annotates_in_body(function, i))
    return declarations.add_tensor(context, parameter.name, std::nullopt, parameter.span);
  if (says_nothing)
    return make_error(
        DiagnosticKind::invalid_jit, parameter.span,
        fmt::format("the parameter `{}` of `{}` does not say what it is", name, function.name.text()),
        fmt::format("annotate it, as in `{}: T.Tensor((M, N), \"float16\")` or `{}: T.int32`", name, name));
  if (auto* spec = annotation->get_if<TensorSpec>()) {
    auto object = std::make_shared<BufferObject>(context, declare_buffer(*spec, name, parameter.span));
    object->named = true;
    builder.add_parameter(object->buffer);
    return Value(std::move(object));
  }
  const ir::DType type = TRY(resolve_dtype(context, *annotation, parameter.span));
  ir::Var scalar = ir::make_var(name, type);
  builder.add_parameter(scalar);
  return make_expr(context, ir::var_ref(scalar, parameter.span));
}

Error no_kernel(const FunctionObject& function) {
  return make_error(DiagnosticKind::invalid_jit, function.span,
                    fmt::format("`{}` has no `with T.Kernel(...)`", function.name.text()),
                    "the work of a program is done in the kernels it launches");
}

}  // namespace

Result<std::shared_ptr<PrimFuncObject>> trace_prim_func(const ContextRef& context, FunctionObject& function,
                                                        Span span) {
  ProgramBuilder builder(function.name.str(), function.span);
  std::vector<Value> parameters;
  Declarations declarations(false);
  for (size_t i = 0; i < function.parameters->size(); ++i)
    parameters.push_back(TRY(declare_parameter(*context, builder, declarations, function, i)));
  TRY(builder.check_parameters());
  Tracer tracer(*context, builder);
  TileContext::TraceGuard tracing(*context, &builder, &declarations);
  Interpreter::StagingGuard staging(context->interpreter, &tracer);
  Value result = TRY(tracer.finish(context->interpreter.run_function(function, std::move(parameters), span)));
  if (!result.is_none() && declarations.outputs.empty())
    return make_error(DiagnosticKind::invalid_jit, function.span,
                      fmt::format("the tile program `{}` returns a value", function.name.text()),
                      "a `T.prim_func` writes its results into parameters, or makes them with `T.empty`");
  if (builder.program().kernels.empty()) return no_kernel(function);
  ir::Program program = std::move(builder.program());
  declarations.sort_parameters(program, function);
  std::vector<size_t> outputs = TRY(declarations.returned_outputs(program, result, function.span));
  return std::make_shared<PrimFuncObject>(context->finished(std::move(program)), std::move(outputs));
}

Result<Value> PrimFuncObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (name.text() == "__name__") return Value(program.name);
  if (name.text() == "script")
    return Value(std::make_shared<BuiltinFunction>(
        "script", [text = ir::to_text(program)](Interpreter&, CallArgs&) { return Result<Value>(Value(text)); }));
  return Object::get_attribute(interpreter, name, span);
}

Result<Value> PrimFuncObject::call(Interpreter&, CallArgs args) {
  return make_error(DiagnosticKind::invalid_jit, args.span,
                    fmt::format("the tile program `{}` is not compiled and cannot be called", program.name),
                    "decorate it with `@tilelang.jit(out_idx=[-1])`, or call `tilelang.compile(func, out_idx=[-1])`");
}

Result<std::string> PrimFuncObject::repr(Interpreter&) { return ir::to_text(program); }

Value make_decorator(std::string name, std::function<Result<Value>(const Value&, Span)> decorate) {
  auto apply = [decorate](Interpreter&, CallArgs& args) -> Result<Value> {
    return decorate(args.positional.empty() ? Value() : args.positional[0], args.span);
  };
  auto body = [name, apply](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    if (!args.positional.empty()) return apply(interpreter, args);
    return Value(std::make_shared<BuiltinFunction>(name, apply));
  };
  return std::make_shared<BuiltinFunction>(name, std::move(body));
}

void add_function_decorators(const ContextRef& context, ModuleObject& language) {
  auto needs_function = [](std::string_view decorator, Span span) {
    return make_error(DiagnosticKind::invalid_jit, span, fmt::format("`{}` decorates functions", decorator));
  };
  language.set("prim_func", make_decorator("T.prim_func", [=](const Value& value, Span span) -> Result<Value> {
                 auto* function = value.get_if<FunctionObject>();
                 if (!function || !function->definition) return needs_function("T.prim_func", span);
                 return Value(TRY(trace_prim_func(context, *function, span)));
               }));
  language.set("macro", make_decorator("T.macro", [=](const Value& value, Span span) -> Result<Value> {
                 auto function = value.get_shared<FunctionObject>();
                 if (!function) return needs_function("T.macro", span);
                 return Value(std::make_shared<MacroObject>(*context, std::move(function)));
               }));
}

}  // namespace tilepilot::stage
