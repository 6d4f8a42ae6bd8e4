// The tracer: takes over Python's control flow while a tile program's body is evaluated, and turns it into statements
// of the program's IR (reference/tilelang.md section 2.1).
#pragma once

#include <map>

#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

class Tracer final : public Staging {
 public:
  Tracer(TileContext& context, ProgramBuilder& builder)
      : context_(context), builder_(builder), outer_frames_(context.interpreter.frames().size()) {}

  bool is_staged(const Value& value) const override;
  Status if_statement(const Value& condition, const RunBody& then, const RunBody* otherwise, Span span) override;
  Status while_statement(const RunExpr& condition, const RunBody& body, Span span) override;
  Result<Value> conditional(const Value& condition, const RunExpr& then, const RunExpr& otherwise, Span span) override;
  Result<Value> logical(bool is_and, const Value& left, const Value& right, Span span) override;
  Result<Value> lazily(const RunExpr& operand) override;
  Result<Value> logical_not(const Value& operand, Span span) override;
  Status assertion(const Value& condition, const std::string& message, Span span) override;
  Result<std::optional<Value>> assign(Name name, const Value* previous, Value value, Span span) override;
  Status annotated(Name name, const Value& annotation, Span span) override;
  Status loop_break(Span span) override;
  Status loop_continue(Span span) override;
  void at_statement(Span) override {}
  bool recovers(const Error& error) override;
  void function_entered() override;
  Status before_unpacking(std::vector<Value>& values, Span span) override;
  Result<std::shared_ptr<StagedLoop>> loop_over(const Value& iterable, Span span) override;
  Result<std::optional<Value>> builtin(std::string_view name, CallArgs& args) override;
  void bound(Name name, const Value& value) override;

  // The outcome of the trace: the first of the errors that it went on after, the others among the diagnostics; else
  // `result`.
  Result<Value> finish(Result<Value> result);
  bool has_errors() const { return !errors_.empty(); }

 private:
  // A name of one function activation; where it was last bound.
  using LocalName = std::pair<size_t, const void*>;
  LocalName local(Name name) const { return {context_.interpreter.frames().size(), name.id()}; }
  Result<Value> bind_expression(Name name, const ir::Expr& expr, Value value, Span span);
  Result<std::optional<Value>> assign_variable(Name name, const Value* previous, const Value& value, Span span);
  int binding_block(Name name) const;
  Status check_rebinding(Name name, const Value& previous, const Value& value, Span span) const;
  void give_name(Name name, const Value& value);

  TileContext& context_;
  ProgramBuilder& builder_;
  const size_t outer_frames_;  // calls that the traced function is in
  std::vector<Diagnostic> errors_;
  std::map<LocalName, int> bound_;      // the block that was innermost then
  std::map<size_t, int> entry_blocks_;  // by depth of calls: the block in which the function was called
};

}  // namespace tilepilot::stage
