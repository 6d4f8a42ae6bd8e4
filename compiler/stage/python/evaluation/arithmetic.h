// Python's arithmetic on int, float and bool, exact to the last bit. Integers that leave 64 bits go on in integers.h.
#pragma once

#include "compiler/stage/python/objects/value.h"

namespace tilepilot::stage {

// `left op right` for two numbers; nullopt if an operand is not a number or the operator is not for numbers.
Result<std::optional<Value>> number_binary(Interpreter& interpreter, BinaryOp op, const Value& left, const Value& right,
                                           Span span);
Result<std::optional<Value>> number_unary(UnaryOp op, const Value& operand);

// floor(a / b) and a - b * floor(a / b); b is not zero.
std::optional<int64_t> floor_divide(int64_t a, int64_t b);  // nullopt: beyond 64 bits
int64_t floor_modulo(int64_t a, int64_t b);
double floor_divide(double a, double b);
double floor_modulo(double a, double b);
// a / b rounded once, for any 64-bit integers; b is not zero.
double true_divide(int64_t a, int64_t b);
// -1, 0 or 1; nullopt if `b` is not a number (NaN).
std::optional<int> compare_exactly(int64_t a, double b);
// round(value, digits), ties to even, exact in decimal.
double round_to_digits(double value, int64_t digits);
Value round_to_digits(int64_t value, int64_t digits);
// The integer that `value` truncates to.
Result<Value> integer_from(Interpreter& interpreter, double value, Span span);

Error integer_overflow(Span span, std::string_view operation);  // where 64 bits must do
Error division_by_zero(Span span, std::string message);
Error too_large(Interpreter& interpreter, Span span);  // beyond Limits::container_items

}  // namespace tilepilot::stage
