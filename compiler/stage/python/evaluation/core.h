// The interpreter's own state that hosts need not see: classes of built-in values, name resolution by module, the
// exception being handled, and the objects to release when the interpreter ends.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "compiler/stage/python/evaluation/fibre.h"
#include "compiler/stage/python/evaluation/scope.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

inline constexpr Type kNoneType{"NoneType"}, kBoolType{"bool"}, kIntType{"int"}, kFloatType{"float"}, kStrType{"str"};

class GeneratorRun;

class Core {
 public:
  explicit Core(Interpreter& interpreter);
  ~Core();

  // A built-in class, reachable by name and, if `type` is given, as the class of such values.
  std::shared_ptr<ClassObject> add_class(std::string_view name, const Type* type,
                                         std::shared_ptr<ClassObject> base = nullptr);
  std::shared_ptr<ClassObject> class_for(const Type& type, std::string_view shown_name);
  void set_class(const Type& type, std::shared_ptr<ClassObject> value) { by_type_[&type] = std::move(value); }
  const std::shared_ptr<ClassObject>& object_class() const { return object_class_; }

  std::shared_ptr<const ScopeLayout> layout_of(const syntax::ModuleRef& module);

  // Will be asked to `release` if it outlives the interpreter: functions with closures, classes,
  // instances, modules.
  void watch(const ObjectRef& object);

  // The exceptions that `except` clauses are handling now, innermost last.
  struct Handled {
    Value exception;
    Diagnostic diagnostic;
  };
  std::vector<Handled> handled;

  // True when the native stack is nearly used up. `enter_thread` notes whose stack it is.
  bool near_stack_end() const { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < stack_floor_; }
  void enter_thread();
  // For the time that a generator's stack is in use.
  uintptr_t exchange_stack_floor(uintptr_t floor) { return std::exchange(stack_floor_, floor); }

  // Generators that have begun and not ended, and those of them that nobody holds any more.
  std::unordered_set<GeneratorRun*> waiting;
  std::vector<std::unique_ptr<GeneratorRun>> left;
  static constexpr size_t kMostFibres = 1000;
  // Ends those that nobody holds: their `finally` clauses run. An exception there is nobody's.
  Status end_left_generators();
  // What a generator's body changes of the interpreter while it runs.
  void push_frame(Name function, Span call_span);
  void pop_frame();
  int64_t exchange_steps(int64_t steps);
  Result<FibreStack> take_stack(Span span);
  void give_stack(FibreStack stack);

  // Modules of the standard library that were imported.
  std::shared_ptr<ModuleObject> standard_module(const std::string& name);

 private:
  Interpreter& interpreter_;
  std::shared_ptr<ClassObject> object_class_;
  std::unordered_map<const Type*, std::shared_ptr<ClassObject>> by_type_;
  std::unordered_map<std::string, std::shared_ptr<ClassObject>> anonymous_;  // by name, for types nobody registered
  struct Resolved {
    syntax::ModuleRef module;
    std::shared_ptr<const ScopeLayout> layout;
  };
  std::unordered_map<const syntax::Module*, Resolved> layouts_;
  std::vector<std::weak_ptr<Object>> watched_;
  size_t prune_at_ = 256;
  uintptr_t stack_floor_ = 0;
  std::vector<FibreStack> free_stacks_;
  unsigned long stack_thread_ = 0;
  std::unordered_map<std::string, std::shared_ptr<ModuleObject>> standard_modules_;
};

// Fill the built-in names; each in its own file builtins_*.cpp and exceptions.cpp.
void install_types(Interpreter& interpreter, Core& core);
void install_exceptions(Interpreter& interpreter, Core& core);
void install_number_functions(Interpreter& interpreter);
void install_iteration_functions(Interpreter& interpreter);
void install_object_functions(Interpreter& interpreter);

}  // namespace tilepilot::stage
