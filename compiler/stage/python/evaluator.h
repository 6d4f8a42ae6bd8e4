// Evaluates the tree of one activation: a module's top level, a call of a function, a class body or a comprehension.
// Expressions are in expressions.cpp, calls.cpp and comprehensions.cpp; statements in statements.cpp, assignment.cpp,
// loops.cpp, handlers.cpp, definitions.cpp and imports.cpp.
#pragma once

#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/evaluation/scope.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

// The local variables of an activation; few enough to live on the stack as a rule.
class Locals {
 public:
  explicit Locals(size_t count) {
    if (count > kInline) heap_ = std::make_unique<std::optional<Value>[]>(count);
    slots_ = heap_ ? heap_.get() : inline_;
  }
  Locals(const Locals&) = delete;
  std::optional<Value>& operator[](size_t index) { return slots_[index]; }

 private:
  static constexpr size_t kInline = 8;
  std::optional<Value> inline_[kInline];
  std::unique_ptr<std::optional<Value>[]> heap_;
  std::optional<Value>* slots_;
};

// What kind of loop `break` and `continue` belong to.
enum class LoopKind : uint8_t { none, plain, plain_while, staged };

struct Activation {
  Activation(const ScopeLayout& layout, const syntax::ModuleRef& module, std::shared_ptr<ModuleObject> globals);

  const ScopeLayout& layout;
  const syntax::ModuleRef& module;
  std::shared_ptr<ModuleObject> globals;
  const std::vector<CellRef>* captured = nullptr;  // the closure
  FunctionObject* function = nullptr;              // the innermost function, for super(); null at the top level
  std::shared_ptr<ClassObject> class_object;       // whose body this is
  Locals locals;
  std::vector<CellRef> cells;
  Value result;                       // of `return`
  GeneratorRun* generator = nullptr;  // whose body this is
  LoopKind loop = LoopKind::none;
  int staged_bodies = 0;               // loops and branches of the kernel around the statement that runs
  int tries = 0;                       // `try` statements with handlers that are running
  bool catches_import_errors = false;  // inside `try: ... except ImportError:`
};

// How a statement ended. `block_done`: a staged break or continue was emitted, nothing after it in the block can run.
enum class Flow : uint8_t { normal, next_iteration, leave_loop, leave_function, block_done };

class Evaluator {
 public:
  Evaluator(Interpreter& interpreter, Activation& activation) : interpreter_(interpreter), activation_(activation) {}

  Result<Value> eval(const syntax::Expr& expression);
  Result<Flow> run(const syntax::Body& body);
  // Puts the values of a call into the parameters' slots.
  void bind_parameters(std::vector<Value> values);

 private:
  // Expressions.
  Result<Value> visit(const syntax::NameExpr&, Span);
  Result<Value> visit(const syntax::NoneLiteral&, Span);
  Result<Value> visit(const syntax::EllipsisLiteral&, Span);
  Result<Value> visit(const syntax::BoolLiteral&, Span);
  Result<Value> visit(const syntax::IntLiteral&, Span);
  Result<Value> visit(const syntax::FloatLiteral&, Span);
  Result<Value> visit(const syntax::StringLiteral&, Span);
  Result<Value> visit(const syntax::FormattedString&, Span);
  Result<Value> visit(const syntax::AttributeExpr&, Span);
  Result<Value> visit(const syntax::SubscriptExpr&, Span);
  Result<Value> visit(const syntax::SliceExpr&, Span);
  Result<Value> visit(const syntax::CallExpr&, Span);
  Result<Value> visit(const syntax::UnaryExpr&, Span);
  Result<Value> visit(const syntax::BinaryExpr&, Span);
  Result<Value> visit(const syntax::BoolExpr&, Span);
  Result<Value> visit(const syntax::CompareExpr&, Span);
  Result<Value> visit(const syntax::ConditionalExpr&, Span);
  Result<Value> visit(const syntax::TupleExpr&, Span);
  Result<Value> visit(const syntax::ListExpr&, Span);
  Result<Value> visit(const syntax::SetExpr&, Span);
  Result<Value> visit(const syntax::DictExpr&, Span);
  Result<Value> visit(const syntax::StarredExpr&, Span);
  Result<Value> visit(const syntax::NamedExpr&, Span);
  Result<Value> visit(const syntax::YieldExpr&, Span);  // in generator.cpp
  Result<Value> visit(const syntax::ComprehensionExpr&, Span);
  Result<Value> visit(const syntax::LambdaExpr&, Span);

  Result<Value> delegate(const Value& iterable, Span span);
  Result<std::vector<Value>> items(const std::vector<syntax::ExprPtr>& expressions);
  Result<bool> holds(const Value& condition, Span span);
  bool is_staged(const Value& value) const { return interpreter_.staging_ && interpreter_.staging_->is_staged(value); }

  // Calls.
  Result<CallArgs> arguments(const syntax::CallExpr& call, Span span, const Value* self, bool with_spans);
  Status add_spread_keywords(const Value& mapping, CallArgs& args, Span span);
  Result<Value> call_value(const Value& callee, CallArgs args);
  Result<Value> call_method(const syntax::CallExpr& call, const syntax::AttributeExpr& method, Span span);
  Result<std::optional<Value>> super_call(const syntax::CallExpr& call, const syntax::NameExpr& callee, Span span);

  // Comprehensions: the loops of one go on to the next element, which `comprehend` collects.
  using OpenLoops = std::vector<std::unique_ptr<Iterator>>;
  Result<Value> comprehend(const syntax::ComprehensionExpr& node, OpenLoops loops);
  Result<bool> next_element(const syntax::ComprehensionExpr& node, OpenLoops& loops);
  Result<bool> wanted(const syntax::ComprehensionClause& clause);
  friend class GeneratorExpression;

  // Statements.
  Result<Flow> run(const syntax::Stmt& statement);
  // Whether the staging wants to go on after the statement that failed.
  bool recovers(const syntax::Stmt& statement, const Error& error);
  bool binds_stand_ins(const syntax::Stmt& statement, const Error& error);
  Result<Flow> visit(const syntax::ExprStmt&, Span);
  Result<Flow> visit(const syntax::AssignStmt&, Span);
  Result<Flow> visit(const syntax::AugAssignStmt&, Span);
  Result<Flow> visit(const syntax::AnnAssignStmt&, Span);
  Result<Flow> visit(const syntax::ForStmt&, Span);
  Result<Flow> visit(const syntax::WhileStmt&, Span);
  Result<Flow> visit(const syntax::IfStmt&, Span);
  Result<Flow> visit(const syntax::WithStmt&, Span);
  Result<Flow> visit(const syntax::FunctionDef&, Span);
  Result<Flow> visit(const syntax::ClassDef&, Span);
  Result<Flow> visit(const syntax::ReturnStmt&, Span);
  Result<Flow> visit(const syntax::PassStmt&, Span);
  Result<Flow> visit(const syntax::BreakStmt&, Span);
  Result<Flow> visit(const syntax::ContinueStmt&, Span);
  Result<Flow> visit(const syntax::AssertStmt&, Span);
  Result<Flow> visit(const syntax::RaiseStmt&, Span);
  Result<Flow> visit(const syntax::TryStmt&, Span);
  Result<Flow> visit(const syntax::MatchStmt&, Span);  // in matching.cpp
  Result<Flow> visit(const syntax::ImportStmt&, Span);
  Result<Flow> visit(const syntax::ImportFromStmt&, Span);
  Result<Flow> visit(const syntax::GlobalStmt&, Span);
  Result<Flow> visit(const syntax::NonlocalStmt&, Span);
  Result<Flow> visit(const syntax::DeleteStmt&, Span);

  // Names.
  Value* find_name(syntax::Name name, Slot slot);
  Error unknown_name(syntax::Name name, Slot slot, Span span);
  void bind(syntax::Name name, Value value);
  Status unbind(syntax::Name name, Span span);
  const Value* find_bound_name(syntax::Name name);

  // Assignment. `intercept`: the staging may turn a name's assignment into a store.
  enum class Intercept : uint8_t { no, yes };
  Status assign(const syntax::Expr& target, Value value, Intercept intercept);
  Status assign_name(syntax::Name name, Value value, Intercept intercept, Span span);
  Status unpack(const std::vector<syntax::ExprPtr>& targets, const Value& value, Intercept intercept, Span span);
  Status remove(const syntax::Expr& target);

  // Loops and branches.
  Result<Flow> for_iterator(const syntax::ForStmt& node, const Value& iterable);
  Result<Flow> for_staged(const syntax::ForStmt& node, StagedLoop& loop, Span span);
  Result<std::shared_ptr<StagedLoop>> staged_loop(const Value& iterable, Span span);
  Result<Flow> staged_while(const syntax::WhileStmt& node, Span span);
  Status run_branch(const syntax::Body& body, Span span);
  Result<Flow> with_items(const syntax::WithStmt& node, size_t position);
  Result<Flow> leave_context(const Value& context, Result<Flow> flow, Span span);
  Result<std::optional<Flow>> handle(const syntax::TryStmt& node, Error& error);
  Result<bool> matches(const Value& exception, const syntax::Expr& type);
  Result<Flow> run_handler(const syntax::ExceptHandler& handler, const Value& exception, const Diagnostic& diagnostic);

  friend class PatternMatcher;

  // Definitions.
  std::shared_ptr<FunctionObject> make_function(const void* node, const std::vector<syntax::Parameter>& parameters);
  std::vector<CellRef> close_over(const ScopeLayout& inner);
  Status add_defaults(FunctionObject& function);
  Status add_annotations(FunctionObject& function);
  Result<Value> annotation_value(const syntax::Expr& annotation);
  Status annotate_member(syntax::Name name, const syntax::Expr& annotation);
  Result<Value> decorate(const std::vector<syntax::ExprPtr>& expressions, const std::vector<Value>& decorators,
                         Value value);
  using Keywords = std::vector<std::pair<syntax::Name, Value>>;
  Result<Keywords> class_keywords(const syntax::ClassDef& node, const ClassObject& made);
  Status tell_of_class(const std::shared_ptr<ClassObject>& made, Keywords keywords, Span span);
  Result<std::vector<std::shared_ptr<ClassObject>>> base_classes(const syntax::ClassDef& node);
  Result<std::vector<Value>> decorator_values(const std::vector<syntax::ExprPtr>& expressions);
  // The end of a definition that failed: binds what stands in for it if it needs a module that is missing.
  Result<Flow> bind_stand_in(syntax::Name definition, Error error);

  // Imports.
  Result<std::shared_ptr<ModuleObject>> find_module(const std::string& name, Span span);
  enum class IfMissing : uint8_t { fail, stand_in };
  Result<std::shared_ptr<ModuleObject>> import_one(const std::string& name, IfMissing if_missing, Span span);
  Result<std::shared_ptr<ModuleObject>> import_path(const std::string& name, IfMissing if_missing, Span span);
  Result<std::string> relative_base(int level, Span span);
  bool may_lack_names(const std::string& module) const;
  Status import_names(const std::shared_ptr<ModuleObject>& module, const std::string& module_name,
                      const syntax::ImportFromStmt& node);

  Interpreter& interpreter_;
  Activation& activation_;
};

}  // namespace tilepilot::stage
