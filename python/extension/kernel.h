// A compiled tile program that Python calls with tensors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "compiler/stage/tile/library/jit.h"

namespace tilepilot::package {

namespace nb = nanobind;

// A tensor that stands for another, such as one without data while a graph is recorded: the kernel's operator is for
// it.
struct NeedsDispatch : std::exception {
  const char* what() const noexcept override { return "the kernel's operator must be called"; }
};

class Kernel {
 public:
  explicit Kernel(std::shared_ptr<stage::JitKernelObject> kernel) : kernel_(std::move(kernel)) {}

  // Returns the outputs: none, one tensor, or a list. Throws NeedsDispatch for tensors that stand for others.
  nb::object call(const nb::args& args, const nb::kwargs& kwargs);
  // The same as the implementation of an operator: torch has looked at gradients and at what tensors stand for.
  nb::object call_below_dispatch(const nb::args& args);
  // The same with arguments that the evaluator has sorted out.
  nb::object run(const std::vector<stage::Value>& inputs);
  // Compiles it, if it is not yet. Other threads run meanwhile.
  void compile();
  std::string source();
  std::string name() const { return launcher().program().name; }
  // A dict for each: name, dtype, shape (None: a scalar; extents are numbers or text), output, written.
  nb::list parameters() const;
  nb::list outputs() const;
  std::string script() const;

 private:
  stage::Launcher& launcher() const { return kernel_->launcher; }
  std::shared_ptr<stage::JitKernelObject> kernel_;
};

// A `@tilelang.jit` function of Python.
class JitFunction {
 public:
  explicit JitFunction(nb::object function);

  // A tile program itself, rather than a factory that returns one.
  bool is_eager() const { return jit_->is_eager_function(); }
  nb::object call(const nb::args& args, const nb::kwargs& kwargs);
  Kernel compile(const nb::args& args, const nb::kwargs& kwargs);

 private:
  std::shared_ptr<stage::JitFunctionObject> jit_;
};

// The kernel of a `T.prim_func`. `out_idx` as in `tilelang.compile`.
Kernel make_kernel(nb::handle program, nb::handle out_idx);

}  // namespace tilepilot::package
