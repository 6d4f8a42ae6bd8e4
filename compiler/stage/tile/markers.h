// Names of the language that only stand in annotations.
#pragma once

#include "compiler/stage/python/objects.h"

namespace tilepilot::stage {

struct TypeMarker final : TypedObject<TypeMarker> {
  static constexpr Type kType{"type marker"};
  explicit TypeMarker(std::string name_, bool by_reference_ = false)
      : name(std::move(name_)), by_reference(by_reference_) {}
  Result<std::string> repr(Interpreter&) override { return name; }
  // `T.PrimExpr | int`
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value&, bool, Span) override {
    return op == BinaryOp::bit_or ? std::optional<Value>(Value(shared_from_this())) : std::nullopt;
  }
  const std::string name;   // "T.Ref"
  const bool by_reference;  // a macro's parameter of this type stands for the caller's variable
};

}  // namespace tilepilot::stage
