// What the body of a tile program declares about its parameters: tensors (`A: T.Tensor[[M, N], dtype]`), sizes that
// follow from them (`T.const`) and outputs (`T.empty`). A function decorated with `@tilelang.jit` may use all of it and
// is traced twice (eager.h); a `T.prim_func` knows its sizes and has the other two.
#pragma once

#include <map>
#include <set>

#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

// A tensor that the call passes, by its type; or what stands for one when the function is only compiled.
struct TensorType {
  ir::DType dtype;
  std::vector<int64_t> shape, strides;
};

class Declarations {
 public:
  struct Tensor {
    Name name;
    std::optional<TensorType> actual;      // null: the call passes none
    std::shared_ptr<BufferObject> object;  // what the body sees; complete once annotated
    bool annotated = false;
  };

  explicit Declarations(bool has_constants_) : has_constants(has_constants_) {}

  // A tensor parameter that is not annotated yet; what the body sees.
  Value add_tensor(TileContext& context, Name name, std::optional<TensorType> actual, Span span);
  // The value of `T.const(name)`.
  Result<Value> constant(TileContext& context, const std::string& name, Span span);
  Result<Value> output(TileContext& context, const TensorSpec& spec, Span span);
  Status annotate(TileContext& context, Name name, const Value& annotation, Span span);
  Status declare(TileContext& context, Tensor& tensor, const TensorSpec& spec, Span span);
  // Every tensor parameter is annotated.
  Status check_annotated(Span span) const;
  bool all_annotated() const;
  // Annotations may come in any order; the call passes arguments in the function's. Outputs come last.
  void sort_parameters(ir::Program& program, const FunctionObject& function) const;
  bool asks_for(const std::string& size) const { return asked_.count(size) > 0; }
  // The parameters of `program` that the function returns as outputs, in the order of `returned`. `invalid_jit` if one
  // is not returned, or something else is.
  Result<std::vector<size_t>> returned_outputs(const ir::Program& program, const Value& returned, Span function) const;

  const bool has_constants;    // `T.const` may be used
  bool finding_sizes = false;  // the first of two passes
  bool sizes_found = false;    // that pass reached its end: its error only stopped the evaluation
  std::vector<Tensor> tensors;
  std::map<std::string, int64_t> sizes;
  std::vector<std::shared_ptr<BufferObject>> outputs;

 private:
  Status find_sizes(const Tensor& tensor, const TensorSpec& spec, Span span);
  // `declared` is an extent or stride that is `actual` in the tensor; `what` names it.
  Status find_size(const ir::Expr& declared, int64_t actual, const std::string& what, Span span);
  Result<size_t> output_position(const ir::Program& program, const Value& item, Span function) const;

  std::map<std::string, ir::Var> unknown_;  // sizes to be found
  std::set<std::string> asked_;
};

// Whether the body of a function annotates its parameter `i`: `A: T.Tensor[...]` as a statement.
bool annotates_in_body(const FunctionObject& function, size_t i);

}  // namespace tilepilot::stage
