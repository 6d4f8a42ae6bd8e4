#include "compiler/stage/tile/jit.h"

#include <fmt/format.h>

#include "compiler/ir/text.h"
#include "compiler/stage/tile/arguments.h"
#include "compiler/stage/tile/dtypes.h"
#include "compiler/stage/tile/prim_func.h"

namespace tilepilot::stage {
namespace {

Result<std::shared_ptr<JitKernelObject>> make_kernel(const ContextRef& context, const PrimFuncObject& function,
                                                     const Value& out_idx, Span span) {
  std::vector<size_t> outputs = TRY(output_positions(out_idx, function.program, span));
  return std::make_shared<JitKernelObject>(Launcher(context, function.program, std::move(outputs)));
}

// Writes a compile-time argument into a cache key. Objects without a value of their own count by identity.
void append_key(std::string& key, const Value& value, std::vector<Value>& kept) {
  if (auto* text = value.if_string()) {
    key += fmt::format("s{}:{},", text->size(), *text);
  } else if (auto* flag = value.if_bool()) {
    key += *flag ? "T," : "F,";
  } else if (auto* integer = value.if_int()) {
    key += fmt::format("i{},", *integer);
  } else if (auto* real = value.if_float()) {
    key += fmt::format("f{},", *real);
  } else if (auto* dtype = value.get_if<DTypeObject>()) {
    key += ir::to_string(dtype->dtype) + ",";
  } else if (auto* items = sequence_items(value)) {
    key += "(";
    for (const Value& item : *items) append_key(key, item, kept);
    key += ")";
  } else if (auto* object = value.if_object()) {
    key += fmt::format("@{},", static_cast<const void*>(object->get()));
    kept.push_back(value);
  } else {
    key += "N,";
  }
}

// The type of a tensor argument, or of an annotation that stands for one.
std::optional<TensorType> tensor_type(const TileContext& context, const Value& value) {
  if (auto* spec = value.get_if<TensorSpec>()) {
    TensorType type{spec->dtype, {}};
    for (const ir::Expr& extent : spec->shape) {
      auto constant = ir::constant_int(extent);
      if (!constant) return std::nullopt;
      type.shape.push_back(*constant);
    }
    return type;
  }
  if (!context.options.host || !value.if_object()) return std::nullopt;
  auto view = context.options.host->view(value);
  if (!view) return std::nullopt;
  return TensorType{view->type, std::move(view->shape)};
}

Value source_method(Launcher& launcher, std::shared_ptr<Object> owner) {
  return std::make_shared<BuiltinFunction>(
      "get_kernel_source", [&launcher, owner = std::move(owner)](Interpreter&, CallArgs& args) -> Result<Value> {
        return Value(TRY(launcher.source(args.span)));
      });
}

}  // namespace

Result<Value> JitKernelObject::call(Interpreter&, CallArgs args) {
  if (!args.keywords.empty())
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      fmt::format("the kernel `{}` takes its arguments by position", launcher.program().name));
  return launcher.run(args.positional, args.span);
}

Result<Value> JitKernelObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (name.text() == "get_kernel_source") return source_method(launcher, shared_from_this());
  if (name.text() == "prim_func") return Value(std::make_shared<PrimFuncObject>(launcher.program()));
  if (auto found = TRY(script_attribute(interpreter, name, span))) return *std::move(found);
  return Object::get_attribute(interpreter, name, span);
}

Result<JitFunctionObject::Call> JitFunctionObject::sort_out(Interpreter& interpreter, CallArgs args) const {
  Call call;
  call.values = TRY(interpreter.bind_arguments(*function_, std::move(args)));
  for (size_t i = 0; i < call.values.size(); ++i) {
    const Value& value = call.values[i];
    if (!eager_) {
      append_key(call.key, value, call.kept);
    } else if (auto type = tensor_type(*context_, value)) {
      call.only_types = call.only_types || value.get_if<TensorSpec>();
      call.key += fmt::format("t{}[{}],", ir::to_string(type->dtype), describe_extents(type->shape));
      call.tensors.emplace(i, std::move(*type));
      call.inputs.push_back(value);
    } else if (is_scalar_parameter(*function_, i)) {
      call.inputs.push_back(value);
    } else {
      append_key(call.key, value, call.kept);
    }
  }
  return call;
}

Result<std::shared_ptr<JitKernelObject>> JitFunctionObject::kernel_for(Call& call, Span span) {
  auto found = kernels_.find(call.key);
  if (found != kernels_.end()) return found->second;
  auto kernel = eager_ ? TRY(stage_eager(call, span)) : TRY(run_factory(call, span));
  kept_.insert(kept_.end(), call.kept.begin(), call.kept.end());
  kernels_.emplace(call.key, kernel);
  return kernel;
}

Result<std::shared_ptr<JitKernelObject>> JitFunctionObject::run_factory(Call& call, Span span) {
  Value made = TRY(context_->interpreter.run_function(*function_, call.values, span));
  if (auto* program = made.get_if<PrimFuncObject>()) return make_kernel(context_, *program, out_idx_, span);
  if (auto kernel = made.get_shared<JitKernelObject>()) return kernel;
  return make_error(DiagnosticKind::invalid_jit, function_->span,
                    fmt::format("the factory `{}` returns a `{}`", function_->name.text(), made.type_name()),
                    "it must return the `T.prim_func` that it defines");
}

Result<std::shared_ptr<JitKernelObject>> JitFunctionObject::stage_eager(Call& call, Span span) {
  if (!out_idx_.is_none())
    return make_error(
        DiagnosticKind::invalid_jit, function_->span,
        fmt::format("`out_idx` does not apply to `{}`, which is a tile program itself", function_->name.text()),
        "make outputs with `T.empty` and return them");
  EagerProgram program = TRY(trace_eager(context_, *function_, call.values, call.tensors, span));
  return std::make_shared<JitKernelObject>(Launcher(context_, std::move(program.program), std::move(program.outputs)));
}

Result<Value> JitFunctionObject::call(Interpreter& interpreter, CallArgs args) {
  Span span = args.span;
  Call call = TRY(sort_out(interpreter, std::move(args)));
  auto kernel = TRY(kernel_for(call, span));
  if (!eager_ || call.only_types) return Value(std::move(kernel));
  return kernel->launcher.run(call.inputs, span);
}

Result<Value> JitFunctionObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (name.text() == "__name__") return Value(function_->name.text());
  if (name.text() == "func") return Value(function_);
  if (name.text() == "mode") return Value(eager_ ? "eager" : "lazy");
  if (name.text() != "get_kernel_source" && name.text() != "compile")
    return Object::get_attribute(interpreter, name, span);
  bool source = name.text() == "get_kernel_source";
  auto body = [this, source, self = shared_from_this()](Interpreter& run, CallArgs& args) -> Result<Value> {
    Span call_span = args.span;
    Call call = TRY(sort_out(run, std::move(args)));
    auto kernel = TRY(kernel_for(call, call_span));
    if (source) return Value(TRY(kernel->launcher.source(call_span)));
    return Value(std::move(kernel));
  };
  return Value(std::make_shared<BuiltinFunction>(name.str(), std::move(body)));
}

namespace {

Result<Value> decorate(const ContextRef& context, const Value& decorated, const Value& out_idx, Span span) {
  if (auto* program = decorated.get_if<PrimFuncObject>())
    return Value(TRY(make_kernel(context, *program, out_idx, span)));
  if (auto function = decorated.get_shared<FunctionObject>(); function && function->definition)
    return Value(std::make_shared<JitFunctionObject>(context, std::move(function), out_idx));
  return make_error(DiagnosticKind::invalid_jit, span,
                    fmt::format("`tilelang.jit` cannot decorate a `{}`", decorated.type_name()),
                    "it decorates a `T.prim_func`, a factory that returns one, or a function with `T.Kernel` inside");
}

constexpr std::string_view kJitParameters =
    "func=, out_idx=, target=, target_host=, execution_backend=, verbose=, pass_configs=, debug_root_path=, "
    "compile_flags=";

// `@tilelang.jit`, `@tilelang.jit(out_idx=[-1], ...)`. The backend of this process stands in for `target`.
BuiltinFunction::Body jit_body(const ContextRef& context) {
  return [context, signature = TileSignature(kJitParameters)](Interpreter&, CallArgs& call) -> Result<Value> {
    TileArguments arguments = TRY(TileArguments::match(*context, "tilelang.jit", signature, call));
    Value out_idx = arguments[1];
    if (arguments.has(0) && (arguments[0].as_index() || sequence_items(arguments[0])))
      out_idx = arguments[0];
    else if (arguments.has(0))
      return decorate(context, arguments[0], out_idx, arguments.span());
    auto apply = [context, out_idx](Interpreter&, CallArgs& args) -> Result<Value> {
      return decorate(context, args.positional.empty() ? Value() : args.positional[0], out_idx, args.span);
    };
    return Value(std::make_shared<BuiltinFunction>("tilelang.jit", std::move(apply)));
  };
}

Result<Value> compile_program(const ContextRef& context, const Value& program, const Value& out_idx, Span span) {
  if (auto* function = program.get_if<PrimFuncObject>())
    return Value(TRY(make_kernel(context, *function, out_idx, span)));
  return make_error(DiagnosticKind::invalid_jit, span,
                    fmt::format("`tilelang.compile` needs a `T.prim_func`, not a `{}`", program.type_name()));
}

}  // namespace

void add_jit(const ContextRef& context, ModuleObject& tilelang) {
  tilelang.function("jit", jit_body(context));
  tilelang.function(
      "compile", [context, signature = TileSignature(kJitParameters)](Interpreter&, CallArgs& call) -> Result<Value> {
        TileArguments arguments = TRY(TileArguments::match(*context, "tilelang.compile", signature, call));
        return compile_program(context, arguments[0], arguments[1], arguments.span());
      });
  tilelang.function(
      "par_compile",
      [context, signature = TileSignature(kJitParameters)](Interpreter&, CallArgs& call) -> Result<Value> {
        TileArguments arguments = TRY(TileArguments::match(*context, "tilelang.par_compile", signature, call));
        std::vector<Value> kernels;
        for (const Value& program : TRY(context->interpreter.to_vector(arguments[0], arguments.span())))
          kernels.push_back(TRY(compile_program(context, program, arguments[1], arguments.span())));
        return make_list(std::move(kernels));
      });
}

namespace {

bool is_prim_func_decorator(const syntax::Expr& expr) {
  if (auto* call = std::get_if<syntax::CallExpr>(&expr.node)) return is_prim_func_decorator(*call->callee);
  if (auto* attribute = std::get_if<syntax::AttributeExpr>(&expr.node)) return attribute->name.text() == "prim_func";
  auto* name = std::get_if<syntax::NameExpr>(&expr.node);
  return name && name->name.text() == "prim_func";
}

bool defines_program(const FunctionObject& function) {
  if (!function.definition) return false;
  for (const syntax::Stmt& stmt : function.definition->body) {
    auto* inner = std::get_if<syntax::FunctionDef>(&stmt.node);
    for (size_t i = 0; inner && i < inner->decorators.size(); ++i)
      if (is_prim_func_decorator(*inner->decorators[i])) return true;
  }
  return false;
}

}  // namespace

const FunctionObject* factory_of(const Value& value) {
  if (auto* jit = value.get_if<JitFunctionObject>()) return jit->is_eager_function() ? nullptr : &jit->function();
  auto* function = value.get_if<FunctionObject>();
  return function && defines_program(*function) ? function : nullptr;
}

const ir::Program* program_of(const Value& value) {
  if (auto* function = value.get_if<PrimFuncObject>()) return &function->program;
  if (auto* kernel = value.get_if<JitKernelObject>()) return &kernel->launcher.program();
  return nullptr;
}

}  // namespace tilepilot::stage
