// `tilelang.jit` and `tilelang.compile`: programs as callable kernels. Three forms: a program decorated directly, a
// factory that returns one, and an eager function (eager.h).
#pragma once

#include <unordered_map>

#include "compiler/stage/tile/context.h"
#include "compiler/stage/tile/eager.h"
#include "compiler/stage/tile/launcher.h"

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
  JitFunctionObject(ContextRef context, std::shared_ptr<FunctionObject> function, Value out_idx)
      : context_(std::move(context)),
        function_(std::move(function)),
        out_idx_(std::move(out_idx)),
        eager_(is_eager(*function_)) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  const FunctionObject& function() const { return *function_; }
  bool is_eager_function() const { return eager_; }

 private:
  // The arguments of a call, sorted out: tensors by position, run-time scalars, and the key of everything that the
  // program depends on.
  struct Call {
    std::vector<Value> values;
    std::map<size_t, TensorType> tensors;
    std::vector<Value> inputs;  // what the kernel gets, in order
    std::string key;
    std::vector<Value> kept;  // objects whose addresses are part of the key
    bool only_types = false;  // annotations stand for tensors: compile, do not run
  };
  Result<Call> sort_out(Interpreter& interpreter, CallArgs args) const;
  Result<std::shared_ptr<JitKernelObject>> kernel_for(Call& call, Span span);
  Result<std::shared_ptr<JitKernelObject>> run_factory(Call& call, Span span);
  Result<std::shared_ptr<JitKernelObject>> stage_eager(Call& call, Span span);

  ContextRef context_;
  std::shared_ptr<FunctionObject> function_;
  Value out_idx_;
  bool eager_;
  std::unordered_map<std::string, std::shared_ptr<JitKernelObject>> kernels_;
  std::vector<Value> kept_;  // so that no address in a key is used again
};

// Gives `jit`, `compile` and their relatives to the module `tilelang`.
void add_jit(const ContextRef& context, ModuleObject& tilelang);

}  // namespace tilepilot::stage
