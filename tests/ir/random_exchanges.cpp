// Between the threads of a warp, between threads and copies that go on beside them, between the roles of a block.
#include <array>

#include "tests/ir/random_program.h"

namespace tilepilot::ir::testing {

// All threads of the block come here.
Stmt RandomProgram::exchange() {
  if (one_in(4)) return make_stmt(Sync{SyncScope::warp}, span());
  return one_in(2) || readable_.empty() ? shuffle() : asynchronous_copy();
}

Stmt RandomProgram::shuffle() {
  constexpr std::array kTypes{kFloat32, kInt32, kFloat16, kInt64, kUInt32, kBFloat16, kFloat64};
  const DType type = kTypes[size_t(pick(kTypes.size()))];
  const Var result = make_var("other", type);
  const Stmt stmt = as_who(Who::thread, [&] {
    const Expr value = expr(type, 2), lane = one_in(2) ? index(40, 1) : expr(kInt32, 2);
    return make_stmt(Shuffle{ShuffleOp(pick(4)), value, lane, int64_t{1} << pick(6), result}, span());
  });
  apart_.insert(result.get());
  (type == kInt32 || type == kInt64 ? ints_ : scalars_).push_back(result);
  return stmt;
}

Stmt RandomProgram::asynchronous_copy() {
  uses_.clear();
  Copy copy{as_who(Who::agreement, [&] { return region(any(readable_), {}); }), {}, {}, CopyMode::group};
  const Buffer landing = operand("landing", copy.source.buffer->type, Scope::shared, copy.source.extent);
  copy.destination = whole(landing);
  Block result{{make_stmt(std::move(copy), span()), make_stmt(Async{AsyncOp::commit_copies}, span())}};
  if (one_in(2)) result.body.push_back(as_who(Who::thread, [&] { return own_store(1); }));
  result.body.push_back(make_stmt(Async{AsyncOp::wait_copies}, span()));
  result.body.push_back(sync());
  return make_stmt(std::move(result), span());
}

// Holds, and does not look as if it always did.
Stmt RandomProgram::check() {
  const Expr condition = bool_expr(2);
  const Expr opposite = unary(UnaryOp::logical_not, condition, span());
  return make_stmt(Check{binary(BinaryOp::logical_or, condition, opposite, span()), "checked"}, span());
}

// One role fills the tiles of a ring, the other empties them: all that a kernel of two roles does, since its barriers
// count on, and what stands beside roles would have to be for all their threads at once.
Stmt RandomProgram::ring() {
  constexpr std::array kTypes{kFloat32, kInt32, kFloat16, kFloat64};
  const DType type = kTypes[size_t(pick(kTypes.size()))];
  const int64_t length = 1 + pick(40);
  const Buffer tiles = operand("ring", type, Scope::shared, {2, length});
  const Buffer sum = operand("sum", type, Scope::fragment, {length});
  BufferData data{"full", kUInt64, Scope::barrier, {int_imm(4)}, {}, span()};
  data.arrivals = {128, 128, 128, 128};
  const Buffer full = std::make_shared<BufferData>(std::move(data));
  operands_.push_back(full);

  const Var step = make_var("step", kInt32);
  const Expr two = int_imm(2), tile = binary(BinaryOp::floor_mod, var_ref(step), two);
  const Expr round = binary(BinaryOp::floor_div, var_ref(step), two);
  const Expr emptied = binary(BinaryOp::add, tile, two);
  const auto on = [&](BarrierOp op, const Expr& which, const Expr& phase) {
    return make_stmt(Barrier{op, {full, {which}, {1}, span()}, phase}, span());
  };
  const auto parity = [&](const Expr& turn) { return binary(BinaryOp::floor_mod, turn, two); };
  const auto each = [&](auto make) {
    const Var i = make_var("i", kInt32);
    ints_.push_back(i);
    const Stmt body = as_who(Who::block, [&] { return make(var_ref(i)); });
    ints_.pop_back();
    return make_stmt(For{LoopKind::parallel, {i}, {int_imm(length)}, 0, body}, span());
  };

  ints_.push_back(step);
  const Stmt fill = each([&](const Expr& i) { return make_stmt(Store{tiles, {tile, i}, small_number(type)}, span()); });
  ints_.pop_back();
  const Stmt empty = each([&](const Expr& i) {
    const Expr total = binary(BinaryOp::add, load(sum, {i}), load(tiles, {tile, i}));
    return make_stmt(Store{sum, {i}, total}, span());
  });
  const Expr next = binary(BinaryOp::add, round, int_imm(1));
  const Stmt loader = make_stmt(
      Block{{on(BarrierOp::wait, emptied, parity(next)), fill, on(BarrierOp::arrive, tile, nullptr)}}, span());
  const Stmt worker = make_stmt(
      Block{{on(BarrierOp::wait, tile, parity(round)), empty, on(BarrierOp::arrive, emptied, nullptr)}}, span());
  const Stmt both =
      make_stmt(Block{{make_stmt(Roles{{1}, loader}, span()), make_stmt(Roles{{0}, worker}, span())}}, span());
  Block result{{make_stmt(For{LoopKind::serial, {step}, {int_imm(pick(6))}, 0, both}, span())}};
  const auto out = region_with(parts_[0], {length});
  if (out && type.is_float())
    result.body.push_back(
        make_stmt(Roles{{0}, make_stmt(Block{{make_stmt(Copy{whole(sum), *out, {}}, span())}}, span())}, span()));
  return make_stmt(std::move(result), span());
}

}  // namespace tilepilot::ir::testing
