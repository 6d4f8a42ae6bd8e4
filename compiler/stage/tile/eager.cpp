#include "compiler/stage/tile/eager.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/builder.h"
#include "compiler/stage/tile/dtypes.h"
#include "compiler/stage/tile/expressions.h"
#include "compiler/stage/tile/staging.h"

namespace tilepilot::stage {
namespace {

// Whether an expression is a call of `<something>.name(...)`.
bool calls_method(const syntax::Expr& expr, std::string_view name) {
  auto* call = std::get_if<syntax::CallExpr>(&expr.node);
  if (!call) return false;
  auto* callee = std::get_if<syntax::AttributeExpr>(&call->callee->node);
  return callee && callee->name.text() == name;
}

bool has_kernel(const syntax::Body& body);

bool has_kernel(const syntax::Stmt& stmt) {
  if (auto* with = std::get_if<syntax::WithStmt>(&stmt.node)) {
    for (const syntax::WithItem& item : with->items)
      if (calls_method(*item.context, "Kernel")) return true;
    return has_kernel(with->body);
  }
  if (auto* branch = std::get_if<syntax::IfStmt>(&stmt.node))
    return has_kernel(branch->then) || has_kernel(branch->otherwise);
  if (auto* loop = std::get_if<syntax::ForStmt>(&stmt.node)) return has_kernel(loop->body);
  if (auto* assign = std::get_if<syntax::AssignStmt>(&stmt.node))
    return calls_method(*assign->value, "const") || calls_method(*assign->value, "empty");
  return false;
}

bool has_kernel(const syntax::Body& body) {
  return std::any_of(body.begin(), body.end(), [](const syntax::Stmt& stmt) { return has_kernel(stmt); });
}

// One pass over the body of an eager function.
class EagerPass {
 public:
  EagerPass(const ContextRef& context, FunctionObject& function, Span span)
      : context_(context), function_(function), span_(span), builder_(function.name.str(), function.span) {}

  // What the body returns. The first pass ends with an error even when all went well: see `sizes_found`.
  Result<Value> run(EagerTrace& trace, const std::vector<Value>& values, const std::map<size_t, TensorType>& tensors) {
    Tracer tracer(*context_, builder_);
    TileContext::TraceGuard tracing(*context_, &builder_, &trace);
    Interpreter::StagingGuard staging(context_->interpreter, &tracer);
    std::vector<Value> parameters = values;
    for (const auto& [position, type] : tensors) parameters[position] = TRY(add_tensor(trace, position, type));
    for (size_t i = 0; i < parameters.size(); ++i)
      if (!tensors.count(i) && is_scalar_parameter(function_, i)) parameters[i] = TRY(add_scalar(i));
    if (trace.finding_sizes && trace.all_annotated()) {
      trace.sizes_found = true;
      return Value();
    }
    return context_->interpreter.run_function(function_, std::move(parameters), span_);
  }

  // The parameters of the program: the function's tensors and scalars, then its outputs.
  Result<EagerProgram> finish(const EagerTrace& trace, const Value& returned) {
    if (builder_.program().kernels.empty())
      return make_error(DiagnosticKind::invalid_jit, function_.span,
                        fmt::format("`{}` ran no `with T.Kernel(...)`", function_.name.text()));
    EagerProgram result{std::move(builder_.program()), {}};
    sort_parameters(result.program, trace);
    std::vector<Value> items;
    if (auto* sequence = sequence_items(returned))
      items = *sequence;
    else if (!returned.is_none())
      items = {returned};
    for (const Value& item : items) result.outputs.push_back(TRY(output_position(result.program, trace, item)));
    if (result.outputs.size() == trace.outputs.size()) return result;
    return make_error(DiagnosticKind::invalid_jit, function_.span,
                      fmt::format("`{}` makes {} output{} with `T.empty` but returns {}", function_.name.text(),
                                  trace.outputs.size(), trace.outputs.size() == 1 ? "" : "s", result.outputs.size()),
                      "return every output, as in `return C`");
  }

 private:
  Span parameter_span(size_t i) const { return (*function_.parameters)[i].span; }

  Result<Value> add_tensor(EagerTrace& trace, size_t position, const TensorType& type) {
    Name name = (*function_.parameters)[position].name;
    TensorSpec unknown;
    unknown.dtype = type.dtype;
    auto object =
        std::make_shared<BufferObject>(*context_, declare_buffer(unknown, name.str(), parameter_span(position)));
    object->named = true;
    trace.tensors.push_back({name, type, object, false});
    const std::optional<Value>& annotation = function_.annotations[position];
    if (annotation)
      if (auto* spec = annotation->get_if<TensorSpec>())
        TRY(trace.declare(*context_, trace.tensors.back(), *spec, parameter_span(position)));
    return Value(std::move(object));
  }

  Result<Value> add_scalar(size_t i) {
    ir::DType type = TRY(resolve_dtype(*context_, *function_.annotations[i], parameter_span(i)));
    ir::Var scalar = ir::make_var((*function_.parameters)[i].name.str(), type);
    builder_.add_parameter(scalar);
    return make_expr(*context_, ir::var_ref(scalar, parameter_span(i)));
  }

  // Annotations may come in any order; the call passes arguments in the function's.
  void sort_parameters(ir::Program& program, const EagerTrace& trace) const {
    auto rank = [&](const std::variant<ir::Buffer, ir::Var>& parameter) {
      const std::string& name = std::visit([](const auto& p) -> const std::string& { return p->name; }, parameter);
      auto* buffer = std::get_if<ir::Buffer>(&parameter);
      for (size_t i = 0; buffer && i < trace.outputs.size(); ++i)
        if (trace.outputs[i]->buffer == *buffer) return function_.parameters->size() + i;
      for (size_t i = 0; i < function_.parameters->size(); ++i)
        if ((*function_.parameters)[i].name.text() == name) return i;
      return function_.parameters->size();
    };
    std::stable_sort(program.parameters.begin(), program.parameters.end(),
                     [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }

  Result<size_t> output_position(const ir::Program& program, const EagerTrace& trace, const Value& item) const {
    auto* object = item.get_if<BufferObject>();
    for (const auto& output : trace.outputs) {
      if (output.get() != object) continue;
      for (size_t i = 0; i < program.parameters.size(); ++i) {
        auto* buffer = std::get_if<ir::Buffer>(&program.parameters[i]);
        if (buffer && *buffer == object->buffer) return i;
      }
    }
    return make_error(DiagnosticKind::invalid_jit, function_.span,
                      fmt::format("`{}` returns something that is no output", function_.name.text()),
                      "return what `T.empty` made; tensors that are written in place need not be returned");
  }

  const ContextRef& context_;
  FunctionObject& function_;
  Span span_;
  ProgramBuilder builder_;
};

}  // namespace

Result<Value> EagerTrace::constant(TileContext& context, const std::string& name, Span span) {
  if (auto known = sizes.find(name); known != sizes.end()) return Value(known->second);
  if (!finding_sizes)
    return make_error(DiagnosticKind::invalid_jit, span,
                      fmt::format("the size `{}` does not follow from the tensors", name),
                      fmt::format("annotate a tensor with `{}` as one of its extents", name));
  ir::Var& var = unknown[name];
  if (!var) var = ir::make_var(name, ir::kInt32);
  return make_expr(context, ir::var_ref(var, span));
}

Result<Value> EagerTrace::output(TileContext& context, const TensorSpec& spec, Span span) {
  TRY(check_annotated(span));
  auto object =
      std::make_shared<BufferObject>(context, declare_buffer(spec, fmt::format("output{}", outputs.size()), span));
  context.builder->add_parameter(object->buffer);
  outputs.push_back(object);
  return Value(std::move(object));
}

Status EagerTrace::annotate(TileContext& context, Name name, const Value& annotation, Span span) {
  auto* spec = annotation.get_if<TensorSpec>();
  if (!spec) return {};
  for (TensorParameter& parameter : tensors) {
    if (parameter.name != name) continue;
    TRY(declare(context, parameter, *spec, span));
    if (!finding_sizes || !all_annotated()) return {};
    sizes_found = true;
    return make_error(DiagnosticKind::invalid_jit, span, "the sizes are known; this pass ends here");
  }
  return make_error(DiagnosticKind::invalid_jit, span,
                    fmt::format("`{}` is annotated as a tensor but is no tensor argument of the function", name.text()),
                    "pass a tensor for it; outputs are made by `T.empty`");
}

Status EagerTrace::declare(TileContext& context, TensorParameter& parameter, const TensorSpec& spec, Span span) {
  if (spec.shape.size() != parameter.actual.shape.size())
    return make_error(DiagnosticKind::bad_kernel_argument, span,
                      fmt::format("`{}` is annotated with {} dimensions, but the tensor has {}", parameter.name.text(),
                                  spec.shape.size(), parameter.actual.shape.size()));
  if (finding_sizes) TRY(find_sizes(parameter, spec, span));
  ir::BufferData& buffer = *parameter.object->buffer;
  buffer.type = spec.dtype;
  buffer.shape = spec.shape;
  buffer.strides = spec.strides;
  if (!parameter.annotated) context.builder->add_parameter(parameter.object->buffer);
  parameter.annotated = true;
  return {};
}

bool EagerTrace::all_annotated() const {
  return std::all_of(tensors.begin(), tensors.end(), [](const TensorParameter& t) { return t.annotated; });
}

Status EagerTrace::find_sizes(const TensorParameter& parameter, const TensorSpec& spec, Span span) {
  for (size_t axis = 0; axis < spec.shape.size(); ++axis) {
    auto* reference = std::get_if<ir::VarRef>(&spec.shape[axis]->node);
    int64_t actual = parameter.actual.shape[axis];
    for (const auto& [name, var] : unknown) {
      if (!reference || reference->var != var) continue;
      auto [known, fresh] = sizes.emplace(name, actual);
      if (!fresh && known->second != actual)
        return make_error(DiagnosticKind::bad_kernel_argument, span,
                          fmt::format("`{}` is {} here, but axis {} of `{}` has extent {}", name, known->second, axis,
                                      parameter.name.text(), actual));
    }
  }
  return {};
}

Status EagerTrace::check_annotated(Span span) const {
  for (const TensorParameter& parameter : tensors) {
    if (parameter.annotated) continue;
    return make_error(DiagnosticKind::invalid_jit, span,
                      fmt::format("the tensor `{}` is not annotated before this point", parameter.name.text()),
                      fmt::format("write `{}: T.Tensor[[M, N], dtype]` in the body", parameter.name.text()));
  }
  return {};
}

bool is_eager(const FunctionObject& function) { return function.definition && has_kernel(function.definition->body); }

bool is_scalar_parameter(const FunctionObject& function, size_t i) {
  return function.annotations[i] && function.annotations[i]->get_if<DTypeObject>();
}

Result<EagerProgram> trace_eager(const ContextRef& context, FunctionObject& function, const std::vector<Value>& values,
                                 const std::map<size_t, TensorType>& tensors, Span span) {
  EagerTrace first;
  Result<Value> stopped = EagerPass(context, function, span).run(first, values, tensors);
  if (!first.sizes_found) {
    if (!stopped.ok()) return std::move(stopped).take_error();
    TRY(first.check_annotated(function.span));
  }
  EagerTrace second;
  second.finding_sizes = false;
  second.sizes = std::move(first.sizes);
  EagerPass pass(context, function, span);
  Value returned = TRY(pass.run(second, values, tensors));
  EagerProgram program = TRY(pass.finish(second, returned));
  if (context->options.on_program) context->options.on_program(program.program);
  return program;
}

}  // namespace tilepilot::stage
