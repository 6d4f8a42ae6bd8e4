// bytes: an immutable sequence of numbers from 0 to 255, written `b"..."`.
#pragma once

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

struct BytesObject final : TypedObject<BytesObject> {
  static constexpr Type kType{"bytes"};
  explicit BytesObject(std::string data_) : data(std::move(data_)) {}
  bool is_callable() const override { return false; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span) override { return static_cast<int64_t>(data.size()); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return !data.empty(); }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp, const Value&, bool, Span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp, const Value&, Span) override;
  Result<size_t> hash(Interpreter&, Span) override { return std::hash<std::string>()(data); }
  const std::string data;
};

// Calls of the built-in that the parser writes for a literal: its argument holds one character a byte.
Result<Value> bytes_from_literal(Interpreter&, CallArgs& args);
Result<Value> make_bytes(Interpreter&, CallArgs& args);  // bytes(...)
Result<Value> bytes_from_hex(Interpreter&, CallArgs& args);
Result<Value> integer_from_bytes(Interpreter&, CallArgs& args);                   // int.from_bytes(...)
Result<Value> integer_to_bytes(Interpreter&, const Value& self, CallArgs& args);  // int.to_bytes(...)
Result<Value> encode_text(Interpreter&, const Value& self, CallArgs& args);       // str.encode(...)

}  // namespace tilepilot::stage
