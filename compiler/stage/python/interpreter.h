// The evaluator: runs the tree of a module. It knows Python; what tile programs and tensors mean comes in through three
// doors: modules for `import`, Objects, and a `Staging` that takes over control flow while a kernel body is traced.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/stage/python/objects/classes.h"
#include "compiler/stage/python/objects/objects.h"
#include "compiler/stage/python/objects/value.h"

namespace tilepilot::stage {

// What a bounded evaluation may use. A step is one statement or one call.
struct Limits {
  int64_t steps = 50'000'000;
  int call_depth = 200;
  int64_t container_items = 20'000'000;  // largest list, tuple, dict or string one operation may make
};

// Runs a piece of program: the body of an `if`, the operand of `and`.
using RunBody = std::function<Status()>;
using RunExpr = std::function<Result<Value>()>;

// An iterable that emits a loop instead of running it (`T.Parallel(...)`, `range(n)` with staged n). The `for`
// statement calls `run` once: it opens the loop, calls `bind_and_run` with the loop variable(s), and closes it.
class StagedLoop : public Object {
 public:
  virtual Status run(Interpreter&, const std::function<Status(Value loop_variables)>& bind_and_run, Span span) = 0;
};

// Installed while a kernel is traced (staged evaluation by overloading, reference/tilelang.md section 2.1). Each
// function is asked only when an operand `is_staged`; what it returns replaces Python's own behaviour. `assign` is
// asked for assignment statements and `:=`; the targets of `for`, `with`, `import`, `def` and comprehensions are bound
// as usual.
class Staging {
 public:
  virtual ~Staging() = default;
  // A run-time value (a tile expression): its truth is unknown now.
  virtual bool is_staged(const Value& value) const = 0;
  virtual Status if_statement(const Value& condition, const RunBody& then, const RunBody* otherwise, Span span) = 0;
  virtual Status while_statement(const RunExpr& condition, const RunBody& body, Span span) = 0;
  virtual Result<Value> conditional(const Value& condition, const RunExpr& then, const RunExpr& otherwise,
                                    Span span) = 0;
  virtual Result<Value> logical(bool is_and, const Value& left, const Value& right, Span span) = 0;
  // Evaluates an operand that Python would only evaluate if it needs it: the right side of `and`, a side of `if else`.
  virtual Result<Value> lazily(const RunExpr& operand) { return operand(); }
  virtual Result<Value> logical_not(const Value& operand, Span span) = 0;
  virtual Status assertion(const Value& condition, const std::string& message, Span span) = 0;
  // `name = value` in the traced function. `previous` is what the name holds now, or null. Returns what to bind, or
  // nullopt if the assignment became a store and the name keeps its value.
  virtual Result<std::optional<Value>> assign(Name name, const Value* previous, Value value, Span span) = 0;
  virtual Status annotated(Name name, const Value& annotation, Span span) = 0;  // `A: T.Tensor[...]` without a value
  // break and continue inside a loop that `StagedLoop` runs.
  virtual Status loop_break(Span span) = 0;
  virtual Status loop_continue(Span span) = 0;
  // Called before each statement of a traced function, so that what it emits carries a span.
  virtual void at_statement(Span span) = 0;
  // A statement failed. True: it is passed over and the trace goes on; the names that it would bind are poisoned.
  virtual bool recovers(const Error&) { return false; }
  // Called when a function begins to run.
  virtual void function_entered() {}
  // A target of `for` or `with` was bound.
  virtual void bound(Name /*name*/, const Value& /*value*/) {}
  // The values of `a, b = values`, before the first of them is assigned: fix those that a store would change.
  virtual Status before_unpacking(std::vector<Value>& /*values*/, Span) { return {}; }
  // What a `for` statement iterates over: may turn a RangeObject into a loop that is emitted. Null: iterate as usual.
  virtual Result<std::shared_ptr<StagedLoop>> loop_over(const Value& /*iterable*/, Span) {
    return std::shared_ptr<StagedLoop>();
  }
  // A built-in (range, min, max, abs, int, float, bool, round, pow, sum) got a staged positional argument. Nullopt: go
  // on as usual.
  virtual Result<std::optional<Value>> builtin(std::string_view /*name*/, CallArgs& /*args*/) {
    return std::optional<Value>();
  }
};

// Where the program is, for crash reports: written before every statement, and after every call. May point into shared
// memory.
struct StatementMarker {
  volatile int32_t file = -1;
  volatile uint32_t offset = 0;
};

class Core;

// Where modules come from that nobody added. A candidate has none: it is one file.
class Importer {
 public:
  virtual ~Importer() = default;
  // The module of that name, or null if there is none. `span` is where the program asks for it.
  virtual Result<std::shared_ptr<ModuleObject>> find(Interpreter&, const std::string& dotted_name, Span span) = 0;
  // What an import of a module gives that is nowhere to be found; null: the import is an error.
  virtual std::shared_ptr<ModuleObject> stand_in(const std::string& dotted_name, Span span) = 0;
};

class Interpreter {
 public:
  explicit Interpreter(SourceMap& sources, Limits limits = {});
  ~Interpreter();

  SourceMap& sources() { return sources_; }
  const SourceMap& sources() const { return sources_; }
  const Limits& limits() const { return limits_; }
  // Warnings, and errors that did not stop the run.
  DiagnosticList& diagnostics() { return diagnostics_; }

  // `import name` finds it here. Submodules are separate entries ("torch.nn"); `import a.b` binds `a`.
  void add_module(std::string_view dotted_name, std::shared_ptr<ModuleObject> module);
  std::shared_ptr<ModuleObject> find_module(std::string_view dotted_name) const;
  // Asked for modules that were not added.
  void set_importer(std::unique_ptr<Importer> importer) { importer_ = std::move(importer); }
  Importer* importer() const { return importer_.get(); }

  // Runs a module's top level in fresh globals.
  Result<std::shared_ptr<ModuleObject>> run_module(const syntax::ModuleRef& tree, std::string module_name);
  // The same in two steps, for importers: modules that import one another meet while one is half-way.
  std::shared_ptr<ModuleObject> make_module(const syntax::ModuleRef& tree, const std::string& module_name);
  Status run_module_in(const syntax::ModuleRef& tree, const std::shared_ptr<ModuleObject>& module);
  // Evaluates one expression in a module's globals (the command line's `--call`).
  Result<Value> evaluate(const syntax::ModuleRef& owner, const syntax::Expr& expression, ModuleObject& globals);

  // Matches a call with a function's parameters, defaults filled in (`*args` a tuple, `**kwargs` a dict): one value a
  // parameter. Then runs the body in a fresh local scope and gives what it returns. Together they are a call.
  Result<std::vector<Value>> bind_arguments(const FunctionObject& function, CallArgs args);
  Result<Value> run_function(FunctionObject& function, std::vector<Value> parameters, Span call_span);

  // The operations of the language, for objects and hosts.
  Result<Value> call(const Value& callee, CallArgs args);
  Result<Value> get_attribute(const Value& object, Name name, Span span);
  Status set_attribute(const Value& object, Name name, Value value, Span span);
  Status delete_attribute(const Value& object, Name name, Span span);
  Result<Value> get_item(const Value& object, const Value& index, Span span);
  Result<Value> call_method(const Value& object, Name name, CallArgs args, Span name_span);
  Status set_item(const Value& object, const Value& index, Value value, Span span);
  Status delete_item(const Value& object, const Value& index, Span span);
  Result<Value> unary(UnaryOp op, const Value& operand, Span span);
  Result<Value> binary(BinaryOp op, const Value& left, const Value& right, Span span);
  Result<Value> binary_in_place(BinaryOp op, const Value& left, const Value& right, Span span);
  Result<Value> compare(CompareOp op, const Value& left, const Value& right, Span span);
  Result<bool> equal(const Value& left, const Value& right, Span span);
  Result<bool> truth(const Value& value, Span span);
  Result<size_t> hash(const Value& value, Span span);
  Result<int64_t> length(const Value& value, Span span);
  Result<std::unique_ptr<Iterator>> iterate(const Value& value, Span span);
  Result<std::vector<Value>> to_vector(const Value& iterable, Span span);
  Result<std::string> repr(const Value& value);
  Result<std::string> str(const Value& value);

  // type(value), and what it is for the objects of a native class (default: a class made from Type::name).
  std::shared_ptr<ClassObject> class_of(const Value& value);
  void set_class(const Type& type, std::shared_ptr<ClassObject> class_object);
  // A built-in name ("int", "ValueError"), or null; hosts may also replace or add one.
  Value* find_builtin(std::string_view name);
  void set_builtin(std::string_view name, Value value);
  // Releases the object when the interpreter ends, if it is alive then: for what may be part of a cycle.
  void watch(const ObjectRef& object);
  // The error of `raise exception_class(message)`, for a built-in exception class ("StopIteration").
  Error raise(std::string_view exception_class, std::string message, Span span);

  // The function call in progress, innermost last; for "called from here" notes.
  struct Frame {
    Name function;
    Span call_span;
  };
  const std::vector<Frame>& frames() const { return frames_; }
  // Adds "called from here", unless there are many such notes already.
  static void note_call(Diagnostic& diagnostic, const Frame& frame);

  Staging* staging() const { return staging_; }
  // Installs `staging` (null: none) for the lifetime of the guard.
  class StagingGuard {
   public:
    StagingGuard(Interpreter& interpreter, Staging* staging)
        : interpreter_(interpreter), previous_(interpreter.staging_) {
      interpreter.staging_ = staging;
    }
    ~StagingGuard() { interpreter_.staging_ = previous_; }
    StagingGuard(const StagingGuard&) = delete;

   private:
    Interpreter& interpreter_;
    Staging* previous_;
  };

  void set_statement_marker(StatementMarker* marker) { statement_marker_ = marker; }
  // Where print() goes, and what is meant for standard error; default: standard output and standard error.
  void set_print(std::function<void(const std::string&)> print) { print_ = std::move(print); }
  void set_print_error(std::function<void(const std::string&)> print) { print_error_ = std::move(print); }
  void print(const std::string& text) { print_(text); }
  void print_error(const std::string& text) { print_error_(text); }
  // Gives the whole budget of steps again, where one interpreter serves many requests.
  void renew_steps() { steps_ = 0; }
  // Charges one step; `step_limit` when the budget is spent.
  Status charge(Span span) {
    if (++steps_ <= limits_.steps) return {};
    return out_of_steps(span);
  }
  // `recursion_limit` when the native stack is nearly used up; for whatever recurses over values.
  Status check_stack(Span span) const;

 private:
  friend class Evaluator;
  friend class Core;
  Error out_of_steps(Span span) const;
  SourceMap& sources_;
  Limits limits_;
  DiagnosticList diagnostics_;
  std::unordered_map<std::string, std::shared_ptr<ModuleObject>> modules_;
  std::unique_ptr<Importer> importer_;
  Namespace builtins_;
  std::vector<Frame> frames_;
  Staging* staging_ = nullptr;
  StatementMarker* statement_marker_ = nullptr;
  StatementMarker own_statement_marker_;
  std::function<void(const std::string&)> print_;
  std::function<void(const std::string&)> print_error_;
  int64_t steps_ = 0;
  std::unique_ptr<Core> core_;  // built-in classes, name resolution, what to release at the end
};

}  // namespace tilepilot::stage
