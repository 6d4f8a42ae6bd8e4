// Element types as values: `T.float32` (also a cast and a scalar annotation), and everything else that can name one:
// strings, torch dtypes, Python's own types.
#pragma once

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

// In Python it is a string, its canonical name, and behaves as one.
struct DTypeObject final : TypedObject<DTypeObject> {
  static constexpr Type kType{"dtype"};
  DTypeObject(TileContext& context_, ir::DType dtype_)
      : context(context_), dtype(dtype_), name(ir::to_string(dtype_)) {}
  const std::string* as_text() const override { return &name; }
  Result<Value> call(Interpreter&, CallArgs args) override;  // a cast
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span span) override;
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  Result<size_t> hash(Interpreter&, Span) override;
  Result<std::string> repr(Interpreter&) override;
  Value text() const { return Value(name); }
  TileContext& context;
  const ir::DType dtype;
  const std::string name;  // the canonical one
};

// `T.dtype`: called, the dtype that a value names; as an annotation, the type of dtypes.
struct DTypeMaker final : TypedObject<DTypeMaker> {
  static constexpr Type kType{"type"};
  explicit DTypeMaker(TileContext& context_) : context(context_) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value&, bool, Span) override;
  Result<std::string> repr(Interpreter&) override { return std::string("T.dtype"); }
  TileContext& context;
};

// The element type that a value names: `value_error` for a string that is no dtype, `type_error` for other values.
Result<ir::DType> resolve_dtype(TileContext& context, const Value& value, Span span);
// The element type that a value other than a string names.
std::optional<ir::DType> named_by_object(TileContext& context, const Value& value);
// Whether a value is of a kind that names dtypes (for operations that accept their arguments in two orders).
bool names_dtype(TileContext& context, const Value& value);

// The dtype of torch's tensors that hold such elements.
Result<Value> torch_dtype(Interpreter& interpreter, ir::DType dtype, Span span);

// The module `tilelang.language.fp8`: which types of 8 bits a target has.
std::shared_ptr<ModuleObject> make_fp8(TileContext& context);

struct NamedDType {
  std::string_view name;
  ir::DType dtype;
};
const std::vector<NamedDType>& dtype_names();

}  // namespace tilepilot::stage
