// A compiled tile program that Python calls with tensors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <map>
#include <optional>
#include <vector>

#include "compiler/runtime/target.h"
#include "compiler/stage/tile/library/jit.h"
#include "python/extension/conversion.h"
#include "python/extension/tensors.h"

namespace tilepilot::package {

namespace nb = nanobind;

// A tensor that stands for another, such as one without data while a graph is recorded, or something that looks on: the
// kernel's operator is for it.
struct NeedsDispatch : std::exception {
  const char* what() const noexcept override { return "the kernel's operator must be called"; }
};

// It is compiled for the processor, and for each GPU that its tensors are on, when the first such call comes, unless
// its target names one place. Copies are the same kernel.
class Kernel {
 public:
  Kernel(std::shared_ptr<stage::JitKernelObject> kernel, runtime::Target target);

  // Returns the outputs: none, one tensor, or a list. Throws NeedsDispatch for tensors that stand for others.
  nb::object call(const nb::args& args, const nb::kwargs& kwargs);
  // The same as the implementation of an operator: torch has looked at gradients and at what tensors stand for.
  nb::object call_below_dispatch(const nb::args& args);
  // The same with arguments that the evaluator has sorted out.
  nb::object run(const std::vector<stage::Value>& inputs);
  // Compiles it for the place of `device`, if it is not yet. Other threads run meanwhile. Where the target names a
  // GPU's architecture and there is no GPU, this shows whether it can be compiled.
  void compile() { (void)source(); }
  std::string source();
  std::string name() const { return program().name; }
  // "cpu" or "cuda": where it runs when no tensor says it.
  std::string device() const;
  std::string target() const;
  // A dict for each: name, dtype, shape (None: a scalar; extents are numbers or text), output, written.
  nb::list parameters() const;
  nb::list outputs() const;
  std::string script() const;
  StageValue value() const { return {stage::Value(state_->kernel)}; }

 private:
  struct State {
    std::shared_ptr<stage::JitKernelObject> kernel;
    runtime::Target target;
    // By GPU. What a launch keeps between its kernels is one stream's, where there is such memory.
    std::map<std::pair<int, void*>, std::unique_ptr<stage::Launcher>> on_gpus;
    std::optional<std::vector<size_t>> written_inputs;
  };
  std::shared_ptr<State> state_;

  stage::Launcher& on_processor() const { return state_->kernel->launcher; }
  stage::Launcher& on_gpu(int number, void* stream) const;
  const ir::Program& program() const { return on_processor().program(); }
  Location default_location() const;
  Location location_of(const std::vector<stage::Value>& inputs) const;
  void check_location(const TensorValue& tensor, size_t position) const;
  std::string input_name(size_t position) const;
  const std::vector<size_t>& written_inputs() const;  // positions
  nb::object run_on_processor(const std::vector<stage::Value>& inputs) const;
  nb::object run_on_gpu(int number, const std::vector<stage::Value>& inputs) const;
};

// A `@tilelang.jit` function of Python.
class JitFunction {
 public:
  // `target` as runtime::parse_target reads it, or "cuda".
  JitFunction(nb::object function, const std::string& target, bool fast_math);

  // A tile program itself, rather than a factory that returns one.
  bool is_eager() const { return jit_->is_eager_function(); }
  nb::object call(const nb::args& args, const nb::kwargs& kwargs);
  // The kernel and the inputs that `call` would run it with, for the kernel's operator; the kernel alone where a call
  // runs nothing.
  nb::object arrange(const nb::args& args, const nb::kwargs& kwargs);
  Kernel compile(const nb::args& args, const nb::kwargs& kwargs);

 private:
  const Kernel& kernel_of(const std::shared_ptr<stage::JitKernelObject>& made);

  std::shared_ptr<stage::JitFunctionObject> jit_;
  runtime::Target target_;
  std::map<const stage::JitKernelObject*, Kernel> kernels_;  // of those that jit_ keeps
};

// The seconds that compiling kernels took, which no benchmark should count.
double compile_seconds();

// The kernel of a `T.prim_func`. `out_idx` as in `tilelang.compile`.
Kernel make_kernel(nb::handle program, nb::handle out_idx, const std::string& target, bool fast_math);

}  // namespace tilepilot::package
