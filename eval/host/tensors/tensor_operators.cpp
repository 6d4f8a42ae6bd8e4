// The operators of the language on tensors, with the reflected forms spelled as PyTorch computes them, so that results
// agree to the bit.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "eval/host/edge.h"
#include "eval/host/host_state.h"

namespace tilepilot::eval {

using at::Scalar;
using at::Tensor;
using stage::BinaryOp;
using stage::CompareOp;
using stage::Interpreter;
using stage::UnaryOp;
using stage::Value;

namespace {

struct BinaryRow {
  BinaryOp op;
  Tensor (*tensors)(const Tensor&, const Tensor&);
  Tensor (*scalar)(const Tensor&, const Scalar&);     // tensor op number; null: no such form
  Tensor (*reflected)(const Scalar&, const Tensor&);  // number op tensor
  void (*in_place)(const Tensor&, const Tensor&);     // null: the operator makes a new tensor
  void (*in_place_scalar)(const Tensor&, const Scalar&);
};

Tensor wrapped_number(const Scalar& scalar) {
  Tensor tensor = at::scalar_tensor(scalar, scalar.type());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

#define TP_TENSORS(expression) [](const Tensor& a, const Tensor& b) -> Tensor { return expression; }
#define TP_SCALAR(expression) [](const Tensor& a, const Scalar& b) -> Tensor { return expression; }
#define TP_REFLECTED(expression) [](const Scalar& a, const Tensor& b) -> Tensor { return expression; }
#define TP_IN_PLACE(method) [](const Tensor& a, const Tensor& b) { a.method(b); }
#define TP_IN_PLACE_SCALAR(method) [](const Tensor& a, const Scalar& b) { a.method(b); }

const BinaryRow kBinaryRows[] = {
    {BinaryOp::add, TP_TENSORS(at::add(a, b)), TP_SCALAR(at::add(a, b)), TP_REFLECTED(at::add(b, a)), TP_IN_PLACE(add_),
     TP_IN_PLACE_SCALAR(add_)},
    {BinaryOp::sub, TP_TENSORS(at::sub(a, b)), TP_SCALAR(at::sub(a, b)), TP_REFLECTED(at::rsub(b, a)),
     TP_IN_PLACE(sub_), TP_IN_PLACE_SCALAR(sub_)},
    {BinaryOp::mul, TP_TENSORS(at::mul(a, b)), TP_SCALAR(at::mul(a, b)), TP_REFLECTED(at::mul(b, a)), TP_IN_PLACE(mul_),
     TP_IN_PLACE_SCALAR(mul_)},
    {BinaryOp::matmul, TP_TENSORS(at::matmul(a, b)), nullptr, nullptr, nullptr, nullptr},
    {BinaryOp::div, TP_TENSORS(at::div(a, b)), TP_SCALAR(at::div(a, b)), TP_REFLECTED(at::mul(at::reciprocal(b), a)),
     TP_IN_PLACE(div_), TP_IN_PLACE_SCALAR(div_)},
    {BinaryOp::floor_div, TP_TENSORS(at::floor_divide(a, b)), TP_SCALAR(at::floor_divide(a, b)),
     TP_REFLECTED(at::floor_divide(wrapped_number(a), b)), TP_IN_PLACE(floor_divide_),
     TP_IN_PLACE_SCALAR(floor_divide_)},
    {BinaryOp::mod, TP_TENSORS(at::remainder(a, b)), TP_SCALAR(at::remainder(a, b)), TP_REFLECTED(at::remainder(a, b)),
     TP_IN_PLACE(remainder_), TP_IN_PLACE_SCALAR(remainder_)},
    {BinaryOp::pow, TP_TENSORS(at::pow(a, b)), TP_SCALAR(at::pow(a, b)), TP_REFLECTED(at::pow(a, b)), TP_IN_PLACE(pow_),
     TP_IN_PLACE_SCALAR(pow_)},
    {BinaryOp::shl, TP_TENSORS(at::bitwise_left_shift(a, b)), TP_SCALAR(at::bitwise_left_shift(a, b)),
     TP_REFLECTED(at::bitwise_left_shift(a, b)), TP_IN_PLACE(bitwise_left_shift_),
     TP_IN_PLACE_SCALAR(bitwise_left_shift_)},
    {BinaryOp::shr, TP_TENSORS(at::bitwise_right_shift(a, b)), TP_SCALAR(at::bitwise_right_shift(a, b)),
     TP_REFLECTED(at::bitwise_right_shift(a, b)), TP_IN_PLACE(bitwise_right_shift_),
     TP_IN_PLACE_SCALAR(bitwise_right_shift_)},
    {BinaryOp::bit_and, TP_TENSORS(at::bitwise_and(a, b)), TP_SCALAR(at::bitwise_and(a, b)),
     TP_REFLECTED(at::bitwise_and(b, a)), TP_IN_PLACE(bitwise_and_), TP_IN_PLACE_SCALAR(bitwise_and_)},
    {BinaryOp::bit_or, TP_TENSORS(at::bitwise_or(a, b)), TP_SCALAR(at::bitwise_or(a, b)),
     TP_REFLECTED(at::bitwise_or(b, a)), TP_IN_PLACE(bitwise_or_), TP_IN_PLACE_SCALAR(bitwise_or_)},
    {BinaryOp::bit_xor, TP_TENSORS(at::bitwise_xor(a, b)), TP_SCALAR(at::bitwise_xor(a, b)),
     TP_REFLECTED(at::bitwise_xor(b, a)), TP_IN_PLACE(bitwise_xor_), TP_IN_PLACE_SCALAR(bitwise_xor_)},
};

struct CompareRow {
  CompareOp op;
  Tensor (*tensors)(const Tensor&, const Tensor&);
  Tensor (*scalar)(const Tensor&, const Scalar&);
};

const CompareRow kCompareRows[] = {
    {CompareOp::eq, TP_TENSORS(at::eq(a, b)), TP_SCALAR(at::eq(a, b))},
    {CompareOp::ne, TP_TENSORS(at::ne(a, b)), TP_SCALAR(at::ne(a, b))},
    {CompareOp::lt, TP_TENSORS(at::lt(a, b)), TP_SCALAR(at::lt(a, b))},
    {CompareOp::le, TP_TENSORS(at::le(a, b)), TP_SCALAR(at::le(a, b))},
    {CompareOp::gt, TP_TENSORS(at::gt(a, b)), TP_SCALAR(at::gt(a, b))},
    {CompareOp::ge, TP_TENSORS(at::ge(a, b)), TP_SCALAR(at::ge(a, b))},
};

#undef TP_TENSORS
#undef TP_SCALAR
#undef TP_REFLECTED
#undef TP_IN_PLACE
#undef TP_IN_PLACE_SCALAR

const BinaryRow& row_of(BinaryOp op) {
  for (const BinaryRow& row : kBinaryRows) {
    if (row.op == op) return row;
  }
  TORCH_INTERNAL_ASSERT(false, "a binary operator has no row");
}

std::optional<Scalar> number_of(const Value& value) {
  if (auto* integer = value.if_int()) return Scalar(*integer);
  if (auto* real = value.if_float()) return Scalar(*real);
  if (auto* boolean = value.if_bool()) return Scalar(*boolean);
  return std::nullopt;
}

}  // namespace

Result<std::optional<Value>> TensorObject::binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                                  Span span) {
  const BinaryRow& row = row_of(op);
  const Tensor* right = tensor_of(other);
  auto number = right ? std::nullopt : number_of(other);
  if (!right && (!number || !row.scalar)) return std::optional<Value>();
  Tensor result = TRY(guarded(spelling(op), span, [&] {
    if (right) return reflected ? row.tensors(*right, tensor) : row.tensors(tensor, *right);
    return reflected ? row.reflected(*number, tensor) : row.scalar(tensor, *number);
  }));
  return std::optional<Value>(state_.wrap(std::move(result)));
}

Result<std::optional<Value>> TensorObject::binary_in_place(Interpreter&, BinaryOp op, const Value& other, Span span) {
  const BinaryRow& row = row_of(op);
  const Tensor* right = tensor_of(other);
  auto number = right ? std::nullopt : number_of(other);
  if (!row.in_place || (!right && !number)) return std::optional<Value>();
  TRY(guarded(fmt::format("{}=", spelling(op)), span, [&] {
    if (right) {
      row.in_place(tensor, *right);
    } else {
      row.in_place_scalar(tensor, *number);
    }
  }));
  return std::optional<Value>(Value(shared_from_this()));
}

Result<std::optional<Value>> TensorObject::compare(Interpreter&, CompareOp op, const Value& other, Span span) {
  const Tensor* right = tensor_of(other);
  auto number = right ? std::nullopt : number_of(other);
  if (!right && !number) return std::optional<Value>();
  for (const CompareRow& row : kCompareRows) {
    if (row.op != op) continue;
    Tensor result = TRY(
        guarded(spelling(op), span, [&] { return right ? row.tensors(tensor, *right) : row.scalar(tensor, *number); }));
    return std::optional<Value>(state_.wrap(std::move(result)));
  }
  return std::optional<Value>();
}

Result<std::optional<Value>> TensorObject::unary(Interpreter& interpreter, UnaryOp op, Span span) {
  if (op == UnaryOp::logical_not) return std::optional<Value>(!TRY(truth(interpreter, span)));
  Tensor result = TRY(guarded(spelling(op), span, [&] {
    if (op == UnaryOp::minus) return at::neg(tensor);
    return op == UnaryOp::invert ? at::bitwise_not(tensor) : at::positive(tensor);
  }));
  return std::optional<Value>(state_.wrap(std::move(result)));
}

}  // namespace tilepilot::eval
