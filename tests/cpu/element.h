// One value of any element type, with the IR's arithmetic: integers wrap, 16-bit floats round after each operation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/ir/expr.h"

namespace tilepilot::testing {

struct Element {
  ir::DType type;
  double number = 0;  // of floating types: a value of the type
  int64_t whole = 0;  // of integers and bool; uint64 by its bits

  static Element real(ir::DType type, double value);      // rounded
  static Element integer(ir::DType type, int64_t value);  // wrapped
  static Element load(const void* memory, ir::DType type, int64_t index);
  void store(void* memory, int64_t index) const;

  bool truth() const { return whole != 0; }
  // False where C++ gives the conversion no meaning: a float that the integer type cannot hold.
  bool can_cast(ir::DType to) const;
  Element cast(ir::DType to) const;
  Element reinterpret(ir::DType to) const;
};

Element apply(ir::UnaryOp op, const Element& operand);
Element apply(ir::BinaryOp op, const Element& left, const Element& right);
Element apply(ir::MathFn function, const Element& argument);

// float32 to a 16-bit type and back, by definition: the nearest value, ties to even.
uint16_t narrow(ir::DType type, float value);
float widen(ir::DType type, uint16_t bits);

}  // namespace tilepilot::testing
