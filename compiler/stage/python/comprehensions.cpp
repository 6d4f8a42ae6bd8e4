// Comprehensions and generator expressions: a scope of their own, run at once. A generator expression becomes an
// iterator over its items, computed when it is made.
#include "compiler/stage/python/arithmetic.h"
#include "compiler/stage/python/containers.h"
#include "compiler/stage/python/evaluator.h"

namespace tilepilot::stage {

using namespace syntax;

struct Evaluator::ComprehensionOutput {
  std::vector<Value> items;          // of a list or generator
  std::shared_ptr<DictObject> dict;  // of a dict
  std::shared_ptr<SetObject> set;    // of a set
};

Result<Value> Evaluator::visit(const ComprehensionExpr& node, Span span) {
  Value first = TRY(eval(*node.clauses.front().iterable));
  const auto& layout = activation_.layout.nested(&node);
  Activation inner(*layout, activation_.module, activation_.globals);
  std::vector<CellRef> captured = close_over(*layout);
  inner.captured = &captured;
  inner.function = activation_.function;
  return Evaluator(interpreter_, inner).comprehend(node, std::move(first), span);
}

Result<Value> Evaluator::comprehend(const ComprehensionExpr& node, Value first_iterable, Span) {
  using Kind = ComprehensionExpr::Kind;
  ComprehensionOutput output;
  if (node.kind == Kind::dict) output.dict = std::make_shared<DictObject>();
  if (node.kind == Kind::set) output.set = std::make_shared<SetObject>();
  TRY(clause(node, 0, first_iterable, output));
  if (output.dict) return Value(std::move(output.dict));
  if (output.set) return Value(std::move(output.set));
  if (node.kind == Kind::list) return make_list(std::move(output.items));
  return make_iterator(iterate_over(std::move(output.items)), "generator");
}

Status Evaluator::clause(const ComprehensionExpr& node, size_t depth, const Value& iterable,
                         ComprehensionOutput& output) {
  const ComprehensionClause& clause_node = node.clauses[depth];
  Span span = clause_node.iterable->span;
  std::unique_ptr<Iterator> iterator = TRY(interpreter_.iterate(iterable, span));
  while (std::optional<Value> item = TRY(iterator->next(interpreter_))) {
    TRY(interpreter_.charge(span));
    TRY(assign(*clause_node.target, *std::move(item), Intercept::no));
    bool wanted = true;
    for (const ExprPtr& condition : clause_node.conditions) {
      wanted = TRY(holds(TRY(eval(*condition)), condition->span));
      if (!wanted) break;
    }
    if (!wanted) continue;
    if (depth + 1 < node.clauses.size()) {
      Value inner = TRY(eval(*node.clauses[depth + 1].iterable));
      TRY(clause(node, depth + 1, inner, output));
      continue;
    }
    Value element = TRY(eval(*node.element));
    if (output.dict) {
      TRY(output.dict->table.set(interpreter_, std::move(element), TRY(eval(*node.value)), node.element->span));
    } else if (output.set) {
      TRY(output.set->table.set(interpreter_, std::move(element), None{}, node.element->span));
    } else {
      output.items.push_back(std::move(element));
    }
    if (static_cast<int64_t>(output.items.size()) > interpreter_.limits_.container_items) {
      return too_large(interpreter_, span);
    }
  }
  return {};
}

}  // namespace tilepilot::stage
