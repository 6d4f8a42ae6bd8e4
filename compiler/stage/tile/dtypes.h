// Element types as values: `T.float32` (also a cast and a scalar annotation), and everything else that can name one:
// strings, torch dtypes, Python's own types.
#pragma once

#include "compiler/stage/tile/context.h"

namespace tilepilot::stage {

struct DTypeObject final : TypedObject<DTypeObject> {
  static constexpr Type kType{"dtype"};
  DTypeObject(TileContext& context_, ir::DType dtype_) : context(context_), dtype(dtype_) {}
  Result<Value> call(Interpreter&, CallArgs args) override;  // a cast
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  Result<size_t> hash(Interpreter&, Span) override;
  Result<std::string> repr(Interpreter&) override;
  TileContext& context;
  const ir::DType dtype;
};

// The element type that a value names: `value_error` for a string that is no dtype, `type_error` for other values.
Result<ir::DType> resolve_dtype(TileContext& context, const Value& value, Span span);
// Whether a value is of a kind that names dtypes (for operations that accept their arguments in two orders).
bool names_dtype(TileContext& context, const Value& value);

struct NamedDType {
  std::string_view name;
  ir::DType dtype;
};
const std::vector<NamedDType>& dtype_names();

}  // namespace tilepilot::stage
