#include <algorithm>
#include <array>

#include "tests/ir/random_program.h"

namespace tilepilot::ir::testing {

// Its extents are constants.
Region RandomProgram::whole(const Buffer& buffer) {
  Region result{buffer, {}, {}, span()};
  for (const Expr& extent : buffer->shape) {
    result.start.push_back(int_imm(0));
    result.extent.push_back(*constant_int(extent));
  }
  return result;
}

Buffer RandomProgram::operand(const char* name, DType type, Scope scope, const std::vector<int64_t>& shape) {
  std::vector<Expr> extents;
  for (const int64_t extent : shape) extents.push_back(int_imm(extent));
  operands_.push_back(buffer(name, type, scope, std::move(extents)));
  return operands_.back();
}

// A loop that writes every element: a value for each place.
template <class F>
Stmt RandomProgram::filled(const Buffer& buffer, F value) {
  For loop{LoopKind::parallel, {}, buffer->shape, 0, nullptr};
  std::vector<Expr> at;
  for (size_t k = 0; k < buffer->rank(); ++k) {
    loop.vars.push_back(make_var("k", kInt32));
    ints_.push_back(loop.vars.back());
    at.push_back(var_ref(loop.vars.back()));
  }
  loop.body = make_stmt(Store{buffer, at, as_who(Who::block, value)}, span());
  ints_.resize(ints_.size() - buffer->rank());
  return make_stmt(std::move(loop), span());
}

Stmt RandomProgram::tile_operator() {
  switch (pick(4)) {
    case 0:
      return gemm();
    case 1:
      return reduce();
    case 2:
      return scan();
    default:
      return fill();
  }
}

Stmt RandomProgram::gemm() {
  struct Types {
    DType operands, result;
  };
  constexpr std::array kTypes{
      Types{kFloat16, kFloat32},    Types{kFloat32, kFloat32},    Types{kFloat16, kFloat16},
      Types{kBFloat16, kFloat32},   Types{kInt8, kInt32},         Types{kFloat64, kFloat64},
      Types{kFloat8E4M3, kFloat32}, Types{kFloat8E5M2, kFloat16}, Types{kUInt8, kInt32},
      Types{kInt4, kInt32},         Types{kFloat4E2M1, kFloat32}, Types{kTensorFloat32, kFloat32}};
  const Types types = kTypes[size_t(pick(kTypes.size()))];
  const int64_t m = 4 + pick(6), n = 4 + pick(9), k = 1 + pick(8);
  Gemm g;
  g.transpose_a = one_in(2);
  g.transpose_b = one_in(2);
  g.clear_accumulator = one_in(2);
  g.policy = WarpPolicy(pick(3));
  if (types.operands == kFloat32) g.precision = Precision(pick(3));
  using Shape = std::vector<int64_t>;
  g.a = whole(operand("a", types.operands, tile_scope(), g.transpose_a ? Shape{k, m} : Shape{m, k}));
  g.b = whole(operand("b", types.operands, tile_scope(), g.transpose_b ? Shape{n, k} : Shape{k, n}));
  g.c = whole(operand("c", types.result, tile_scope(), {m, n}));
  Block result;
  for (const Region* r : {&g.a, &g.b, &g.c})
    result.body.push_back(filled(r->buffer, [&] { return small_number(r->buffer->type); }));
  const Region product = g.c;
  result.body.push_back(make_stmt(std::move(g), span()));
  const auto out = region_with(any(writable_), product.extent);
  if (out && out->buffer->type.is_float() == types.result.is_float())
    result.body.push_back(make_stmt(Copy{product, *out, {}}, span()));
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::reduce() {
  std::vector<int64_t> shape;
  for (int k = 0, rank = 1 + pick(3); k < rank; ++k) shape.push_back(1 + pick(one_in(4) ? 70 : 8));
  const int axis = pick(int(shape.size()));
  const DType type = number_type();
  const Buffer source = operand("from", type, tile_scope(), shape);
  if (one_in(2) || shape.size() == 1) {
    shape[size_t(axis)] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  const DType wide = type.is_float() ? kFloat32 : kInt32;
  const Buffer destination = operand("to", one_in(2) && !type.is_nibble() ? type : wide, tile_scope(), shape);
  const auto op = ReduceOp(pick(type.is_int() ? 8 : 5));
  const bool sums = op == ReduceOp::sum || op == ReduceOp::abs_sum;
  const auto value = [&](const Buffer& b) {
    return [&] { return sums ? small_number(b->type) : ordered_number(b->type); };
  };
  const Stmt stmt =
      make_stmt(Reduce{op, whole(source), whole(destination), axis, one_in(2), !sums && one_in(3)}, span());
  Block result{{filled(source, value(source)), filled(destination, value(destination)), stmt}};
  if (const Buffer& to = any(tiles_); to->type == destination->type) {
    if (const auto box = region_with(to, whole(destination).extent))
      result.body.push_back(make_stmt(Copy{whole(destination), *box, {}}, span()));
  }
  const auto out = region_with(any(writable_), whole(destination).extent);
  if (out && !(type.is_float() && out->buffer->type.is_int()))
    result.body.push_back(make_stmt(Copy{whole(destination), *out, {}}, span()));
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::scan() {
  std::vector<int64_t> shape;
  for (int k = 0, rank = 1 + pick(3); k < rank; ++k) shape.push_back(1 + pick(6));
  const Buffer source = operand("from", number_type(), tile_scope(), shape);
  const Buffer destination = one_in(3) ? source : operand("to", source->type, tile_scope(), shape);
  const Stmt stmt = make_stmt(Scan{one_in(2) ? ScanOp::sum : ScanOp::max, whole(source), whole(destination),
                                   pick(int(shape.size())), one_in(2)},
                              span());
  Block result{{filled(source, [&] { return expr(source->type, 2); }), stmt}};
  const auto out = region_with(any(writable_), whole(destination).extent);
  if (out && !(source->type.is_float() && out->buffer->type.is_int()))
    result.body.push_back(make_stmt(Copy{whole(destination), *out, {}}, span()));
  return make_stmt(std::move(result), span());
}

}  // namespace tilepilot::ir::testing
