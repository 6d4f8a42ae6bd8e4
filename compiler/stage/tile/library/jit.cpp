#include "compiler/stage/tile/library/jit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/text/text.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/tile/kernel/arguments.h"
#include "compiler/stage/tile/kernel/compile_requests.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/library/prim_func.h"

namespace tilepilot::stage {
namespace {

using Kernel = std::shared_ptr<JitKernelObject>;

Result<Kernel> make_kernel(const ContextRef& context, const PrimFuncObject& function, const Value& out_idx, Span span,
                           bool fast_math) {
  std::vector<size_t> outputs = TRY(output_positions(out_idx, function.program, span));
  if (outputs.empty()) outputs = function.outputs;
  if (!function.outputs.empty() && outputs != function.outputs)
    return make_error(DiagnosticKind::invalid_jit, span,
                      fmt::format("`out_idx` names other outputs than `{}` itself returns", function.program.name),
                      "leave `out_idx` out: what `T.empty` makes is returned");
  ir::Program program = function.program;
  for (ir::Kernel& kernel : program.kernels) kernel.fast_math |= fast_math;
  return std::make_shared<JitKernelObject>(Launcher(context, std::move(program), std::move(outputs)));
}

// While a function is traced whose programs may compute so.
class FastMathGuard {
 public:
  FastMathGuard(TileContext& context, bool fast_math) : context_(context), before_(context.fast_math) {
    context_.fast_math = fast_math;
  }
  ~FastMathGuard() { context_.fast_math = before_; }
  FastMathGuard(const FastMathGuard&) = delete;

 private:
  TileContext& context_;
  bool before_;
};

bool same_programs(const JitKernelObject& one, const JitKernelObject& other) {
  return one.launcher.outputs() == other.launcher.outputs() &&
         ir::structurally_equal(one.launcher.program(), other.launcher.program());
}

// Also where Python raises an exception meanwhile.
class Noting {
 public:
  explicit Noting(OuterReads& reads) : reads_(reads) { reads_.begin(); }
  ~Noting() { reads_.end(); }
  Noting(const Noting&) = delete;
  Noting& operator=(const Noting&) = delete;

 private:
  OuterReads& reads_;
};

// What a cache of kernels is asked for: the compile-time arguments as text. Objects without a value of their own count
// by identity and are `kept` alive for it.
class KeyWriter {
 public:
  KeyWriter(std::string& key, std::vector<Value>& kept) : key_(key), kept_(kept) {}

  void add(const Value& value) {
    if (auto* text = value.if_string()) {
      key_ += fmt::format("s{}:{},", text->size(), *text);
    } else if (auto* flag = value.if_bool()) {
      key_ += *flag ? "T," : "F,";
    } else if (auto* integer = value.if_int()) {
      key_ += fmt::format("i{},", *integer);
    } else if (auto* real = value.if_float()) {
      key_ += fmt::format("f{},", *real);
    } else if (auto* object = value.if_object()) {
      add_object(value, object->get());
    } else {
      key_ += "N,";
    }
  }

 private:
  void add_object(const Value& value, const Object* object) {
    if (auto* dtype = value.get_if<DTypeObject>()) {
      key_ += ir::to_string(dtype->dtype) + ",";
    } else if (auto* integer = value.get_if<IntObject>()) {
      key_ += fmt::format("i{},", integer->value.to_text());
    } else if (auto* items = sequence_items(value)) {
      key_ += "(";
      for (const Value& item : *items) add(item);
      key_ += ")";
    } else if (auto* dict = value.get_if<DictObject>()) {
      add_table(dict->table);
    } else if (auto* set = value.get_if<SetObject>()) {
      add_table(set->table);
    } else {
      key_ += fmt::format("@{},", static_cast<const void*>(object));
      kept_.push_back(value);
    }
  }

  // Equal dicts and sets may hold their entries in different orders.
  void add_table(const HashTable& table) {
    std::vector<std::string> entries;
    for (const auto& entry : table.entries()) {
      if (!entry.live) continue;
      std::string text;
      KeyWriter writer(text, kept_);
      writer.add(entry.key);
      writer.add(entry.value);
      entries.push_back(std::move(text));
    }
    std::sort(entries.begin(), entries.end());
    key_ += fmt::format("{{{}}}", fmt::join(entries, ""));
  }

  std::string& key_;
  std::vector<Value>& kept_;
};

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

std::optional<std::vector<int64_t>> constants_of(const std::vector<ir::Expr>& exprs) {
  std::vector<int64_t> values;
  for (const ir::Expr& expr : exprs) {
    auto constant = ir::constant_int(expr);
    if (!constant) return std::nullopt;
    values.push_back(*constant);
  }
  return values;
}

// The type of a tensor argument, or of an annotation that stands for one; nullopt for other values.
std::optional<TensorType> tensor_type(const TileContext& context, const Value& value) {
  if (auto* spec = value.get_if<TensorSpec>()) {
    auto shape = constants_of(spec->shape), strides = constants_of(spec->strides);
    if (!shape || !strides) return std::nullopt;
    return TensorType{spec->dtype, *shape, strides->empty() ? contiguous_strides(*shape) : *strides};
  }
  if (!context.options.host || !value.if_object()) return std::nullopt;
  auto view = context.options.host->view(value);
  if (!view) return std::nullopt;
  return TensorType{view->type, std::move(view->shape), std::move(view->strides)};
}

std::string describe(const TensorType& type) {
  std::string text = fmt::format("t{}[{}]", ir::to_string(type.dtype), describe_extents(type.shape));
  if (type.strides != contiguous_strides(type.shape)) text += fmt::format("/{}", describe_extents(type.strides));
  return text + ",";
}

// Stands for a tensor that a call leaves out.
struct MissingTensor final : TypedObject<MissingTensor> {
  static constexpr Type kType{"missing tensor"};
};

Value kernel_program(const JitKernelObject& kernel) {
  return std::make_shared<PrimFuncObject>(kernel.launcher.program(), kernel.launcher.outputs());
}

Value source_method(Launcher& launcher, std::shared_ptr<Object> owner) {
  return std::make_shared<BuiltinFunction>(
      "get_kernel_source", [&launcher, owner = std::move(owner)](Interpreter&, CallArgs& args) -> Result<Value> {
        return Value(TRY(launcher.source(args.span)));
      });
}

// Upstream's kernels for CUDA have a host part that checks arguments and launches.
Value host_source_method() {
  return std::make_shared<BuiltinFunction>("get_host_source", [](Interpreter&, CallArgs& args) -> Result<Value> {
    return make_error(DiagnosticKind::unsupported_tile_feature, args.span,
                      "there is no host source: on this target a kernel is one C++ function, called directly",
                      "`get_kernel_source()` shows it");
  });
}

}  // namespace

Result<Value> JitKernelObject::call(Interpreter&, CallArgs args) {
  return launcher.run(TRY(launcher.arrange(args)), args.span);
}

Result<Value> JitKernelObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (name.text() == "get_kernel_source") return source_method(launcher, shared_from_this());
  if (name.text() == "kernel_source") return Value(TRY(launcher.source(span)));
  if (name.text() == "prim_func") return kernel_program(*this);
  if (name.text() == "torch_function") return Value(shared_from_this());
  if (name.text() == "get_host_source") return host_source_method();
  if (auto found = TRY(script_attribute(interpreter, name, span))) return *std::move(found);
  return Object::get_attribute(interpreter, name, span);
}

// Keywords that are no parameters give sizes: `matmul.compile(M=1024, N=1024)`.
void JitFunctionObject::take_sizes(CallArgs& args, Call& call) const {
  const auto& parameters = *function_->parameters;
  auto is_size = [&](const std::pair<Name, Value>& keyword) {
    return constant_integer(keyword.second) &&
           std::none_of(parameters.begin(), parameters.end(), [&](const syntax::Parameter& parameter) {
             return parameter.name == keyword.first || parameter.kind == syntax::Parameter::Kind::var_keyword;
           });
  };
  for (const auto& keyword : args.keywords)
    if (is_size(keyword)) call.sizes.emplace(keyword.first.str(), *constant_integer(keyword.second));
  args.keywords.erase(std::remove_if(args.keywords.begin(), args.keywords.end(), is_size), args.keywords.end());
  for (const auto& [name, size] : call.sizes) call.key += fmt::format("{}={},", name, size);
}

void JitFunctionObject::add_missing_tensors(CallArgs& args) const {
  const auto& parameters = *function_->parameters;
  for (size_t i = args.positional.size(); i < parameters.size(); ++i) {
    if (parameters[i].kind != syntax::Parameter::Kind::positional || function_->defaults[i]) continue;
    if (!args.keyword(parameters[i].name.text()) && is_tensor_parameter(*function_, i))
      args.keywords.emplace_back(parameters[i].name, std::make_shared<MissingTensor>());
  }
}

void JitFunctionObject::sort_argument(size_t position, Call& call) const {
  const Value& value = call.values[position];
  const bool is_spec = value.get_if<TensorSpec>() != nullptr, is_missing = value.get_if<MissingTensor>() != nullptr;
  if (is_missing && call.missing.empty()) call.missing = (*function_->parameters)[position].name.text();
  // A tensor for a `T.ptr` is an address, a number of the call.
  const bool is_scalar = is_scalar_parameter(*function_, position);
  if (auto type = is_scalar ? std::nullopt : tensor_type(*context_, value)) {
    call.key += describe(*type);
    call.tensors.emplace(position, std::move(type));
  } else if (is_missing || is_spec) {
    call.key += "?,";
    call.tensors.emplace(position, std::nullopt);
  } else if (!is_scalar) {
    KeyWriter(call.key, call.kept).add(value);
    return;
  }
  call.only_types = call.only_types || is_spec;
  call.inputs.push_back(value);
}

Result<JitFunctionObject::Call> JitFunctionObject::sort_out(Interpreter& interpreter, CallArgs args) const {
  Call call;
  call.span = args.span;
  if (eager_) {
    take_sizes(args, call);
    add_missing_tensors(args);
  }
  call.values = TRY(interpreter.bind_arguments(*function_, std::move(args)));
  for (size_t i = 0; i < call.values.size(); ++i) {
    if (eager_)
      sort_argument(i, call);
    else
      KeyWriter(call.key, call.kept).add(call.values[i]);
  }
  return call;
}

Result<Kernel> JitFunctionObject::kernel_for(Call& call) {
  std::vector<Version>& known = kernels_[call.key];
  for (size_t i = known.size(); i-- > 0;) {
    const Version version = known[i];  // a copy: what is read may be computed by code that calls this function
    if (version.reads == nullptr || version.reads->are_as_noted()) return version.kernel;
  }
  Version made = TRY(traced(call));
  kept_.insert(kept_.end(), call.kept.begin(), call.kept.end());
  // Other values that make the same program, such as objects that are made anew for each call.
  for (Version& version : known) {
    if (!same_programs(*version.kernel, *made.kernel)) continue;
    version.reads = std::move(made.reads);
    return version.kernel;
  }
  known.push_back(std::move(made));
  return known.back().kernel;
}

Result<JitFunctionObject::Version> JitFunctionObject::traced(Call& call) {
  if (!eager_) return Version{TRY(run_factory(call)), nullptr};
  if (!context_->options.outer_reads) return Version{TRY(stage_eager(call)), nullptr};
  std::shared_ptr<OuterReads> reads = context_->options.outer_reads();
  const auto kernel = [&] {
    const Noting noting(*reads);
    return stage_eager(call);
  };
  return Version{TRY(kernel()), std::move(reads)};
}

Result<Kernel> JitFunctionObject::run_factory(Call& call) {
  context_->missed_program = false;
  const FastMathGuard guard(*context_, fast_math_);
  Value made = TRY(context_->interpreter.run_function(*function_, call.values, call.span));
  if (auto* program = made.get_if<PrimFuncObject>())
    return make_kernel(context_, *program, out_idx_, call.span, fast_math_);
  if (auto kernel = made.get_shared<JitKernelObject>()) return kernel;
  return make_error(DiagnosticKind::invalid_jit, function_->span,
                    fmt::format("the factory `{}` returns a `{}`", function_->name.text(), made.type_name()),
                    "it must return the `T.prim_func` that it defines");
}

Result<Kernel> JitFunctionObject::stage_eager(Call& call) {
  if (!out_idx_.is_none())
    return make_error(
        DiagnosticKind::invalid_jit, function_->span,
        fmt::format("`out_idx` does not apply to `{}`, which is a tile program itself", function_->name.text()),
        "make outputs with `T.empty` and return them");
  const FastMathGuard guard(*context_, fast_math_);
  EagerProgram program = TRY(trace_eager(context_, *function_, call));
  return std::make_shared<JitKernelObject>(Launcher(context_, std::move(program.program), std::move(program.outputs)));
}

Result<Kernel> JitFunctionObject::kernel_of(Interpreter& interpreter, CallArgs args, Call& call) {
  const bool undecided = !eager_ && kernels_.empty();
  CallArgs again = undecided ? args : CallArgs();
  call = TRY(sort_out(interpreter, std::move(args)));
  auto kernel = kernel_for(call);
  if (kernel.ok() || !undecided || !context_->missed_program) return kernel;
  eager_ = true;
  call = TRY(sort_out(interpreter, std::move(again)));
  return kernel_for(call);
}

Result<JitFunctionObject::Prepared> JitFunctionObject::prepare(Interpreter& interpreter, CallArgs args) {
  Call call;
  Kernel kernel = TRY(kernel_of(interpreter, std::move(args), call));
  const bool runs = eager_ && !call.only_types;
  if (!runs || call.missing.empty()) return Prepared{std::move(kernel), std::move(call.inputs), runs};
  return make_error(DiagnosticKind::wrong_arguments, call.span,
                    fmt::format("`{}` is called without its tensor `{}`", function_->name.text(), call.missing),
                    fmt::format("`{}.compile(...)` compiles without tensors", function_->name.text()));
}

Result<Value> JitFunctionObject::call(Interpreter& interpreter, CallArgs args) {
  const Span span = args.span;
  Prepared prepared = TRY(prepare(interpreter, std::move(args)));
  if (!prepared.runs) return Value(std::move(prepared.kernel));
  return prepared.kernel->launcher.run(prepared.inputs, span);
}

Result<Value> JitFunctionObject::compile(Interpreter& interpreter, CallArgs args) {
  Call call;
  return Value(TRY(kernel_of(interpreter, std::move(args), call)));
}

Result<Value> JitFunctionObject::get_kernel_source(Interpreter& interpreter, CallArgs args) {
  Call call;
  Kernel kernel = TRY(kernel_of(interpreter, std::move(args), call));
  return Value(TRY(kernel->launcher.source(call.span)));
}

Result<Value> JitFunctionObject::get_tir(Interpreter& interpreter, CallArgs args) {
  Call call;
  return kernel_program(*TRY(kernel_of(interpreter, std::move(args), call)));
}

namespace {

// Kernels of `par_compile`, compiled side by side. With `ignores_errors` those that cannot be are None.
Result<Value> compiled_together(std::vector<Value> kernels, bool ignores_errors, Span span) {
  std::vector<Launcher*> launchers;
  for (const Value& kernel : kernels) launchers.push_back(&kernel.get_if<JitKernelObject>()->launcher);
  const bool only_staged = !launchers.empty() && launchers[0]->context().options.backend == nullptr;
  if (only_staged) return make_list(std::move(kernels));
  std::vector<Status> statuses = Launcher::compile_all(launchers, span);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (statuses[i].ok()) continue;
    if (!ignores_errors) return std::move(statuses[i]).take_error();
    kernels[i] = Value();
  }
  return make_list(std::move(kernels));
}

}  // namespace

// One kernel for each configuration: a tuple of arguments, or a dict of them by name.
Result<Value> JitFunctionObject::par_compile(Interpreter& interpreter, CallArgs args) {
  static const TileSignature kSignature("configs, num_workers=, ignore_error=");
  TileArguments given = TRY(TileArguments::match(*context_, "par_compile", kSignature, args));
  std::vector<Value> kernels;
  for (const Value& config : TRY(interpreter.to_vector(given[0], given.span(0)))) {
    CallArgs one;
    one.span = args.span;
    if (auto* dict = config.get_if<DictObject>()) {
      for (const auto& entry : dict->table.entries())
        if (auto* name = entry.key.if_string(); name && entry.live) one.keywords.emplace_back(Name(*name), entry.value);
    } else {
      one.positional = TRY(interpreter.to_vector(config, args.span));
    }
    kernels.push_back(TRY(compile(interpreter, std::move(one))));
  }
  const bool ignores_errors = given.has(2) && TRY(interpreter.truth(given[2], given.span(2)));
  return compiled_together(std::move(kernels), ignores_errors, args.span);
}

JitFunctionObject::Method JitFunctionObject::method(std::string_view name) const {
  static constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"compile", &JitFunctionObject::compile},
      {"get_kernel_source", &JitFunctionObject::get_kernel_source},
      {"get_tir", &JitFunctionObject::get_tir},
      {"par_compile", &JitFunctionObject::par_compile}};
  for (const auto& [known, body] : kMethods)
    if (known == name) return body;
  return nullptr;
}

Result<Value> JitFunctionObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (Method body = method(name.text())) {
    auto self = std::static_pointer_cast<JitFunctionObject>(shared_from_this());
    return Value(std::make_shared<BuiltinFunction>(
        name.str(), [self, body](Interpreter& run, CallArgs& args) { return ((*self).*body)(run, std::move(args)); }));
  }
  if (name.text() == "mode") return Value(eager_ ? "eager" : "lazy");
  if (name.text() == "__wrapped__" || name.text() == "func") return Value(function_);
  if (name.text() == "__name__" || name.text() == "__doc__") return function_->get_attribute(interpreter, name, span);
  return Object::get_attribute(interpreter, name, span);
}

namespace {

Result<Value> decorate(const ContextRef& context, const Value& decorated, const Value& out_idx, Span span,
                       bool fast_math) {
  if (auto* program = decorated.get_if<PrimFuncObject>())
    return Value(TRY(make_kernel(context, *program, out_idx, span, fast_math)));
  if (auto function = decorated.get_shared<FunctionObject>(); function && function->definition)
    return Value(std::make_shared<JitFunctionObject>(context, std::move(function), out_idx, fast_math));
  return make_error(DiagnosticKind::invalid_jit, span,
                    fmt::format("`tilelang.jit` cannot decorate a `{}`", decorated.type_name()),
                    "it decorates a `T.prim_func`, a factory that returns one, or a function with `T.Kernel` inside");
}

constexpr std::string_view kJitParameters =
    "func=, out_idx=, target?='auto', target_host?, execution_backend?='auto', verbose?=False, pass_configs=, "
    "debug_root_path?, compile_flags=";
constexpr size_t kPassConfigs = 6, kCompileFlags = 8;

// Whether approximate arithmetic is asked for; other requests are announced.
Result<bool> asked_fast_math(const TileArguments& arguments) {
  TRY(arguments.announce_dropped());
  const bool by_configs = TRY(fast_math_of_configs(arguments, kPassConfigs));
  const bool by_flags = TRY(fast_math_of_flags(arguments, kCompileFlags));
  return by_configs || by_flags;
}

// `@tilelang.jit`, `@tilelang.jit(out_idx=[-1], ...)`. The backend of this process stands in for `target`.
BuiltinFunction::Body jit_body(const ContextRef& context) {
  return [context, signature = TileSignature(kJitParameters)](Interpreter&, CallArgs& call) -> Result<Value> {
    TileArguments arguments = TRY(TileArguments::match(*context, "tilelang.jit", signature, call));
    const bool fast_math = TRY(asked_fast_math(arguments));
    Value out_idx = arguments[1];
    if (arguments.has(0) && (arguments[0].as_index() || sequence_items(arguments[0])))
      out_idx = arguments[0];
    else if (arguments.has(0))
      return decorate(context, arguments[0], out_idx, arguments.span(), fast_math);
    auto apply = [context, out_idx, fast_math](Interpreter&, CallArgs& args) -> Result<Value> {
      return decorate(context, args.positional.empty() ? Value() : args.positional[0], out_idx, args.span, fast_math);
    };
    return Value(std::make_shared<BuiltinFunction>("tilelang.jit", std::move(apply)));
  };
}

Result<Value> compile_program(const ContextRef& context, const Value& program, const Value& out_idx, Span span,
                              bool fast_math) {
  if (auto* function = program.get_if<PrimFuncObject>())
    return Value(TRY(make_kernel(context, *function, out_idx, span, fast_math)));
  return make_error(DiagnosticKind::invalid_jit, span,
                    fmt::format("`tilelang.compile` needs a `T.prim_func`, not a `{}`", program.type_name()));
}

}  // namespace

void add_jit(const ContextRef& context, ModuleObject& tilelang) {
  tilelang.function("jit", jit_body(context));
  tilelang.function(
      "compile", [context, signature = TileSignature(kJitParameters)](Interpreter&, CallArgs& call) -> Result<Value> {
        TileArguments arguments = TRY(TileArguments::match(*context, "tilelang.compile", signature, call));
        const bool fast_math = TRY(asked_fast_math(arguments));
        return compile_program(context, arguments[0], arguments[1], arguments.span(), fast_math);
      });
  // What it gives is compiled too, and has the source that an artifact has.
  constexpr std::string_view kLowerParameters =
      "func_or_mod, target?='auto', target_host?, max_mismatched_buffers?, runtime_only?=False, "
      "enable_host_codegen?=False, enable_device_compile?=False";
  tilelang.function(
      "lower", [context, signature = TileSignature(kLowerParameters)](Interpreter&, CallArgs& call) -> Result<Value> {
        TileArguments arguments = TRY(TileArguments::match(*context, "tilelang.lower", signature, call));
        return compile_program(context, arguments[0], Value(), arguments.span(), false);
      });
  tilelang.function(
      "par_compile",
      [context, signature = TileSignature(kJitParameters)](Interpreter&, CallArgs& call) -> Result<Value> {
        TileArguments arguments = TRY(TileArguments::match(*context, "tilelang.par_compile", signature, call));
        const bool fast_math = TRY(asked_fast_math(arguments));
        std::vector<Value> kernels;
        for (const Value& program : TRY(context->interpreter.to_vector(arguments[0], arguments.span())))
          kernels.push_back(TRY(compile_program(context, program, arguments[1], arguments.span(), fast_math)));
        return compiled_together(std::move(kernels), false, arguments.span());
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
