// Generators: the call of a function with `yield` makes one, and its body runs piece by piece as somebody asks for
// values. Generator expressions are in comprehensions.cpp; they need no stack of their own.
#pragma once

#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/evaluation/fibre.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

// The run of a generator function's body, from its first `yield` to its end.
class GeneratorRun {
 public:
  GeneratorRun(Core& core, Interpreter& interpreter, std::shared_ptr<FunctionObject> function,
               std::vector<Value> parameters);
  ~GeneratorRun();
  GeneratorRun(const GeneratorRun&) = delete;

  // What the `yield` at which it waits gives, or the exception that is raised there.
  struct Message {
    Value sent = {};
    Error thrown = {};
  };
  // Runs on to the next `yield` and gives its value; nullopt: the body has ended.
  Result<std::optional<Value>> resume(Message message, Span span);
  // Raises GeneratorExit where it waits, so that its `finally` clauses run.
  Status close(Span span);
  bool under_way() const { return fibre_ != nullptr; }
  // At the end of the interpreter, of one that never began: its arguments may refer to it.
  void forget_arguments() { parameters_.clear(); }
  Core& core() const { return core_; }
  Interpreter& interpreter() const { return interpreter_; }
  const Value& result() const { return result_; }  // what the body returned
  Name name() const { return function_->name; }

  // From the body: gives `value` to whoever resumed, and waits for the next message.
  Result<Value> yield(Value value, Span span);
  // The end of the interpreter: leaves the body without running any more of the program.
  void abandon();

 private:
  Status start(Span span);
  void run_body();
  void switch_to_body(Span span);
  Error end(Span span);

  Core& core_;
  Interpreter& interpreter_;
  std::shared_ptr<FunctionObject> function_;
  std::vector<Value> parameters_;
  std::unique_ptr<Fibre> fibre_;  // while it has begun and not ended
  bool running_ = false, ended_ = false;
  Message message_;
  std::optional<Value> yielded_;
  Value result_;
  Error error_;
  std::vector<Core::Handled> handled_;  // the exceptions whose `except` clauses it is in
};

struct GeneratorObject final : TypedObject<GeneratorObject> {
  static constexpr Type kType{"generator"};
  explicit GeneratorObject(std::unique_ptr<GeneratorRun> run_) : run(std::move(run_)) {}
  ~GeneratorObject() override;
  bool is_callable() const override { return false; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  void release() override;
  // next(generator), without a value: StopIteration with what the body returned.
  Result<Value> resume(GeneratorRun::Message message, Span span);

  std::unique_ptr<GeneratorRun> run;
};

}  // namespace tilepilot::stage
