// raise, try, except, finally.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

using namespace syntax;

namespace {

// Whether `except type:` is written for imports that fail, as far as its text tells; null: a bare `except:`.
bool catches_import_errors(const Expr* type) {
  if (!type) return true;
  if (auto* tuple = std::get_if<TupleExpr>(&type->node)) {
    return std::any_of(tuple->items.begin(), tuple->items.end(),
                       [](const ExprPtr& item) { return catches_import_errors(item.get()); });
  }
  auto* name = std::get_if<NameExpr>(&type->node);
  if (!name) return false;
  constexpr std::string_view kClasses[] = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"};
  return std::find(std::begin(kClasses), std::end(kClasses), name->name.text()) != std::end(kClasses);
}

}  // namespace

Result<Flow> Evaluator::visit(const RaiseStmt& node, Span span) {
  auto& handled = interpreter_.core_->handled;
  if (!node.exception) {
    if (handled.empty()) return interpreter_.raise("RuntimeError", "no active exception to raise again", span);
    return Error(make_error(handled.back().diagnostic));
  }
  Value exception = TRY(eval(*node.exception));
  if (auto* class_object = exception.get_if<ClassObject>()) {
    exception = TRY(class_object->call(interpreter_, CallArgs{{}, {}, span, {}}));
  }
  if (!is_exception(interpreter_, exception)) return type_error(span, "exceptions must derive from BaseException");
  if (node.cause) {
    Value cause = TRY(eval(*node.cause));
    TRY(interpreter_.set_attribute(exception, Name("__cause__"), std::move(cause), span));
  }
  return error_of(interpreter_, exception, span);
}

Result<Flow> Evaluator::visit(const TryStmt& node, Span) {
  const bool caught_outside = activation_.catches_import_errors;
  activation_.catches_import_errors =
      caught_outside || std::any_of(node.handlers.begin(), node.handlers.end(), [](const ExceptHandler& handler) {
        return catches_import_errors(handler.type.get());
      });
  const int handling = node.handlers.empty() ? 0 : 1;
  activation_.tries += handling;
  auto flow = run(node.body);
  activation_.tries -= handling;
  activation_.catches_import_errors = caught_outside;
  if (flow.ok()) {
    if (*flow == Flow::normal) flow = run(node.otherwise);
  } else {
    Error error = std::move(flow).take_error();
    auto handled = handle(node, error);
    if (!handled.ok())
      flow = std::move(handled).take_error();
    else if (*handled)
      flow = **handled;
    else
      flow = std::move(error);
  }
  if (node.finally.empty()) return flow;
  Value result = activation_.result;
  Flow last = TRY(run(node.finally));
  if (last != Flow::normal) return last;
  activation_.result = std::move(result);
  return flow;
}

Result<std::optional<Flow>> Evaluator::handle(const TryStmt& node, Error& error) {
  if (node.handlers.empty() || !is_catchable(error->kind)) return std::optional<Flow>();
  Value exception = exception_of(interpreter_, *error);
  for (const ExceptHandler& handler : node.handlers) {
    if (handler.type && !TRY(matches(exception, *handler.type))) continue;
    return std::optional<Flow>(TRY(run_handler(handler, exception, *error)));
  }
  return std::optional<Flow>();
}

Result<bool> Evaluator::matches(const Value& exception, const Expr& type) {
  Value wanted = TRY(eval(type));
  std::vector<Value> one{wanted};
  const std::vector<Value>* classes = sequence_items(wanted);
  for (const Value& each : classes ? *classes : one) {
    auto* class_object = each.get_if<ClassObject>();
    if (!class_object) {
      return type_error(type.span, "catching classes that do not inherit from BaseException is not allowed");
    }
    if (interpreter_.class_of(exception)->is_subclass_of(*class_object)) return true;
  }
  return false;
}

Result<Flow> Evaluator::run_handler(const ExceptHandler& handler, const Value& exception,
                                    const Diagnostic& diagnostic) {
  auto& handled = interpreter_.core_->handled;
  handled.push_back({exception, diagnostic});
  if (handler.name.id()) bind(handler.name, exception);
  auto flow = run(handler.body);
  handled.pop_back();
  if (handler.name.id() && find_name(handler.name, activation_.layout.find(handler.name))) {
    TRY(unbind(handler.name, handler.span));
  }
  return flow;
}

}  // namespace tilepilot::stage
