// The current dialect: a `@tilelang.jit` function whose body declares its tensors (`A: T.Tensor[[M, N], dtype]`), its
// sizes (`T.const`) and its outputs (`T.empty`). It is traced once for each combination of compile-time arguments and
// tensor shapes: a first pass up to the last annotation finds the sizes, a second builds the program with them known.
#pragma once

#include <map>

#include "compiler/stage/tile/buffers.h"
#include "compiler/stage/tile/context.h"

namespace tilepilot::stage {

// A tensor that the call passes, by its type; or what stands for one when the function is only compiled.
struct TensorType {
  ir::DType dtype;
  std::vector<int64_t> shape;
};

// The state of one trace of an eager function. T.const, T.empty and annotations of the body arrive here.
struct EagerTrace {
  struct TensorParameter {
    Name name;
    TensorType actual;
    std::shared_ptr<BufferObject> object;  // what the body sees; complete once annotated
    bool annotated = false;
  };

  Result<Value> constant(TileContext& context, const std::string& name, Span span);
  Result<Value> output(TileContext& context, const TensorSpec& spec, Span span);
  Status annotate(TileContext& context, Name name, const Value& annotation, Span span);
  Status declare(TileContext& context, TensorParameter& parameter, const TensorSpec& spec, Span span);
  Status check_annotated(Span span) const;
  bool all_annotated() const;

  bool finding_sizes = true;  // the first pass
  bool sizes_found = false;   // the first pass reached its end: its error only stopped the evaluation
  std::vector<TensorParameter> tensors;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, ir::Var> unknown;  // sizes asked for in the first pass
  std::vector<std::shared_ptr<BufferObject>> outputs;

 private:
  Status find_sizes(const TensorParameter& parameter, const TensorSpec& spec, Span span);
};

// The program for these arguments (one a parameter; tensors at the positions in `tensors`), and which of its parameters
// the call returns.
struct EagerProgram {
  ir::Program program;
  std::vector<size_t> outputs;
};
Result<EagerProgram> trace_eager(const ContextRef& context, FunctionObject& function, const std::vector<Value>& values,
                                 const std::map<size_t, TensorType>& tensors, Span span);

// Whether the body of a `@tilelang.jit` function is itself a tile program, rather than a factory that returns one.
bool is_eager(const FunctionObject& function);

// Whether an argument of an eager function is a run-time number: one annotated with a tile dtype (`n: T.int32`).
bool is_scalar_parameter(const FunctionObject& function, size_t i);

}  // namespace tilepilot::stage
