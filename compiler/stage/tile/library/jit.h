// `tilelang.jit` and `tilelang.compile`: programs as callable kernels. Three forms: a program decorated directly, a
// factory that returns one, and an eager function (eager.h). Which of the last two a function is shows in its text, or
// when it is run as a factory and opens a kernel itself.
#pragma once

#include <unordered_map>

#include "compiler/stage/tile/kernel/context.h"
#include "compiler/stage/tile/library/eager.h"
#include "compiler/stage/tile/library/launcher.h"

namespace tilepilot::stage {

// A program to call with tensors.
struct JitKernelObject final : TypedObject<JitKernelObject> {
  static constexpr Type kType{"JITKernel"};
  explicit JitKernelObject(Launcher launcher_) : launcher(std::move(launcher_)) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  // Tuners and scripts note what they like (`kernel.latency = ...`).
  Status set_attribute(Interpreter&, Name name, Value value, Span span) override;
  void release() override { attributes.clear(); }
  Launcher launcher;
  Namespace attributes;

 private:
  // What profilers and tuners read, and what was noted.
  Result<std::optional<Value>> script_attribute(Interpreter&, Name name, Span span);
};

// A decorated Python function: a factory or an eager function. What it makes is kept for equal arguments.
class JitFunctionObject final : public TypedObject<JitFunctionObject> {
 public:
  static constexpr Type kType{"JITFunction"};
  JitFunctionObject(ContextRef context, std::shared_ptr<FunctionObject> function, Value out_idx, bool fast_math)
      : context_(std::move(context)),
        function_(std::move(function)),
        out_idx_(std::move(out_idx)),
        fast_math_(fast_math),
        eager_(is_eager(*function_)) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  // What a call runs: the kernel, and its arguments in order. `runs` is false where the call asks for the kernel alone.
  struct Prepared {
    std::shared_ptr<JitKernelObject> kernel;
    std::vector<Value> inputs;
    bool runs = false;
  };
  Result<Prepared> prepare(Interpreter&, CallArgs args);
  FunctionObject& function() { return *function_; }
  const FunctionObject& function() const { return *function_; }
  bool is_eager_function() const { return eager_; }

 private:
  // The arguments of a call, sorted out: tensors by position, run-time scalars, and the key of everything that the
  // program depends on.
  struct Call : EagerCall {
    std::vector<Value> inputs;  // what the kernel gets, in order
    std::string key;
    std::vector<Value> kept;   // objects whose addresses are part of the key
    bool only_types = false;   // annotations stand for tensors: compile, do not run
    std::string_view missing;  // a tensor that the call leaves out
  };
  using Kernel = std::shared_ptr<JitKernelObject>;
  // A kernel for calls that read the same outside of the program; null: none reads anything there.
  struct Version {
    Kernel kernel;
    std::shared_ptr<OuterReads> reads;
  };
  using Method = Result<Value> (JitFunctionObject::*)(Interpreter&, CallArgs);
  Result<Value> compile(Interpreter&, CallArgs args);
  Result<Value> get_kernel_source(Interpreter&, CallArgs args);
  Result<Value> get_tir(Interpreter&, CallArgs args);
  Result<Value> par_compile(Interpreter&, CallArgs args);
  Method method(std::string_view name) const;

  // The kernel for a call. `call` gets its arguments sorted out.
  Result<Kernel> kernel_of(Interpreter&, CallArgs args, Call& call);
  Result<Call> sort_out(Interpreter& interpreter, CallArgs args) const;
  void take_sizes(CallArgs& args, Call& call) const;
  void add_missing_tensors(CallArgs& args) const;
  void sort_argument(size_t position, Call& call) const;
  Result<Kernel> kernel_for(Call& call);
  Result<Version> traced(Call& call);
  Result<Kernel> run_factory(Call& call);
  Result<Kernel> stage_eager(Call& call);

  ContextRef context_;
  std::shared_ptr<FunctionObject> function_;
  Value out_idx_;
  bool fast_math_;
  bool eager_;
  std::unordered_map<std::string, std::vector<Version>> kernels_;  // the latest last
  std::vector<Value> kept_;                                        // so that no address in a key is used again
};

// Gives `jit`, `compile` and their relatives to the module `tilelang`.
void add_jit(const ContextRef& context, ModuleObject& tilelang);

}  // namespace tilepilot::stage
