// One place that knows the children of every kind of expression, for code that treats all kinds alike.
#pragma once

#include <utility>

#include "compiler/syntax/tree.h"

namespace tilepilot::syntax {

template <class Visit>
class ChildVisitor {
 public:
  explicit ChildVisitor(Visit visit) : visit_(std::move(visit)) {}

  void operator()(const NameExpr&) {}
  void operator()(const NoneLiteral&) {}
  void operator()(const EllipsisLiteral&) {}
  void operator()(const BoolLiteral&) {}
  void operator()(const IntLiteral&) {}
  void operator()(const FloatLiteral&) {}
  void operator()(const StringLiteral&) {}
  void operator()(const FormattedString& e) {
    for (const FormattedPart& part : e.parts) one(part.value), one(part.format);
  }
  void operator()(const AttributeExpr& e) { one(e.object); }
  void operator()(const SubscriptExpr& e) { one(e.object), one(e.index); }
  void operator()(const SliceExpr& e) { one(e.start), one(e.stop), one(e.step); }
  void operator()(const CallExpr& e) {
    one(e.callee);
    all(e.args);
    for (const Keyword& keyword : e.keywords) one(keyword.value);
  }
  void operator()(const UnaryExpr& e) { one(e.operand); }
  void operator()(const BinaryExpr& e) { one(e.left), one(e.right); }
  void operator()(const BoolExpr& e) { all(e.operands); }
  void operator()(const CompareExpr& e) { one(e.first), all(e.rest); }
  void operator()(const ConditionalExpr& e) { one(e.condition), one(e.then), one(e.otherwise); }
  void operator()(const TupleExpr& e) { all(e.items); }
  void operator()(const ListExpr& e) { all(e.items); }
  void operator()(const SetExpr& e) { all(e.items); }
  void operator()(const DictExpr& e) {
    for (const auto& [key, value] : e.items) one(key), one(value);
  }
  void operator()(const StarredExpr& e) { one(e.value); }
  void operator()(const NamedExpr& e) { one(e.value); }
  void operator()(const YieldExpr& e) { one(e.value); }
  void operator()(const ComprehensionExpr& e) {
    one(e.element), one(e.value);
    for (const ComprehensionClause& clause : e.clauses)
      one(clause.target), one(clause.iterable), all(clause.conditions);
  }
  void operator()(const LambdaExpr& e) {
    for (const Parameter& parameter : e.parameters) one(parameter.annotation), one(parameter.default_value);
    one(e.body);
  }

 private:
  void one(const ExprPtr& child) {
    if (child) visit_(*child);
  }
  void all(const std::vector<ExprPtr>& children) {
    for (const ExprPtr& child : children) one(child);
  }

  Visit visit_;
};

// Calls visit(const Expr&) for each direct child of an expression.
template <class Visit>
void for_each_child(const Expr::Node& node, Visit visit) {
  std::visit(ChildVisitor<Visit>(std::move(visit)), node);
}

}  // namespace tilepilot::syntax
