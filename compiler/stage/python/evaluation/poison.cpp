#include "compiler/stage/python/evaluation/poison.h"

#include "compiler/syntax/pattern.h"

namespace tilepilot::stage {

using namespace syntax;

namespace {

class BoundNames {
 public:
  std::vector<Name> take() && { return std::move(names_); }

  void statement(const Stmt& stmt) {
    std::visit([this](const auto& node) { visit(node); }, stmt.node);
  }

 private:
  void body(const Body& body) {
    for (const Stmt& stmt : body) statement(stmt);
  }
  void target(const Expr& expr) {
    if (auto* name = std::get_if<NameExpr>(&expr.node)) names_.push_back(name->name);
    if (auto* tuple = std::get_if<TupleExpr>(&expr.node))
      for (const ExprPtr& item : tuple->items) target(*item);
    if (auto* list = std::get_if<ListExpr>(&expr.node))
      for (const ExprPtr& item : list->items) target(*item);
    if (auto* starred = std::get_if<StarredExpr>(&expr.node)) target(*starred->value);
  }

  void visit(const AssignStmt& node) {
    for (const ExprPtr& each : node.targets) target(*each);
  }
  void visit(const AugAssignStmt& node) { target(*node.target); }
  void visit(const AnnAssignStmt& node) { target(*node.target); }
  void visit(const ForStmt& node) {
    target(*node.target);
    body(node.body);
    body(node.otherwise);
  }
  void visit(const WhileStmt& node) {
    body(node.body);
    body(node.otherwise);
  }
  void visit(const IfStmt& node) {
    body(node.then);
    body(node.otherwise);
  }
  void visit(const WithStmt& node) {
    for (const WithItem& item : node.items)
      if (item.target) target(*item.target);
    body(node.body);
  }
  void visit(const MatchStmt& node) {
    for (const MatchCase& each : node.cases) {
      for (Name name : syntax::names_bound_by(*each.pattern)) names_.push_back(name);
      body(each.body);
    }
  }
  void visit(const FunctionDef& node) { names_.push_back(node.name); }
  void visit(const ClassDef& node) { names_.push_back(node.name); }
  template <class Other>
  void visit(const Other&) {}

  std::vector<Name> names_;
};

}  // namespace

Error poisoned(Span span) {
  Error error = make_error(DiagnosticKind::unknown_name, span, "this name was not defined because of an earlier error");
  error->thrown = ObjectRef(std::make_shared<PoisonObject>());
  return error;
}

bool is_poisoned(const Diagnostic& error) {
  return error.thrown && Value(std::static_pointer_cast<Object>(error.thrown)).get_if<PoisonObject>() != nullptr;
}

std::vector<Name> names_bound_by(const Stmt& statement) {
  BoundNames names;
  names.statement(statement);
  return std::move(names).take();
}

}  // namespace tilepilot::stage
