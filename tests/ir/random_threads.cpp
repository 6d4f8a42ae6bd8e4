// What threads do for themselves, and what they do together.
#include <algorithm>
#include <array>

#include "tests/ir/random_program.h"

namespace tilepilot::ir::testing {
// All threads of the block come here.
Stmt RandomProgram::thread_statement(int depth) {
  if (options_.held && one_in(6)) return as_who(Who::thread, [&] { return held_operator(); });
  switch (pick(9)) {
    case 0:
      return sync();
    case 1:
      return all_reduce();
    case 8:
      return exchange();
    case 2:
      return as_who(Who::agreement, [&] { return let(1); });
    case 3:
    case 4:
      return collective(depth);
    default: {
      const bool outer = std::exchange(in_loop_, false);
      const Stmt result = as_who(Who::thread, [&] { return own_statement(depth); });
      in_loop_ = outer;
      return result;
    }
  }
}

Stmt RandomProgram::sync() {
  uses_.clear();
  return make_stmt(Sync{}, span());
}

// Meetings ------------------------------------------------------------------------------------------------------------

Stmt RandomProgram::collective(int depth) {
  const int kind = pick(depth > 0 ? 8 : 4);
  if (kind == 5) return collective_loop(depth);
  if (kind == 6) return collective_while(depth);
  if (kind == 7) return collective_branch(depth);
  uses_.clear();
  const Stmt result = as_who(Who::agreement, [&] {
    if (kind == 0) return copy();
    if (kind == 1) return chain();
    return kind == 4 ? parallel(depth) : tile_operator();
  });
  uses_.clear();
  return result;
}

// What threads did before it is over when the block begins and ends.
Stmt RandomProgram::collective_block(int depth) {
  const auto ints = ints_, scalars = scalars_;
  Block result;
  for (int k = pick(options_.statements) + 1; k > 0; --k) result.body.push_back(thread_statement(depth));
  if (in_loop_ && one_in(3)) {
    // Who leaves a loop in the middle has met the others there.
    const Stmt jump = one_in(2) ? make_stmt(Break{}, span()) : make_stmt(Continue{}, span());
    const Expr condition = as_who(Who::agreement, [&] { return bool_expr(2); });
    result.body.push_back(make_stmt(If{condition, make_stmt(Block{{sync(), jump}}, span()), nullptr}, span()));
    result.body.push_back(thread_statement(depth));
  }
  result.body.push_back(sync());
  ints_ = ints;
  scalars_ = scalars;
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::collective_loop(int depth) {
  constexpr std::array kKinds{LoopKind::serial, LoopKind::serial, LoopKind::unrolled, LoopKind::pipelined};
  const LoopKind kind = kKinds[size_t(pick(4))];
  const Stmt before = sync();
  const Var var = make_var("k", kInt32);
  const bool outer = std::exchange(in_loop_, kind == LoopKind::serial);
  ints_.push_back(var);
  Stmt body = collective_block(depth - 1);
  ints_.pop_back();
  in_loop_ = outer;
  const int stages = kind == LoopKind::pipelined ? pick(4) : 0;
  const Stmt loop = make_stmt(For{kind, {var}, {int_imm(pick(4))}, stages, std::move(body)}, span());
  return make_stmt(Block{{before, loop}}, span());
}

// Each thread counts for itself; all count alike.
Stmt RandomProgram::collective_while(int depth) {
  const Buffer counter = operand("counter", kInt32, Scope::local, {1});
  const std::vector<Expr> at{int_imm(0)};
  const Stmt before = sync(), reset = make_stmt(Store{counter, at, int_imm(0)}, span());
  const bool outer = std::exchange(in_loop_, false);
  const Stmt body = collective_block(depth - 1);
  in_loop_ = outer;
  const Stmt step = make_stmt(Store{counter, at, binary(BinaryOp::add, load(counter, at), int_imm(1))}, span());
  const Expr more = binary(BinaryOp::lt, load(counter, at), int_imm(pick(4)));
  const Stmt loop = make_stmt(While{more, make_stmt(Block{{step, body}}, span())}, span());
  return make_stmt(Block{{before, reset, loop}}, span());
}

Stmt RandomProgram::collective_branch(int depth) {
  const Stmt before = sync();
  const Expr condition = as_who(Who::agreement, [&] { return bool_expr(2); });
  const bool outer = std::exchange(in_loop_, false);
  If result{condition, collective_block(depth - 1), nullptr};
  if (one_in(2)) result.otherwise = collective_block(depth - 1);
  in_loop_ = outer;
  return make_stmt(Block{{before, make_stmt(std::move(result), span()), sync()}}, span());
}

Stmt RandomProgram::all_reduce() {
  constexpr std::array kCombiners{BinaryOp::add,     BinaryOp::min,    BinaryOp::max,    BinaryOp::mul,
                                  BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};
  constexpr std::array kTypes{kFloat32, kInt32, kFloat16, kInt8, kFloat64, kUInt32};
  const DType type = kTypes[size_t(pick(kTypes.size()))];
  const BinaryOp op = kCombiners[size_t(pick(type.is_int() ? 7 : 4))];
  const Buffer target = operand("all", type, Scope::local, {2});
  own_.push_back(target);
  const int64_t lanes = one_in(3) ? int64_t{1} << pick(6) : 0;
  std::vector<int> axes;
  for (int axis = 0; lanes == 0 && axis < int(thread_vars_.size()); ++axis) {
    if (!one_in(3)) axes.push_back(axis);
  }
  if (lanes == 0 && axes.empty()) axes.push_back(pick(int(thread_vars_.size())));
  const Stmt result = as_who(Who::thread, [&] {
    const bool ordered = op == BinaryOp::min || op == BinaryOp::max;
    const auto number = [&] {
      const Expr value = ordered ? ordered_number(type) : small_number(type);
      if (op != BinaryOp::mul || !type.is_float()) return value;
      // Products are in any order, and none of them too large.
      return binary(BinaryOp::max, binary(BinaryOp::min, value, float_imm(1, type)), float_imm(-1, type));
    };
    const Expr value = number(), identity = as_who(Who::agreement, number);
    const Region place{target, {index(2, 1)}, {1}, span()};
    return make_stmt(AllReduce{op, value, bool_expr(2), identity, place, axes, lanes}, span());
  });
  if (lanes == 0) uses_.clear();
  return result;
}

// Alone ---------------------------------------------------------------------------------------------------------------

Stmt RandomProgram::own_statement(int depth) {
  if (options_.held && one_in(6)) return held_operator();
  switch (pick(depth > 0 ? 11 : 7)) {
    case 0:
      return let(depth);
    case 1:
      return own_copy();
    case 2:
      return own_atomic();
    case 3:
      return update();
    case 4:
      return check();
    case 7:
      return own_branch(depth);
    case 8:
      return own_loop(depth);
    case 9:
      return own_while(depth);
    case 10:
      return own_block(depth - 1);
    default:
      return own_store(depth);
  }
}

Stmt RandomProgram::own_block(int depth) {
  const auto ints = ints_, scalars = scalars_;
  Block result;
  for (int k = pick(options_.statements) + 1; k > 0; --k) result.body.push_back(own_statement(depth));
  ints_ = ints;
  scalars_ = scalars;
  return make_stmt(std::move(result), span());
}

// To a buffer of its own, or to its element of one of the block's or the block's part.
Stmt RandomProgram::own_store(int depth) {
  Buffer target = any(own_);
  if (one_in(2)) {
    const Buffer& shared = one_in(2) ? any(lanes_) : any(parts_);
    const bool writable =
        shared->scope != Scope::global || std::find(writable_.begin(), writable_.end(), shared) != writable_.end();
    Use& use = uses_[shared.get()];
    if (writable && use != Use::read) {
      use = Use::own_element;
      target = shared;
    }
  }
  const bool is_own = std::find(own_.begin(), own_.end(), target) != own_.end();
  const std::vector<Expr> at = is_own ? indices(target, 2) : own_element(target);
  Expr value = expr(target->type, std::min(depth + 1, options_.depth));
  if (one_in(3) && !target->type.is_bool()) value = binary(BinaryOp::add, load(target, at), value, span());
  return make_stmt(Store{target, at, value}, span());
}

Stmt RandomProgram::own_branch(int depth) {
  If result{bool_expr(2), own_block(depth - 1), nullptr};
  if (one_in(2)) result.otherwise = own_block(depth - 1);
  if (in_loop_ && one_in(3)) result.then = one_in(2) ? make_stmt(Break{}, span()) : make_stmt(Continue{}, span());
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::own_loop(int depth) {
  const Var var = make_var("n", one_in(5) ? kInt64 : kInt32);
  const LoopKind kind = one_in(4) ? LoopKind::unrolled : LoopKind::serial;
  Expr extent = int_imm(pick(4), var->type, span());
  if (one_in(3)) extent = binary(BinaryOp::floor_mod, expr(var->type, 2), int_imm(4, var->type), span());
  const bool outer = std::exchange(in_loop_, kind == LoopKind::serial);
  apart_.insert(var.get());
  ints_.push_back(var);
  Stmt body = own_block(depth - 1);
  ints_.pop_back();
  in_loop_ = outer;
  return make_stmt(For{kind, {var}, {extent}, 0, std::move(body)}, span());
}

Stmt RandomProgram::own_while(int depth) {
  const Buffer counter = operand("count", kInt32, Scope::local, {1});
  const std::vector<Expr> at{int_imm(0)};
  const Expr first = binary(BinaryOp::floor_mod, expr(kInt32, 2), int_imm(4), span());
  const Stmt set = make_stmt(Store{counter, at, first}, span());
  const Stmt step = make_stmt(Store{counter, at, binary(BinaryOp::sub, load(counter, at), int_imm(1))}, span());
  const bool outer = std::exchange(in_loop_, false);
  const Stmt body = own_block(depth - 1);
  in_loop_ = outer;
  const Expr more = binary(BinaryOp::gt, load(counter, at), int_imm(0));
  return make_stmt(Block{{set, make_stmt(While{more, make_stmt(Block{{step, body}}, span())}, span())}}, span());
}

// A copy or fill with a buffer of the thread's own is that thread's loop.
Stmt RandomProgram::own_copy() {
  const Buffer to = any(own_);
  const auto from = loadable();
  const bool local = to->scope == Scope::local;
  if (!local) return own_store(1);
  const bool fits =
      from && (*from)->base == nullptr && *from != to && to->base == nullptr && converts((*from)->type, to->type);
  if (fits && !one_in(3)) {
    const Region source = region(*from, {});
    if (const auto destination = region_with(to, source.extent))
      return make_stmt(Copy{source, *destination, {}}, span());
  }
  return make_stmt(Fill{region(to, {}), expr(to->type, 1)}, span());
}

Stmt RandomProgram::own_atomic() {
  const Buffer& lane = any(lanes_);
  Use& use = uses_[lane.get()];
  if (one_in(2) || use == Use::read) {
    const Buffer target = any(own_);
    return atomic(target, indices(target, 1));
  }
  use = Use::own_element;
  return atomic(lane, own_element(lane));
}

}  // namespace tilepilot::ir::testing
