// The tile language: the modules `tilelang` and `tilelang.language`, jit functions in both dialects, and the tracing of
// kernel bodies into tile IR. Semantics: reference TileLang 0.1.13, both dialects (stacked `@tilelang.jit` on
// `@T.prim_func`; lazy factories; eager
// `@tilelang.jit` with `T.const` and `T.empty`).
#pragma once

#include <memory>
#include <optional>

#include "compiler/ir/stmt.h"
#include "compiler/runtime/kernel.h"
#include "compiler/stage/python/script.h"
#include "compiler/stage/tile/outer_reads.h"

namespace tilepilot::stage {

struct TileContext;

// How kernels meet the host's tensors. eval implements it over LibTorch; the compiler's own tests over plain arrays.
class TensorHost {
 public:
  virtual ~TensorHost() = default;
  // The memory of a tensor value, or nullopt if `value` is not a tensor.
  virtual std::optional<runtime::TensorView> view(const Value& value) = 0;
  // A new, uninitialised, contiguous tensor on the target's device. Where the host has no such elements, one that
  // `runtime::as_parameter` sees so.
  virtual Result<Value> allocate(ir::DType type, const std::vector<int64_t>& shape, Span span) = 0;
  virtual const runtime::ParallelFor& parallel_for() = 0;
  // The dtype that a host value such as torch.float16 stands for.
  virtual std::optional<ir::DType> dtype(const Value& value) = 0;
};

struct TileOptions {
  runtime::KernelBackend* backend = nullptr;  // null: kernels can be staged, not run
  TensorHost* host = nullptr;                 // null: likewise
  // Programs may name memory by its address (`T.make_tensor`): for scripts of the user's own, not for candidates.
  bool raw_memory = false;
  // Called after each staging with the fresh program (the command `compile` listens here).
  std::function<void(const ir::Program&)> on_program;
  // Called before and after each kernel launch: the judge accounts time in generated code with it.
  std::function<void(const ir::Program&, bool begins)> on_launch;
  // Where programs read values that others may change between two calls. Empty: there are none.
  MakeOuterReads outer_reads;
};

// The parts of `tilelang` that are written in Python, for scripts.
std::vector<EmbeddedModule> tile_modules();

// Registers `tilelang`, `tilelang.language` and its submodules with the interpreter. What it returns is theirs to keep.
std::shared_ptr<TileContext> install_tile_language(Interpreter& interpreter, TileOptions options);

// Registers `_tilepilot_tuning`, which the Python modules for tuning import: for scripts.
void install_tuning(Interpreter& interpreter);

// A value that is a compiled or stageable program: a PrimFunc, a jit kernel, or an eager jit function with its shapes
// known. For the command line's `compile`: the program behind a value, or null.
const ir::Program* program_of(const Value& value);
// The function behind a factory of programs: a `@tilelang.jit` function that is not eager, or a plain function that
// defines a `T.prim_func`. Null for other values.
const FunctionObject* factory_of(const Value& value);

// The names `T.` has, for "did you mean" and for the documentation, with one line each.
struct TileName {
  std::string_view name;
  std::string_view summary;
};
const std::vector<TileName>& tile_names();

// A stand-in for `torch` where LibTorch is absent (`tilepilot compile`): dtypes are real, nn.Module can be subclassed,
// every other use is an error that names the command that can do it. eval installs the real one instead.
void install_torch_stub(Interpreter& interpreter);

}  // namespace tilepilot::stage
