// A program compiled for a target, ready to launch on raw tensors.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"
#include "compiler/runtime/library.h"

namespace tilepilot::runtime {

// A tensor of the host program. Strides in elements.
struct TensorView {
  void* data = nullptr;
  ir::DType type;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

// A tensor as a parameter of element type `type` sees it, where host programs have no such elements: two of 4 bits are
// a byte of int8 or uint8, tfloat32 is float32. Other tensors as they are.
TensorView as_parameter(TensorView tensor, ir::DType type);

// Calls body(begin, end) over disjoint pieces of [0, count), on as many threads as the host wants, and returns when all
// are done.
using ParallelFor = std::function<void(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body)>;
// Threads of this process; 0: as many as cores.
ParallelFor thread_pool(int threads = 0);

// An argument: a tensor or a scalar.
using Argument = std::variant<TensorView, int64_t, double>;

// Of the blocks of a launch, where they run one after another. From the last to the first they also see nothing, as far
// as memory suffices, of what others have changed in buffers that they read (separate_blocks.h).
enum class BlockOrder { first_to_last, last_to_first };

// Of one of a program's kernels, what is known of its launches.
struct LaunchFacts {
  Span kernel;           // of the tile program
  std::string function;  // in the generated code; empty where that has none of its own
  int64_t blocks = 0;    // of the last launch; on a processor one may be several of the program's
  // On a processor: whether threads shared the blocks, and where bounds are checked as they run.
  bool threaded = false;
  std::vector<Span> checks = {};
  // On a GPU, as the driver says it; absent elsewhere.
  struct Gpu {
    int registers = 0, local_bytes = 0;             // of a thread
    int64_t static_shared = 0, dynamic_shared = 0;  // of a block, in bytes
    std::array<int64_t, 3> grid = {}, threads = {}, cluster = {};
    int64_t resident_blocks = 0;                // on a multiprocessor at once; 0: not known
    int multiprocessors = 0, most_threads = 0;  // of the device, of a multiprocessor
  };
  std::optional<Gpu> gpu = {};
  // On a processor: what handles one element at a time, and why it is no vector code.
  struct Scalar {
    Span span;
    std::string what, why;
  };
  std::vector<Scalar> scalar = {};
};

// Told of each kernel that a launch of a program runs, by its number among facts(). On a GPU a kernel has only been
// asked for when it ends here.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  virtual void begin_kernel(size_t number) = 0;
  virtual void end_kernel(size_t number) = 0;
};

class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  // Arguments in parameter order. Checks count, dtype, shape (constant extents exactly, symbols consistently) and
  // contiguity: `bad_kernel_argument` names the parameter. `span` is the call, for the message. On a processor several
  // threads may launch at once, while nothing else is called.
  virtual Status launch(const std::vector<Argument>& arguments, const ParallelFor& parallel_for, Span span) = 0;
  // Of the launches to come. Programs must not depend on it, unless a block waits for another one.
  virtual void set_block_order(BlockOrder) {}
  // Of the launches to come; null: nobody. It must outlive them.
  virtual void set_observer(LaunchObserver*) {}
  // By kernel, in the order in which they run; none where nobody knows. After a launch.
  virtual std::vector<LaunchFacts> facts() const { return {}; }
  // What the launches since the last call printed.
  virtual std::string take_printed() { return {}; }
  virtual const ir::Program& program() const = 0;
  virtual const std::string& source() const = 0;  // generated code
};

// Turns staged programs into kernels; the stage calls it when a jit function is first called. Injected, so that
// the evaluator knows no target.
class KernelBackend {
 public:
  virtual ~KernelBackend() = default;
  virtual Result<std::shared_ptr<CompiledKernel>> compile(const ir::Program& program, DiagnosticList& warnings) = 0;
};

// The CPU backend: pipeline, code generation, system compiler.
std::unique_ptr<KernelBackend> cpu_backend(ToolchainOptions options);

}  // namespace tilepilot::runtime
