#include "compiler/interpret/reduction.h"

#include <cmath>

namespace tilepilot::interpret {
namespace {

using ir::BinaryOp;
using ir::ReduceOp;

enum class Start { zero, lowest, highest, ones };

struct Row {
  ReduceOp op;
  BinaryOp combines;
  bool of_magnitudes;
  Start start;
};
// By ReduceOp.
constexpr Row kRows[] = {
    {ReduceOp::sum, BinaryOp::add, false, Start::zero},
    {ReduceOp::max, BinaryOp::max, false, Start::lowest},
    {ReduceOp::min, BinaryOp::min, false, Start::highest},
    {ReduceOp::abs_sum, BinaryOp::add, true, Start::zero},
    {ReduceOp::abs_max, BinaryOp::max, true, Start::zero},
    {ReduceOp::bit_and, BinaryOp::bit_and, false, Start::ones},
    {ReduceOp::bit_or, BinaryOp::bit_or, false, Start::zero},
    {ReduceOp::bit_xor, BinaryOp::bit_xor, false, Start::zero},
};
const Row& row_of(ReduceOp op) { return kRows[static_cast<size_t>(op)]; }

Element extreme(ir::DType type, bool highest) {
  if (type.is_float()) return Element::real(type, highest ? INFINITY : -INFINITY);
  const bool is_unsigned = type.code == ir::TypeCode::unsigned_int;
  const auto most = static_cast<int64_t>(~UINT64_C(0) >> (64 - type.bits + (is_unsigned ? 0 : 1)));
  return Element::integer(type, highest ? most : is_unsigned ? 0 : -most - 1);
}

}  // namespace

std::optional<ReduceOp> reduction_by(BinaryOp op) {
  for (const Row& row : kRows) {
    if (row.combines == op && !row.of_magnitudes) return row.op;
  }
  return std::nullopt;
}

ir::DType Reduction::accumulator(ir::DType type) { return type.is_small_float() ? ir::kFloat32 : type; }

Element Reduction::identity(ir::DType type) const {
  const Start start = row_of(op).start;
  if (start == Start::zero) return Element::zero(type);
  if (start == Start::ones) return Element::integer(type, -1);
  return extreme(type, start == Start::highest);
}

Element Reduction::step(const Element& sum, const Element& next) const {
  if (!row_of(op).of_magnitudes) return join(sum, next);
  return join(sum, apply(ir::MathFn::abs, next));
}

// The later operand comes first: `max` then gives the other if it is NaN.
Element Reduction::join(const Element& a, const Element& b) const {
  const bool has_nan = a.type.is_float() && (std::isnan(a.number) || std::isnan(b.number));
  if (keeps_nan && has_nan) return apply(BinaryOp::add, a, b);
  return apply(row_of(op).combines, b, a);
}

}  // namespace tilepilot::interpret
