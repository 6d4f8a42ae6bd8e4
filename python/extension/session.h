// The compiler in the user's process. Python runs the user's program; what stands inside a tile program is staged by
// our evaluator, of which there is one. It is used under the GIL, and by one thread at a time (`SessionLock`), also
// while Python code that it called lets other threads run.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "compiler/runtime/kernel.h"
#include "compiler/stage/tile/kernel/context.h"
#include "python/extension/gpu.h"

namespace tilepilot::package {

namespace nb = nanobind;

class Session {
 public:
  // Made at the first use, and never destroyed: objects of Python outlive all that could be done at the end.
  static Session& get();

  stage::Interpreter& interpreter() { return *interpreter_; }
  stage::TileContext& context() { return *context_; }
  SourceMap& sources() { return sources_; }
  Gpus& gpus() { return gpus_; }

  // Where the tile program is that called into Python: what Python builds there gets this span.
  Span span;
  // The exception that Python code raised last inside the evaluator, for `__cause__`.
  nb::object python_exception;

  // How many threads share a kernel's blocks: as many as torch has, unless the user says otherwise (0: ask torch).
  void set_threads(int threads);
  const runtime::ParallelFor& parallel_for();

  // A process that forks may have threads that are half-way, and what they hold then, the child holds for ever: a fork
  // waits until no thread compiles or launches.
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  // Held while a thread compiles or launches, which go on side by side until a fork wants to begin.
  struct NativeGate {
    std::mutex entrance;
    std::shared_mutex inside;
  };
  NativeGate& native_gate() { return *native_gate_; }

 private:
  friend class SessionLock;
  Session();
  void leave_threads_behind();

  static Session* made_;  // null until the first use
  SourceMap sources_;
  std::unique_ptr<stage::TensorHost> host_;
  std::unique_ptr<runtime::KernelBackend> backend_;
  std::unique_ptr<stage::Interpreter> interpreter_;
  std::shared_ptr<stage::TileContext> context_;
  Gpus gpus_;
  std::unique_ptr<std::recursive_mutex> mutex_;
  std::unique_ptr<NativeGate> native_gate_;
  int threads_ = 0;
  runtime::ParallelFor parallel_for_;
};

// Makes this thread the one that uses the evaluator. Whoever has to wait lets others have the GIL meanwhile. The
// outermost lock of a thread begins a request: it gets a whole budget of steps.
class SessionLock {
 public:
  SessionLock();
  ~SessionLock();
  SessionLock(const SessionLock&) = delete;

 private:
  std::recursive_mutex& mutex_;  // a fork puts another one in its place
};

// Lets others have the GIL for its lifetime, in which a thread may compile or launch. When Python ends meanwhile, the
// thread waits for the end of the process: to take the GIL then would end it in the middle of C++ code.
class NativeWork {
 public:
  NativeWork();
  ~NativeWork();
  NativeWork(const NativeWork&) = delete;

 private:
  PyThreadState* state_;
};

// For `on_launch` of stage/tile/tile.h: each launch of a kernel has a `Guard` for as long as it goes on.
template <typename Guard>
void guard_launch(const ir::Program&, bool begins) {
  static thread_local std::optional<Guard> guard;
  if (begins)
    guard.emplace();
  else
    guard.reset();
}

}  // namespace tilepilot::package
