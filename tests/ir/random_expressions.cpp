#include <algorithm>
#include <array>
#include <limits>

#include "tests/ir/random_program.h"

namespace tilepilot::ir::testing {
namespace {

constexpr std::array kTypes{kFloat32,    kFloat32, kFloat32, kFloat16,    kBFloat16,     kFloat64,
                            kInt32,      kInt32,   kInt64,   kInt8,       kInt16,        kUInt8,
                            kUInt32,     kUInt64,  kUInt16,  kBool,       kFloat8E4M3,   kFloat8E5M2,
                            kFloat8E8M0, kInt4,    kUInt4,   kFloat4E2M1, kTensorFloat32};

bool contains(const std::vector<Buffer>& buffers, const Buffer& buffer) {
  return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

}  // namespace

DType RandomProgram::dtype() { return kTypes[size_t(pick(kTypes.size()))]; }

DType RandomProgram::number_type() {
  for (;;) {
    if (const DType type = dtype(); !type.is_bool()) return type;
  }
}

Expr RandomProgram::leaf(DType type) {
  std::vector<Var> fitting;
  for (const auto* vars : {&ints_, &scalars_}) {
    std::copy_if(vars->begin(), vars->end(), std::back_inserter(fitting),
                 [&](const Var& v) { return v->type == type && (who_ == Who::thread || apart_.count(v.get()) == 0); });
  }
  if (!fitting.empty() && !one_in(3)) return var_ref(any(fitting), span());
  if (type.is_bool()) return bool_imm(one_in(2), span());
  if (type.is_int()) {
    const int count = type.is_nibble() ? 16 : 100;
    return int_imm(pick(count) - (type.code == TypeCode::signed_int ? count / 2 : 0), type, span());
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {0.0,   -0.0,   kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
                                 1e-20, 65504.0};
  return float_imm(one_in(8) ? kSpecial[pick(7)] : (pick(200) - 100) / 16.0, type, span());
}

// -2 to 2.
Expr RandomProgram::small_number(DType type) {
  const Expr remainder = binary(BinaryOp::floor_mod, expr(kInt32, 1), int_imm(5), span());
  const bool is_signed = type.is_float() || type.code == TypeCode::signed_int;
  return cast(is_signed ? binary(BinaryOp::sub, remainder, int_imm(2), span()) : remainder, type, span());
}

// Any number but -0, of which nobody knows whether it is below 0.
Expr RandomProgram::ordered_number(DType type) {
  const Expr value = expr(type, 2);
  return type.is_float() ? binary(BinaryOp::add, value, float_imm(0, type), span()) : value;
}

// Loads ---------------------------------------------------------------------------------------------------------------

bool RandomProgram::is_written(const Buffer& buffer) const { return contains(written_, buffer); }
bool RandomProgram::is_part(const Buffer& buffer) const { return contains(parts_, buffer); }

// Whether its elements may be loaded here, wherever in it they are. Then threads must not write it before they meet.
bool RandomProgram::may_load(const Buffer& buffer) {
  if (is_written(buffer)) return true;  // its own element, see `indices`
  const auto shares = [&](const Buffer& other) { return root(other) == root(buffer); };
  if (std::any_of(written_.begin(), written_.end(), shares)) return false;
  if (buffer->scope == Scope::global && contains(readable_, buffer)) return true;
  if (who_ == Who::block) return !contains(own_, buffer);
  if (who_ == Who::agreement) return false;
  if (contains(own_, buffer)) return true;
  Use& use = uses_[root(buffer)];
  if (use == Use::own_element) return false;
  use = Use::read;
  return true;
}

std::optional<Buffer> RandomProgram::loadable() {
  std::vector<Buffer> candidates = readable_;
  for (const auto* list : {&writable_, &tiles_, &own_}) candidates.insert(candidates.end(), list->begin(), list->end());
  for (int tries = 0; tries < 4; ++tries) {
    const Buffer& buffer = any(candidates);
    if (may_load(buffer)) return buffer;
  }
  return std::nullopt;
}

Expr RandomProgram::index(int64_t limit, int depth) {
  if (one_in(3)) return int_imm(pick(int(limit)), one_in(8) ? kInt64 : kInt32, span());
  const DType type = one_in(6) ? kInt64 : kInt32;
  return binary(BinaryOp::floor_mod, expr(type, depth - 1), int_imm(limit, type), span());
}

// The axes that say whose part of a buffer it is.
std::vector<Expr> RandomProgram::part_start(const Buffer& buffer) {
  std::vector<Expr> result;
  for (size_t axis = 0; is_part(buffer) && axis < 3; ++axis)
    result.push_back(axis < block_vars_.size() ? var_ref(block_vars_[axis]) : int_imm(0));
  return result;
}

std::vector<Expr> RandomProgram::indices(const Buffer& buffer, int depth) {
  if (is_written(buffer)) return element_;
  std::vector<Expr> result = part_start(buffer);
  for (size_t axis = result.size(); axis < buffer->rank(); ++axis) {
    const auto size = constant_int(buffer->shape[axis]);
    const bool may_leave = buffer->scope == Scope::global && one_in(2);
    result.push_back(size && !may_leave ? index(*size, depth) : expr(kInt32, depth - 1));
  }
  return result;
}

// An element that no other thread has: the thread's number stands in an axis, and what follows is free.
std::vector<Expr> RandomProgram::own_element(const Buffer& buffer) {
  std::vector<Expr> result = part_start(buffer);
  Expr number = int_imm(0);
  for (size_t axis = thread_vars_.size(); axis-- > 0;) {
    number = binary(BinaryOp::mul, number, int_imm(threads_[axis]), span());
    number = binary(BinaryOp::add, number, var_ref(thread_vars_[axis], span()), span());
  }
  result.push_back(number);
  while (result.size() < buffer->rank()) result.push_back(index(*constant_int(buffer->shape[result.size()]), 1));
  return result;
}

Expr RandomProgram::load_of(const Buffer& buffer, int depth) {
  // Indices are made of loads, too.
  std::vector<Expr> at = indices(buffer, depth);
  return load(buffer, std::move(at), span());
}

// Arithmetic ----------------------------------------------------------------------------------------------------------

// A float becomes an integer only where every integer type can hold it.
Expr RandomProgram::converted(Expr value, DType type) {
  if (value->type.is_float() && type.is_int()) {
    const double high = type.is_nibble() ? 4 : 64, low = type.code == TypeCode::signed_int ? -high : 0;
    value = binary(BinaryOp::max, value, float_imm(low, value->type), span());
    value = binary(BinaryOp::min, value, float_imm(high, value->type), span());
  }
  return cast(std::move(value), type, span());
}

// The bits of NaN are anyone's choice, those of another float's too.
Expr RandomProgram::reinterpreted(DType type, int depth) {
  std::vector<DType> fitting;
  std::copy_if(kTypes.begin(), kTypes.end(), std::back_inserter(fitting),
               [&](DType from) { return from.bits == type.bits && from != type; });
  Expr value = expr(any(fitting), depth - 1);
  if (value->type.is_float())
    value = select(math(MathFn::isnan, value, span()), float_imm(1, value->type), value, span());
  return reinterpret(value, type, span());
}

Expr RandomProgram::expr(DType type, int depth) {
  if (depth <= 0 || one_in(5)) return leaf(type);
  switch (pick(8)) {
    case 0:
      return select(bool_expr(depth - 1), expr(type, depth - 1), expr(type, depth - 1), span());
    case 1:
      return converted(expr(dtype(), depth - 1), type);
    case 2:
      if (!variables_.empty() && one_in(2)) return converted(load_of(any(variables_), depth - 1), type);
      if (const auto from = loadable()) return converted(load_of(*from, depth - 1), type);
      return leaf(type);
    case 3:
      if (type.bits < 32 || one_in(2)) return reinterpreted(type, depth);
      [[fallthrough]];
    default:
      return type.is_bool() ? bool_expr(depth) : type.is_int() ? int_expr(type, depth) : float_expr(type, depth);
  }
}

Expr RandomProgram::int_expr(DType type, int depth) {
  constexpr std::array kOps{BinaryOp::add, BinaryOp::sub,     BinaryOp::mul,    BinaryOp::min,
                            BinaryOp::max, BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};
  const Expr left = expr(type, depth - 1);
  switch (pick(6)) {
    case 0:
      return unary(one_in(2) ? UnaryOp::neg : UnaryOp::bit_not, left, span());
    case 1:
      return binary(one_in(2) ? BinaryOp::floor_div : BinaryOp::floor_mod, left,
                    int_imm(1 + pick(type.is_nibble() ? 7 : 20), type), span());
    case 2:
      return binary(one_in(2) ? BinaryOp::shl : BinaryOp::shr, left, int_imm(pick(type.bits), type), span());
    case 3:
      if (type.bits >= 32 && one_in(2)) return math(one_in(2) ? MathFn::popcount : MathFn::leading_zeros, left, span());
      if (type.code == TypeCode::signed_int) return math(MathFn::abs, left, span());
      [[fallthrough]];
    default:
      return binary(kOps[size_t(pick(kOps.size()))], left, expr(type, depth - 1), span());
  }
}

// Those that every machine rounds alike are left out.
Expr RandomProgram::approximate_expr(DType type, int depth) {
  constexpr std::array kOfTwo{BinaryOp::pow, BinaryOp::atan2, BinaryOp::hypot};
  const Expr left = expr(type, depth - 1);
  if (one_in(6)) return binary(kOfTwo[size_t(pick(kOfTwo.size()))], left, expr(type, depth - 1), span());
  MathFn function = MathFn::sqrt;
  while (function == MathFn::sqrt) function = MathFn(pick(int(MathFn::abs)));
  return math(function, left, span());
}

Expr RandomProgram::float_expr(DType type, int depth) {
  constexpr std::array kExact{MathFn::sqrt, MathFn::abs, MathFn::floor, MathFn::ceil, MathFn::round, MathFn::trunc};
  constexpr std::array kExactOps{BinaryOp::add, BinaryOp::sub,   BinaryOp::mul,  BinaryOp::div,      BinaryOp::min,
                                 BinaryOp::max, BinaryOp::ldexp, BinaryOp::fmod, BinaryOp::nextafter};
  constexpr std::array kOps{BinaryOp::add,   BinaryOp::sub,   BinaryOp::mul,  BinaryOp::div,
                            BinaryOp::min,   BinaryOp::max,   BinaryOp::pow,  BinaryOp::atan2,
                            BinaryOp::hypot, BinaryOp::ldexp, BinaryOp::fmod, BinaryOp::nextafter};
  const auto count = kOps.size() - (type.is_small_float() ? 1 : 0);
  const Expr left = expr(type, depth - 1);
  if (one_in(6)) return unary(UnaryOp::neg, left, span());
  const bool of_one = one_in(3);
  if (options_.approximate_last) {
    if (of_one) return math(kExact[size_t(pick(kExact.size()))], left, span());
    const size_t last = kExactOps.size() - (type.is_small_float() ? 1 : 0);
    return binary(kExactOps[size_t(pick(int(last)))], left, expr(type, depth - 1), span());
  }
  if (of_one) return math(MathFn(pick(int(MathFn::leading_zeros))), left, span());
  return binary(kOps[size_t(pick(int(count)))], left, expr(type, depth - 1), span());
}

Expr RandomProgram::bool_expr(int depth) {
  if (depth <= 0) return leaf(kBool);
  if (one_in(6)) return unary(UnaryOp::logical_not, bool_expr(depth - 1), span());
  if (one_in(6))
    return math(MathFn(int(MathFn::isnan) + pick(3)), expr(one_in(2) ? kFloat32 : kFloat16, depth - 1), span());
  if (one_in(3)) {
    constexpr std::array kOps{BinaryOp::logical_and, BinaryOp::logical_or, BinaryOp::bit_and, BinaryOp::bit_or,
                              BinaryOp::bit_xor};
    return binary(kOps[size_t(pick(one_in(2) ? 5 : 2))], bool_expr(depth - 1), bool_expr(depth - 1), span());
  }
  const DType type = one_in(2) ? kInt32 : dtype();
  const auto op = BinaryOp(int(BinaryOp::eq) + pick(type.is_bool() ? 2 : 6));
  return binary(op, expr(type, depth - 1), expr(type, depth - 1), span());
}

}  // namespace tilepilot::ir::testing
