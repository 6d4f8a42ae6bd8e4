// `for` and `while`: over Python iterables at compile time, or handed to the staging when the loop is to be emitted.
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluator.h"

namespace tilepilot::stage {

using namespace syntax;

namespace {

// Says what `break` means inside a loop's body, and puts the outer meaning back.
class LoopScope {
 public:
  LoopScope(Activation& activation, LoopKind kind) : activation_(activation), outer_(activation.loop) {
    activation.loop = kind;
  }
  ~LoopScope() { activation_.loop = outer_; }
  LoopScope(const LoopScope&) = delete;

 private:
  Activation& activation_;
  LoopKind outer_;
};

}  // namespace

Result<Flow> Evaluator::visit(const ForStmt& node, Span span) {
  Value iterable = TRY(eval(*node.iterable));
  if (interpreter_.staging_) {
    if (std::shared_ptr<StagedLoop> loop = TRY(staged_loop(iterable, node.iterable->span))) {
      Flow flow = TRY(for_staged(node, *loop, span));
      return flow == Flow::normal ? run(node.otherwise) : flow;
    }
  }
  Flow flow = TRY(for_iterator(node, iterable));
  if (flow == Flow::normal) return run(node.otherwise);
  return flow == Flow::leave_loop ? Flow::normal : flow;
}

Result<std::shared_ptr<StagedLoop>> Evaluator::staged_loop(const Value& iterable, Span span) {
  if (auto* object = iterable.if_object()) {
    if (auto loop = std::dynamic_pointer_cast<StagedLoop>(*object)) return loop;
  }
  return interpreter_.staging_->loop_over(iterable, span);
}

Result<Flow> Evaluator::for_iterator(const ForStmt& node, const Value& iterable) {
  LoopScope scope(activation_, LoopKind::plain);
  std::unique_ptr<Iterator> iterator = TRY(interpreter_.iterate(iterable, node.iterable->span));
  while (std::optional<Value> item = TRY(iterator->next(interpreter_))) {
    TRY(interpreter_.charge(node.iterable->span));
    TRY(assign(*node.target, *std::move(item), Intercept::no));
    Flow flow = TRY(run(node.body));
    if (flow != Flow::normal && flow != Flow::next_iteration) return flow;
  }
  return Flow::normal;
}

Result<Flow> Evaluator::for_staged(const ForStmt& node, StagedLoop& loop, Span span) {
  LoopScope scope(activation_, LoopKind::staged);
  auto bind_and_run = [&](Value loop_variables) -> Status {
    TRY(assign(*node.target, std::move(loop_variables), Intercept::no));
    return run_branch(node.body, span);
  };
  TRY(loop.run(interpreter_, bind_and_run, span));
  return Flow::normal;
}

Result<Flow> Evaluator::visit(const WhileStmt& node, Span span) {
  Value condition = TRY(eval(*node.condition));
  if (is_staged(condition)) return staged_while(node, span);
  while (TRY(holds(condition, node.condition->span))) {
    LoopScope scope(activation_, LoopKind::plain_while);
    TRY(interpreter_.charge(node.condition->span));
    Flow flow = TRY(run(node.body));
    if (flow == Flow::leave_loop) return Flow::normal;
    if (flow != Flow::normal && flow != Flow::next_iteration) return flow;
    condition = TRY(eval(*node.condition));
  }
  return run(node.otherwise);
}

Result<Flow> Evaluator::staged_while(const WhileStmt& node, Span span) {
  LoopScope scope(activation_, LoopKind::staged);
  TRY(interpreter_.staging_->while_statement([&] { return eval(*node.condition); },
                                             [&] { return run_branch(node.body, span); }, span));
  return run(node.otherwise);
}

}  // namespace tilepilot::stage
