// One value of any element type, with the IR's arithmetic: integers wrap, small floats are computed in float32 and
// rounded after each operation. Division by zero gives 0 (its remainder the dividend), shifts count modulo the width.
#pragma once

#include <cstddef>

#include "compiler/interpret/functions.h"

namespace tilepilot::interpret {

struct Element {
  ir::DType type;
  double number = 0;  // of floating types: a value of the type
  int64_t whole = 0;  // of integers and bool; uint64 by its bits

  static Element real(ir::DType type, double value);      // rounded
  static Element integer(ir::DType type, int64_t value);  // wrapped
  static Element zero(ir::DType type) { return type.is_float() ? real(type, 0) : integer(type, 0); }
  static Element from_bits(uint64_t bits, ir::DType type);
  uint64_t to_bits() const;  // beyond the type's anything
  // Alone in its bytes.
  static Element load(const std::byte* memory, ir::DType type);
  void store(std::byte* memory) const;

  bool truth() const { return whole != 0; }
  // False where the conversion has no meaning: a float that the integer type cannot hold.
  bool can_cast(ir::DType to) const;
  Element cast(ir::DType to) const;  // zero where it has no meaning
  Element reinterpret(ir::DType to) const;
};

// The same value; a NaN is as good as another.
bool same(const Element& a, const Element& b);

Element apply(ir::UnaryOp op, const Element& operand);
Element apply(ir::BinaryOp op, const Element& left, const Element& right);
Element apply(ir::MathFn function, const Element& argument, const Functions& functions = library_functions());

}  // namespace tilepilot::interpret
