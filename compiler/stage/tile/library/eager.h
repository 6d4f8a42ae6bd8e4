// The current dialect: a `@tilelang.jit` function whose body is the program and declares its tensors, sizes and outputs
// (declarations.h). It is traced once for each combination of compile-time arguments and tensor shapes: a first pass up
// to the last annotation finds the sizes, a second builds the program with them known.
#pragma once

#include <map>

#include "compiler/stage/tile/buffers/declarations.h"

namespace tilepilot::stage {

// The arguments of a call by parameter of the function. `tensors` has the tensors and those that the call leaves out
// (nullopt); `sizes` the values that the call itself gives to `T.const`.
struct EagerCall {
  std::vector<Value> values;
  std::map<size_t, std::optional<TensorType>> tensors;
  std::map<std::string, int64_t> sizes;
  Span span;
};

// The program for these arguments, and which of its parameters the call returns.
struct EagerProgram {
  ir::Program program;
  std::vector<size_t> outputs;
};
Result<EagerProgram> trace_eager(const ContextRef& context, FunctionObject& function, const EagerCall& call);

// Whether the text of a `@tilelang.jit` function says that it is a tile program itself, rather than a factory that
// returns one. False if a function that it calls opens the kernel: that shows when it runs.
bool is_eager(const FunctionObject& function);

// Whether an argument of an eager function is a run-time number: one annotated with a tile dtype (`n: T.int32`).
bool is_scalar_parameter(const FunctionObject& function, size_t i);
// Whether it is a tensor whatever the call passes: one annotated in the head or body of the function.
bool is_tensor_parameter(const FunctionObject& function, size_t i);

}  // namespace tilepilot::stage
