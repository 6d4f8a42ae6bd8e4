// Comprehensions: a scope of their own, run at once. A generator expression runs from one element to the next as it is
// asked for them.
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluator.h"

namespace tilepilot::stage {

using namespace syntax;

// What a generator expression needs for as long as somebody iterates over it.
class GeneratorExpression final : public Iterator {
 public:
  struct Scope {
    std::shared_ptr<const ScopeLayout> layout;
    ModuleRef module;
    std::shared_ptr<ModuleObject> globals;
    std::vector<CellRef> captured;
    std::shared_ptr<FunctionObject> function;
  };

  GeneratorExpression(const ComprehensionExpr& node, Scope scope, std::unique_ptr<Iterator> first)
      : node_(node), scope_(std::move(scope)), activation_(*scope_.layout, scope_.module, scope_.globals) {
    activation_.captured = &scope_.captured;
    activation_.function = scope_.function.get();
    loops_.push_back(std::move(first));
  }

  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    const Span span = node_.element->span;
    TRY(interpreter.check_stack(span));
    if (running_) return make_error(DiagnosticKind::value_error, span, "generator already executing");
    running_ = true;
    auto element = next_value(interpreter);
    running_ = false;
    if (!element.ok()) loops_.clear();
    return element;
  }

 private:
  Result<std::optional<Value>> next_value(Interpreter& interpreter) {
    Evaluator evaluator(interpreter, activation_);
    if (!TRY(evaluator.next_element(node_, loops_))) return std::optional<Value>();
    return std::optional<Value>(TRY(evaluator.eval(*node_.element)));
  }

  const ComprehensionExpr& node_;  // kept by the module
  Scope scope_;
  Activation activation_;
  Evaluator::OpenLoops loops_;
  bool running_ = false;
};

Result<Value> Evaluator::visit(const ComprehensionExpr& node, Span) {
  const ExprPtr& iterable = node.clauses.front().iterable;
  OpenLoops loops;
  loops.push_back(TRY(interpreter_.iterate(TRY(eval(*iterable)), iterable->span)));
  const auto& layout = activation_.layout.nested(&node);
  std::vector<CellRef> captured = close_over(*layout);
  if (node.kind == ComprehensionExpr::Kind::generator) {
    std::shared_ptr<FunctionObject> function;
    if (activation_.function)
      function = std::static_pointer_cast<FunctionObject>(activation_.function->shared_from_this());
    GeneratorExpression::Scope scope{layout, activation_.module, activation_.globals, std::move(captured),
                                     std::move(function)};
    const bool closes_over = !scope.captured.empty();
    Value made = make_iterator(std::make_unique<GeneratorExpression>(node, std::move(scope), std::move(loops.front())),
                               "generator");
    if (closes_over) interpreter_.watch(*made.if_object());
    return made;
  }
  Activation inner(*layout, activation_.module, activation_.globals);
  inner.captured = &captured;
  inner.function = activation_.function;
  return Evaluator(interpreter_, inner).comprehend(node, std::move(loops));
}

Result<Value> Evaluator::comprehend(const ComprehensionExpr& node, OpenLoops loops) {
  using Kind = ComprehensionExpr::Kind;
  std::vector<Value> items;
  auto dict = node.kind == Kind::dict ? std::make_shared<DictObject>() : nullptr;
  auto set = node.kind == Kind::set ? std::make_shared<SetObject>() : nullptr;
  const Span span = node.element->span;
  while (TRY(next_element(node, loops))) {
    Value element = TRY(eval(*node.element));
    if (dict) {
      TRY(dict->table.set(interpreter_, std::move(element), TRY(eval(*node.value)), span));
    } else if (set) {
      TRY(set->table.set(interpreter_, std::move(element), None{}, span));
    } else {
      items.push_back(std::move(element));
      if (static_cast<int64_t>(items.size()) > interpreter_.limits_.container_items)
        return too_large(interpreter_, span);
    }
  }
  if (dict) return Value(std::move(dict));
  if (set) return Value(std::move(set));
  return make_list(std::move(items));
}

// Binds the targets for the next element; false: there is none. The innermost of the loops that are open is the last.
Result<bool> Evaluator::next_element(const ComprehensionExpr& node, OpenLoops& loops) {
  while (!loops.empty()) {
    const ComprehensionClause& clause = node.clauses[loops.size() - 1];
    std::optional<Value> item = TRY(loops.back()->next(interpreter_));
    if (!item) {
      loops.pop_back();
      continue;
    }
    TRY(interpreter_.charge(clause.iterable->span));
    TRY(assign(*clause.target, *std::move(item), Intercept::no));
    if (!TRY(wanted(clause))) continue;
    if (loops.size() == node.clauses.size()) return true;
    const Expr& inner = *node.clauses[loops.size()].iterable;
    loops.push_back(TRY(interpreter_.iterate(TRY(eval(inner)), inner.span)));
  }
  return false;
}

Result<bool> Evaluator::wanted(const ComprehensionClause& clause) {
  for (const ExprPtr& condition : clause.conditions)
    if (!TRY(holds(TRY(eval(*condition)), condition->span))) return false;
  return true;
}

}  // namespace tilepilot::stage
