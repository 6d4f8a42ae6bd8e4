// Statements that do one thing, branches, and the run of a body.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/poison.h"
#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/modules/contexts.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/foreign.h"

namespace tilepilot::stage {

using namespace syntax;

Result<Flow> Evaluator::run(const Body& body) {
  for (const Stmt& statement : body) {
    auto flow = run(statement);
    if (!interpreter_.core_->left.empty()) TRY(interpreter_.core_->end_left_generators());
    if (!flow.ok()) {
      Error error = std::move(flow).take_error();
      if (!recovers(statement, error)) return error;
    } else if (*flow != Flow::normal) {
      return flow;
    }
  }
  return Flow::normal;
}

// What a module computes itself from a module that nobody has, or under a condition on it, stands in for its value.
// What functions fail at that it calls is an error: they may do more than compute.
bool Evaluator::binds_stand_ins(const Stmt& statement, const Error& error) {
  const bool called = error->notes.size() > 1;  // the first says where the module was imported
  auto* branch = std::get_if<IfStmt>(&statement.node);
  const bool computes = branch || (!called && std::holds_alternative<AssignStmt>(statement.node));
  if (!computes || activation_.layout.kind != ScopeLayout::Kind::module || activation_.tries > 0) return false;
  const Span where = called ? error->notes.back().span : error->span;
  const bool in_condition = branch && where.valid() && cover(branch->condition->span, where) == branch->condition->span;
  auto stand_in = branch && !in_condition ? nullptr : stand_in_for(Name(""), *error);
  if (!stand_in) return false;
  for (Name name : names_bound_by(statement)) {
    bind(name, Value(std::make_shared<ForeignObject>(name.str(), stand_in->module, stand_in->imported)));
  }
  return true;
}

bool Evaluator::recovers(const Stmt& statement, const Error& error) {
  if (binds_stand_ins(statement, error)) return true;
  // What was not done may be what ends a `while`.
  if (!interpreter_.staging_ || activation_.tries > 0 || activation_.generator ||
      activation_.loop == LoopKind::plain_while || !interpreter_.staging_->recovers(error))
    return false;
  for (Name name : names_bound_by(statement)) bind(name, std::make_shared<PoisonObject>());
  return true;
}

Result<Flow> Evaluator::run(const Stmt& statement) {
  StatementMarker& marker = *interpreter_.statement_marker_;
  marker.file = statement.span.file;
  marker.offset = statement.span.begin;
  TRY(interpreter_.charge(statement.span));
  if (interpreter_.staging_) interpreter_.staging_->at_statement(statement.span);
  return std::visit([&](const auto& node) { return visit(node, statement.span); }, statement.node);
}

Result<Flow> Evaluator::visit(const ExprStmt& node, Span) {
  TRY(eval(*node.value));
  return Flow::normal;
}

Result<Flow> Evaluator::visit(const PassStmt&, Span) { return Flow::normal; }
Result<Flow> Evaluator::visit(const GlobalStmt&, Span) { return Flow::normal; }

Result<Flow> Evaluator::visit(const NonlocalStmt& node, Span span) {
  for (Name name : node.names) {
    if (activation_.layout.find(name).storage != Storage::captured) {
      return make_error(DiagnosticKind::syntax_error, span,
                        fmt::format("no binding for nonlocal '{}' found", name.text()));
    }
  }
  return Flow::normal;
}

Result<Flow> Evaluator::visit(const ReturnStmt& node, Span) {
  activation_.result = node.value ? TRY(eval(*node.value)) : Value();
  return Flow::leave_function;
}

Result<Flow> Evaluator::visit(const BreakStmt&, Span span) {
  if (activation_.loop != LoopKind::staged) return Flow::leave_loop;
  TRY(interpreter_.staging_->loop_break(span));
  return Flow::block_done;
}

Result<Flow> Evaluator::visit(const ContinueStmt&, Span span) {
  if (activation_.loop != LoopKind::staged) return Flow::next_iteration;
  TRY(interpreter_.staging_->loop_continue(span));
  return Flow::block_done;
}

Result<Flow> Evaluator::visit(const IfStmt& node, Span span) {
  Value condition = TRY(eval(*node.condition));
  if (!is_staged(condition)) { return run(TRY(holds(condition, node.condition->span)) ? node.then : node.otherwise); }
  RunBody then = [&] { return run_branch(node.then, span); };
  RunBody otherwise = [&] { return run_branch(node.otherwise, span); };
  TRY(interpreter_.staging_->if_statement(condition, then, node.otherwise.empty() ? nullptr : &otherwise, span));
  return Flow::normal;
}

// A body that runs, or does not, when the kernel runs: control cannot leave it at compile time.
Status Evaluator::run_branch(const Body& body, Span span) {
  ++activation_.staged_bodies;
  auto ran = run(body);
  --activation_.staged_bodies;
  Flow flow = TRY(std::move(ran));
  if (flow == Flow::normal || flow == Flow::block_done) return {};
  bool returns = flow == Flow::leave_function;
  return make_error(
      DiagnosticKind::staged_value_misused, body.empty() ? span : body.back().span,
      returns ? "`return` stands under a condition that is known only when the kernel runs"
              : "`break` or `continue` of a compile-time loop stands under a condition that is known "
                "only when the kernel runs",
      returns ? "compute the value under the condition and return after it" : "loop with `T.serial` instead");
}

Result<Flow> Evaluator::visit(const AssertStmt& node, Span span) {
  Value condition = TRY(eval(*node.condition));
  if (is_staged(condition)) {
    std::string text;
    if (node.message) text = TRY(interpreter_.str(TRY(eval(*node.message))));
    TRY(interpreter_.staging_->assertion(condition, text, span));
    return Flow::normal;
  }
  if (TRY(holds(condition, node.condition->span))) return Flow::normal;
  std::vector<Value> exception_args;
  std::string message = "assertion failed";
  if (node.message) {
    Value value = TRY(eval(*node.message));
    message += ": " + TRY(interpreter_.str(value));
    exception_args.push_back(std::move(value));
  }
  Error error = make_error(DiagnosticKind::assertion_failed, span, std::move(message));
  error->thrown = make_exception(interpreter_, "AssertionError", std::move(exception_args));
  return error;
}

Result<Flow> Evaluator::visit(const WithStmt& node, Span) { return with_items(node, 0); }

Result<Flow> Evaluator::with_items(const WithStmt& node, size_t position) {
  if (position == node.items.size()) return run(node.body);
  const WithItem& item = node.items[position];
  Span span = item.context->span;
  Value context = TRY(eval(*item.context));
  auto* object = context.if_object();
  if (!object) {
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("'{}' object does not support the context manager protocol", context.type_name()));
  }
  Value entered = TRY((*object)->enter(interpreter_, span));
  if (item.target) {
    Status bound = assign(*item.target, std::move(entered), Intercept::no);
    if (!bound.ok()) return leave_context(context, std::move(bound).take_error(), span);
  }
  return leave_context(context, with_items(node, position + 1), span);
}

// `__exit__` of a class written in Python learns of the exception and may suppress it; native contexts just end.
Result<Flow> Evaluator::leave_context(const Value& context, Result<Flow> flow, Span span) {
  static const Name kExit("__exit__");
  const ObjectRef& object = *context.if_object();
  InstanceObject* instance = object->as_instance();
  if (!instance || !instance->class_object()->lookup(kExit)) {
    auto* native = context.get_if<NativeContext>();
    if (!flow.ok() && native && native->on_error && is_catchable(flow.error().kind)) {
      Error error = std::move(flow).take_error();
      if (TRY(native->on_error(interpreter_, *error, span))) return Flow::normal;
      return error;
    }
    Status left = object->exit(interpreter_, span);
    if (flow.ok() && !left.ok()) return std::move(left).take_error();
    return flow;
  }
  CallArgs args{{Value(), Value(), Value()}, {}, span, {}};
  if (flow.ok()) {
    TRY(interpreter_.call_method(context, kExit, std::move(args), span));
    return flow;
  }
  Error error = std::move(flow).take_error();
  if (!is_catchable(error->kind)) return error;
  args.positional[1] = exception_of(interpreter_, *error);
  args.positional[0] = interpreter_.class_of(args.positional[1]);
  Value suppress = TRY(interpreter_.call_method(context, kExit, std::move(args), span));
  if (TRY(interpreter_.truth(suppress, span))) return Flow::normal;
  return error;
}

}  // namespace tilepilot::stage
