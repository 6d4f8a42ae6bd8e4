// Buffers as Python values: whole buffers, boxes of them (slices), scalars made by `T.alloc_var`, and the annotations
// that declare kernel parameters.
#pragma once

#include "compiler/ir/stmt.h"
#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

class TileArguments;

// `A`. The IR buffer is created with a provisional name; the first assignment gives it the program's.
struct BufferObject final : TypedObject<BufferObject> {
  static constexpr Type kType{"buffer"};
  BufferObject(TileContext& context_, std::shared_ptr<ir::BufferData> buffer_)
      : context(context_), buffer(std::move(buffer_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Status set_item(Interpreter&, const Value& index, Value value, Span span) override;
  Result<std::optional<Value>> unary(Interpreter&, UnaryOp op, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value&, bool, Span span) override;
  Result<std::optional<Value>> binary_in_place(Interpreter&, BinaryOp op, const Value& other, Span span) override;
  Result<std::string> repr(Interpreter&) override { return name(); }
  const std::string& name() const { return buffer->name; }
  TileContext& context;
  const std::shared_ptr<ir::BufferData> buffer;
  bool named = false;
};

// Stands in a region for an extent that is known only at run time, until what uses the region finds a constant for it.
constexpr int64_t kRunTimeExtent = -1;

// `A[i, j:k]`: a box. A *point* (`A[i, j]`) is a TileExpr that holds a load.
struct RegionObject final : TypedObject<RegionObject> {
  static constexpr Type kType{"buffer slice"};
  RegionObject(ir::Region region_, std::vector<ir::Expr> extents_ = {})
      : region(std::move(region_)), extents(std::move(extents_)) {}
  const ir::Region region;
  // If some are known only at run time, those of all axes; `region` has `kRunTimeExtent` there. Else empty.
  const std::vector<ir::Expr> extents;
};

// `v = T.alloc_var(dtype)`, and the parameter of a macro that refers to an element: reading loads, assigning the name
// stores.
struct VarObject final : TypedObject<VarObject> {
  static constexpr Type kType{"tile variable"};
  // A fresh variable, the one element of its buffer.
  VarObject(TileContext& context_, std::shared_ptr<ir::BufferData> fresh_)
      : context(context_),
        buffer(fresh_),
        indices{ir::int_imm(0, ir::kInt32, fresh_->span)},
        fresh(std::move(fresh_)) {}
  VarObject(TileContext& context_, ir::Buffer buffer_, std::vector<ir::Expr> indices_)
      : context(context_), buffer(std::move(buffer_)), indices(std::move(indices_)) {}
  ir::Expr load(Span span) const;
  Status store(const Value& value, Span span) const;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Status set_item(Interpreter&, const Value& index, Value value, Span span) override;
  Result<bool> truth(Interpreter&, Span span) override;
  Result<std::optional<Value>> unary(Interpreter&, UnaryOp op, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  TileContext& context;
  const ir::Buffer buffer;
  const std::vector<ir::Expr> indices;
  const std::shared_ptr<ir::BufferData> fresh;  // to be named by the first assignment; null: an element of another
  bool named = false;
};

// `T.Tensor((M, K), "float16")` as an annotation, or in place of a tensor where only its type matters.
struct TensorSpec final : TypedObject<TensorSpec> {
  static constexpr Type kType{"tensor annotation"};
  ir::DType dtype;
  std::vector<ir::Expr> shape;
  std::vector<ir::Expr> strides;  // empty: contiguous
};

// `T.Tensor` itself: called or subscripted, it makes a TensorSpec.
struct TensorSpecMaker final : TypedObject<TensorSpecMaker> {
  static constexpr Type kType{"tensor type"};
  TensorSpecMaker(TileContext& context_, std::string name_, bool strided_)
      : context(context_), name(std::move(name_)), strided(strided_) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  TileContext& context;
  const std::string name;  // "T.Tensor"
  const bool strided;
};

// A shape written as an int, tuple or list of ints and integer expressions.
Result<std::vector<ir::Expr>> to_shape(const Value& value, std::string_view what, Span span);
// The same where every extent must be a positive constant.
Result<std::vector<int64_t>> to_constant_shape(const Value& value, std::string_view what, Span span);

// The buffer of a tensor annotation.
std::shared_ptr<ir::BufferData> declare_buffer(const TensorSpec& spec, std::string name, Span span);

// The memory of `source` under another shape (None: its own) and dtype. `function` is what asks, for messages.
struct ViewRequest {
  std::string_view function;
  Value shape;
  std::optional<ir::DType> type;
  Span span;
};
Result<Value> view_of(TileContext& context, const BufferObject& source, const ViewRequest& request);

// T.alloc_global(shape, dtype): global memory of the program's own.
Result<Value> alloc_global(TileArguments& arguments);

// Elements of 4 bits that others see, as tensors or through views, lie in rows of whole bytes.
Status check_rows(const ir::BufferData& buffer);

Error no_constant_extent(const ir::BufferData& buffer, const ir::Expr& extent, Span span);

// "float16[128, 32]"
std::string describe(const ir::BufferData& buffer);
std::string describe_extents(const std::vector<int64_t>& extents);
Note declaration_note(const ir::BufferData& buffer);

}  // namespace tilepilot::stage
