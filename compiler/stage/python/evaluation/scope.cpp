#include "compiler/stage/python/evaluation/scope.h"

#include <algorithm>
#include <cstdint>

#include "compiler/stage/python/evaluation/name_spread.h"
#include "compiler/syntax/pattern.h"

namespace tilepilot::stage {

using namespace syntax;

Slot ScopeLayout::find(Name name) const {
  if (table_.empty()) return {};
  size_t mask = table_.size() - 1;
  for (size_t i = spread(name) & mask;; i = (i + 1) & mask) {
    if (table_[i].name == name) return table_[i].slot;
    if (!table_[i].name.id()) return {};
  }
}

bool ScopeLayout::declares_outside(Name name) const {
  return std::find(declared_outside.begin(), declared_outside.end(), name) != declared_outside.end();
}

void ScopeLayout::add(Name name, Slot slot) {
  if ((used_ + 1) * 2 > table_.size()) {
    std::vector<Entry> old(std::max<size_t>(8, table_.size() * 2));
    old.swap(table_);
    used_ = 0;
    for (const Entry& entry : old) {
      if (entry.name.id()) add(entry.name, entry.slot);
    }
  }
  size_t mask = table_.size() - 1;
  size_t i = spread(name) & mask;
  while (table_[i].name.id() && table_[i].name != name) i = (i + 1) & mask;
  if (!table_[i].name.id()) ++used_;
  table_[i] = {name, slot};
}

// Collects what each scope binds and mentions (first walk, over the tree), then decides where names live (`finish`,
// from the outside in, once it is known which locals inner scopes capture).
class ScopeBuilder {
 public:
  using Kind = ScopeLayout::Kind;

  ScopeBuilder(Kind kind, ScopeBuilder* parent) : kind_(kind), parent_(parent) {}

  void body(const Body& statements) {
    for (const Stmt& statement : statements) std::visit(*this, statement.node);
  }
  void expr(const Expr& expression) { std::visit(*this, expression.node); }
  void expr(const ExprPtr& expression) {
    if (expression) expr(*expression);
  }

  std::shared_ptr<const ScopeLayout> finish() {
    for (auto& child : children_) child->request_captures();
    return lay_out();
  }

  // Expressions.
  void operator()(const NameExpr& node) { mention(node.name); }
  void operator()(const NoneLiteral&) {}
  void operator()(const EllipsisLiteral&) {}
  void operator()(const BoolLiteral&) {}
  void operator()(const IntLiteral&) {}
  void operator()(const FloatLiteral&) {}
  void operator()(const StringLiteral&) {}
  void operator()(const FormattedString& node) {
    for (const FormattedPart& part : node.parts) {
      expr(part.value);
      expr(part.format);
    }
  }
  void operator()(const AttributeExpr& node) { expr(node.object); }
  void operator()(const SubscriptExpr& node) {
    expr(node.object);
    expr(node.index);
  }
  void operator()(const SliceExpr& node) {
    expr(node.start);
    expr(node.stop);
    expr(node.step);
  }
  void operator()(const CallExpr& node) {
    expr(node.callee);
    exprs(node.args);
    for (const Keyword& keyword : node.keywords) expr(keyword.value);
  }
  void operator()(const UnaryExpr& node) { expr(node.operand); }
  void operator()(const BinaryExpr& node) {
    expr(node.left);
    expr(node.right);
  }
  void operator()(const BoolExpr& node) { exprs(node.operands); }
  void operator()(const CompareExpr& node) {
    expr(node.first);
    exprs(node.rest);
  }
  void operator()(const ConditionalExpr& node) {
    expr(node.condition);
    expr(node.then);
    expr(node.otherwise);
  }
  void operator()(const TupleExpr& node) { exprs(node.items); }
  void operator()(const ListExpr& node) { exprs(node.items); }
  void operator()(const SetExpr& node) { exprs(node.items); }
  void operator()(const DictExpr& node) {
    for (const auto& [key, value] : node.items) {
      expr(key);
      expr(value);
    }
  }
  void operator()(const StarredExpr& node) { expr(node.value); }
  void operator()(const NamedExpr& node) {
    ScopeBuilder* target = this;
    while (target->kind_ == Kind::comprehension && target->parent_) target = target->parent_;
    target->bind(node.name);
    if (target != this) mention(node.name);
    expr(node.value);
  }
  void operator()(const YieldExpr& node) { expr(node.value); }
  void operator()(const ComprehensionExpr& node) {
    expr(node.clauses.front().iterable);
    ScopeBuilder& inner = open(Kind::comprehension, &node);
    for (size_t i = 0; i < node.clauses.size(); ++i) {
      const ComprehensionClause& clause = node.clauses[i];
      if (i > 0) inner.expr(clause.iterable);
      inner.target(*clause.target);
      inner.exprs(clause.conditions);
    }
    inner.expr(node.element);
    inner.expr(node.value);
  }
  void operator()(const LambdaExpr& node) {
    parameter_defaults(node.parameters);
    ScopeBuilder& inner = open(Kind::function, &node);
    inner.bind_parameters(node.parameters);
    inner.expr(node.body);
  }

  // Statements.
  void operator()(const ExprStmt& node) { expr(node.value); }
  void operator()(const AssignStmt& node) {
    expr(node.value);
    for (const ExprPtr& each : node.targets) target(*each);
  }
  void operator()(const AugAssignStmt& node) {
    expr(node.value);
    target(*node.target);
  }
  void operator()(const AnnAssignStmt& node) {
    expr(node.annotation);
    expr(node.value);
    target(*node.target);
  }
  void operator()(const ForStmt& node) {
    expr(node.iterable);
    target(*node.target);
    body(node.body);
    body(node.otherwise);
  }
  void operator()(const WhileStmt& node) {
    expr(node.condition);
    body(node.body);
    body(node.otherwise);
  }
  void operator()(const IfStmt& node) {
    expr(node.condition);
    body(node.then);
    body(node.otherwise);
  }
  void operator()(const WithStmt& node) {
    for (const WithItem& item : node.items) {
      expr(item.context);
      if (item.target) target(*item.target);
    }
    body(node.body);
  }
  void operator()(const FunctionDef& node) {
    exprs(node.decorators);
    parameter_defaults(node.parameters);
    for (const Parameter& parameter : node.parameters) expr(parameter.annotation);
    expr(node.returns);
    bind(node.name);
    ScopeBuilder& inner = open(Kind::function, &node);
    inner.bind_parameters(node.parameters);
    inner.body(node.body);
  }
  void operator()(const ClassDef& node) {
    exprs(node.decorators);
    exprs(node.bases);
    for (const Keyword& keyword : node.keywords) expr(keyword.value);
    bind(node.name);
    open(Kind::class_body, &node).body(node.body);
  }
  void operator()(const ReturnStmt& node) { expr(node.value); }
  void operator()(const PassStmt&) {}
  void operator()(const BreakStmt&) {}
  void operator()(const ContinueStmt&) {}
  void operator()(const AssertStmt& node) {
    expr(node.condition);
    expr(node.message);
  }
  void operator()(const RaiseStmt& node) {
    expr(node.exception);
    expr(node.cause);
  }
  void operator()(const TryStmt& node) {
    body(node.body);
    for (const ExceptHandler& handler : node.handlers) {
      expr(handler.type);
      if (handler.name.id()) bind(handler.name);
      body(handler.body);
    }
    body(node.otherwise);
    body(node.finally);
  }
  void operator()(const MatchStmt& node) {
    expr(node.subject);
    for (const MatchCase& each : node.cases) {
      for_each_expression(*each.pattern, [&](const Expr& mentioned) { expr(mentioned); });
      for (Name name : names_bound_by(*each.pattern)) bind(name);
      expr(each.guard);
      body(each.body);
    }
  }
  void operator()(const ImportStmt& node) {
    for (const ImportAlias& alias : node.names) {
      bind(alias.as.id() ? alias.as : Name(std::string_view(alias.name).substr(0, alias.name.find('.'))));
    }
  }
  void operator()(const ImportFromStmt& node) {
    for (const ImportAlias& alias : node.names) {
      if (alias.name != "*") bind(alias.as.id() ? alias.as : Name(alias.name));
    }
  }
  void operator()(const GlobalStmt& node) {
    for (Name name : node.names) declare(name, Declared::global);
  }
  void operator()(const NonlocalStmt& node) {
    for (Name name : node.names) declare(name, Declared::nonlocal);
  }
  void operator()(const DeleteStmt& node) {
    for (const ExprPtr& each : node.targets) target(*each);
  }

 private:
  enum class Declared : uint8_t { no, global, nonlocal };
  struct Use {
    Name name;
    bool bound = false;
    bool captured_by_inner = false;
    bool free = false;
    Declared declared = Declared::no;
  };

  void exprs(const std::vector<ExprPtr>& expressions) {
    for (const ExprPtr& each : expressions) expr(each);
  }
  // A target of assignment: names in it are bound; attributes and items of other objects are only mentioned.
  void target(const Expr& expression) {
    if (auto* name = std::get_if<NameExpr>(&expression.node)) {
      bind(name->name);
    } else if (auto* tuple = std::get_if<TupleExpr>(&expression.node)) {
      for (const ExprPtr& each : tuple->items) target(*each);
    } else if (auto* list = std::get_if<ListExpr>(&expression.node)) {
      for (const ExprPtr& each : list->items) target(*each);
    } else if (auto* starred = std::get_if<StarredExpr>(&expression.node)) {
      target(*starred->value);
    } else {
      expr(expression);
    }
  }
  void parameter_defaults(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) expr(parameter.default_value);
  }
  void bind_parameters(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) {
      bind(parameter.name);
      parameters_.push_back(parameter.name);
    }
  }
  ScopeBuilder& open(Kind kind, const void* node) {
    children_.push_back(std::make_unique<ScopeBuilder>(kind, this));
    children_.back()->node_ = node;
    return *children_.back();
  }

  Use& use(Name name) {
    auto [found, added] = index_.try_emplace(name.id(), uses_.size());
    if (added) uses_.push_back({name});
    return uses_[found->second];
  }
  void mention(Name name) { use(name); }
  void bind(Name name) { use(name).bound = true; }
  void declare(Name name, Declared how) { use(name).declared = how; }

  bool has_slots() const { return kind_ == Kind::function || kind_ == Kind::comprehension; }
  bool owns(const Use& use) const { return has_slots() && use.bound && use.declared == Declared::no; }

  // Asks the enclosing functions for the names that are not bound here, and marks them on the way.
  void request_captures() {
    for (Use& each : uses_) {
      bool elsewhere = each.declared != Declared::global && !owns(each) &&
                       !(kind_ == Kind::class_body && each.bound && each.declared == Declared::no);
      if (elsewhere && parent_->provide(each.name)) each.free = true;
    }
    for (auto& child : children_) child->request_captures();
  }
  // Makes `name` available to an inner scope; false if no enclosing function binds it.
  bool provide(Name name) {
    if (kind_ == Kind::module) return false;
    auto found = index_.find(name.id());
    if (has_slots() && found != index_.end()) {
      Use& mine = uses_[found->second];
      if (mine.declared == Declared::global) return false;
      if (owns(mine)) return mine.captured_by_inner = true;
    }
    if (!parent_ || !parent_->provide(name)) return false;
    if (kind_ == Kind::class_body && found != index_.end() && uses_[found->second].bound) {
      passed_through_.push_back(name);
      return true;
    }
    use(name).free = true;
    return true;
  }

  std::shared_ptr<ScopeLayout> lay_out() {
    auto layout = std::make_shared<ScopeLayout>();
    layout->kind = kind_;
    for (const Use& each : uses_) place(*layout, each);
    for (Name name : passed_through_) capture(*layout, name);
    for (Name name : parameters_) layout->parameters.push_back(layout->find(name));
    for (auto& child : children_) {
      std::shared_ptr<ScopeLayout> inner = child->lay_out();
      for (Name name : inner->captured) inner->captured_from.push_back(layout->find(name));
      for (Name name : inner->global_reads) add_global_read(*layout, name);
      layout->nested_.emplace(child->node_, std::move(inner));
    }
    return layout;
  }
  void place(ScopeLayout& layout, const Use& each) {
    if (each.declared != Declared::no) layout.declared_outside.push_back(each.name);
    if (owns(each)) {
      uint32_t& count = each.captured_by_inner ? layout.cell_count : layout.local_count;
      layout.add(each.name, {each.captured_by_inner ? Storage::cell : Storage::local, count++});
      layout.names.push_back(each.name);
    } else if (each.free) {
      capture(layout, each.name);
    } else {
      add_global_read(layout, each.name);
    }
  }
  static void add_global_read(ScopeLayout& layout, Name name) {
    auto& reads = layout.global_reads;
    if (std::find(reads.begin(), reads.end(), name) == reads.end()) reads.push_back(name);
  }
  void capture(ScopeLayout& layout, Name name) {
    layout.add(name, {Storage::captured, static_cast<uint32_t>(layout.captured.size())});
    layout.captured.push_back(name);
    layout.names.push_back(name);
  }

  Kind kind_;
  ScopeBuilder* parent_;
  const void* node_ = nullptr;
  std::vector<Use> uses_;
  std::unordered_map<const void*, size_t> index_;
  std::vector<Name> parameters_;
  std::vector<Name> passed_through_;
  std::vector<std::unique_ptr<ScopeBuilder>> children_;
};

std::shared_ptr<const ScopeLayout> resolve_names(const Module& module) {
  ScopeBuilder builder(ScopeLayout::Kind::module, nullptr);
  builder.body(module.body);
  return builder.finish();
}

std::shared_ptr<const ScopeLayout> resolve_names(const Expr& expression) {
  ScopeBuilder builder(ScopeLayout::Kind::module, nullptr);
  builder.expr(expression);
  return builder.finish();
}

}  // namespace tilepilot::stage
