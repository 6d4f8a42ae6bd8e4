// Python's int where it leaves 64 bits. A Value holds an int64_t; only a result that does not fit becomes an IntObject,
// and one that fits again an int64_t: every integer has one form.
#pragma once

#include "compiler/stage/python/objects/big_integer.h"
#include "compiler/stage/python/objects/objects.h"
#include "compiler/stage/python/text/format_spec.h"

namespace tilepilot::stage {

struct IntObject final : TypedObject<IntObject> {
  static constexpr Type kType{"int"};
  bool is_callable() const override { return false; }
  explicit IntObject(BigInteger value_) : value(std::move(value_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return true; }
  Result<std::string> repr(Interpreter&) override { return value.to_text(); }
  Result<std::optional<Value>> unary(Interpreter&, UnaryOp op, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  Result<size_t> hash(Interpreter&, Span) override;
  const BigInteger value;
};

Value make_integer(BigInteger value);
// An int of any size, or a bool.
std::optional<BigInteger> integer_of(const Value& value);
// An error if so many digits make more bits than an int may have.
Status check_digits(size_t count, int base, Span span);
// The nearest float; OverflowError if there is none.
Result<double> to_float(Interpreter& interpreter, const BigInteger& value, Span span);

// `a op b` of two ints; nullopt if the operator is not for ints.
Result<std::optional<Value>> integer_binary(Interpreter& interpreter, BinaryOp op, const BigInteger& a,
                                            const BigInteger& b, Span span);
// pow(base, exponent, modulus)
Result<Value> modular_power(const BigInteger& base, const BigInteger& exponent, const BigInteger& modulus, Span span);
Result<std::string> format_integer(const BigInteger& value, const FormatSpec& spec, Span span);

}  // namespace tilepilot::stage
