// Names of the language that are types: they stand in annotations, and `isinstance` knows what belongs to them.
#pragma once

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

struct TypeMarker final : TypedObject<TypeMarker> {
  static constexpr Type kType{"type marker"};
  using Membership = bool (*)(const Value&);
  TypeMarker(std::string name_, bool by_reference_, Membership has_)
      : name(std::move(name_)), by_reference(by_reference_), has(has_) {}
  Result<std::string> repr(Interpreter&) override { return name; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  // `T.PrimExpr | int`
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value&, bool, Span) override {
    return op == BinaryOp::bit_or ? std::optional<Value>(Value(shared_from_this())) : std::nullopt;
  }
  const std::string name;   // "T.Ref"
  const bool by_reference;  // a macro's parameter of this type stands for the caller's variable
  const Membership has;
};

// One of `PrimExpr`, `PrimFunc`, `Var`, `Ref`, `Buffer` under the name `prefix` + `name`.
Value make_marker(std::string_view prefix, std::string_view name);
// What `isinstance` asks a type for.
Value instance_check(TypeMarker::Membership has);
bool is_buffer(const Value& value);

}  // namespace tilepilot::stage
