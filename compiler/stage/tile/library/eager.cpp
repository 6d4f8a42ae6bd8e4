#include "compiler/stage/tile/library/eager.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/staging.h"
#include "compiler/stage/tile/library/dtypes.h"

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
  if (auto* match = std::get_if<syntax::MatchStmt>(&stmt.node))
    return std::any_of(match->cases.begin(), match->cases.end(),
                       [](const syntax::MatchCase& each) { return has_kernel(each.body); });
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
  EagerPass(const ContextRef& context, FunctionObject& function, const EagerCall& call)
      : context_(context), function_(function), call_(call), builder_(function.name.str(), function.span) {}

  // What the body returns. The first pass ends with an error even when all went well: see `sizes_found`.
  Result<Value> run(Declarations& declarations) {
    Tracer tracer(*context_, builder_);
    TileContext::TraceGuard tracing(*context_, &builder_, &declarations);
    Interpreter::StagingGuard staging(context_->interpreter, &tracer);
    std::vector<Value> parameters = call_.values;
    for (const auto& [position, type] : call_.tensors)
      parameters[position] = TRY(add_tensor(declarations, position, type));
    for (size_t i = 0; i < parameters.size(); ++i)
      if (!call_.tensors.count(i) && is_scalar_parameter(function_, i)) parameters[i] = TRY(add_scalar(i));
    if (declarations.finding_sizes && declarations.all_annotated()) {
      declarations.sizes_found = true;
      return Value();
    }
    return tracer.finish(context_->interpreter.run_function(function_, std::move(parameters), call_.span));
  }

  Result<EagerProgram> finish(const Declarations& declarations, const Value& returned) {
    if (builder_.program().kernels.empty())
      return make_error(DiagnosticKind::invalid_jit, function_.span,
                        fmt::format("`{}` ran no `with T.Kernel(...)`", function_.name.text()));
    EagerProgram result{std::move(builder_.program()), {}};
    declarations.sort_parameters(result.program, function_);
    result.outputs = TRY(declarations.returned_outputs(result.program, returned, function_.span));
    return result;
  }

 private:
  Span parameter_span(size_t i) const { return (*function_.parameters)[i].span; }

  Result<Value> add_tensor(Declarations& declarations, size_t position, const std::optional<TensorType>& type) {
    Name name = (*function_.parameters)[position].name;
    Value object = declarations.add_tensor(*context_, name, type, parameter_span(position));
    const std::optional<Value>& annotation = function_.annotations[position];
    if (annotation)
      if (auto* spec = annotation->get_if<TensorSpec>())
        TRY(declarations.declare(*context_, declarations.tensors.back(), *spec, parameter_span(position)));
    return object;
  }

  Result<Value> add_scalar(size_t i) {
    ir::DType type = TRY(resolve_dtype(*context_, *function_.annotations[i], parameter_span(i)));
    ir::Var scalar = ir::make_var((*function_.parameters)[i].name.str(), type);
    builder_.add_parameter(scalar);
    return make_expr(*context_, ir::var_ref(scalar, parameter_span(i)));
  }

  const ContextRef& context_;
  FunctionObject& function_;
  const EagerCall& call_;
  ProgramBuilder builder_;
};

Error not_a_size(const FunctionObject& function, const std::string& name, Span span) {
  Error error = make_error(
      DiagnosticKind::wrong_arguments, span,
      fmt::format("`{}` has no parameter `{}`, and asks for no size of that name", function.name.text(), name),
      fmt::format("sizes are what `T.const(\"{}\")` in its body asks for", name));
  error->note(function.span, fmt::format("`{}` is defined here", function.name.text()));
  return error;
}

}  // namespace

bool is_eager(const FunctionObject& function) {
  if (!function.definition) return false;
  for (size_t i = 0; i < function.parameters->size(); ++i)
    if (annotates_in_body(function, i)) return true;
  return has_kernel(function.definition->body);
}

bool is_scalar_parameter(const FunctionObject& function, size_t i) {
  return function.annotations[i] && function.annotations[i]->get_if<DTypeObject>();
}

bool is_tensor_parameter(const FunctionObject& function, size_t i) {
  return (function.annotations[i] && function.annotations[i]->get_if<TensorSpec>()) || annotates_in_body(function, i);
}

Result<EagerProgram> trace_eager(const ContextRef& context, FunctionObject& function, const EagerCall& call) {
  Declarations first(true);
  first.finding_sizes = true;
  first.sizes = call.sizes;
  Result<Value> stopped = EagerPass(context, function, call).run(first);
  if (!first.sizes_found) {
    if (!stopped.ok()) return std::move(stopped).take_error();
    TRY(first.check_annotated(function.span));
  }
  Declarations second(true);
  second.sizes = std::move(first.sizes);
  EagerPass pass(context, function, call);
  Value returned = TRY(pass.run(second));
  for (const auto& [name, size] : call.sizes)
    if (!second.asks_for(name)) return not_a_size(function, name, call.span);
  EagerProgram program = TRY(pass.finish(second, returned));
  program.program = context->finished(std::move(program.program));
  return program;
}

}  // namespace tilepilot::stage
