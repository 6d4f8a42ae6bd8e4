#include <algorithm>
#include <array>

#include "tests/ir/random_program.h"

namespace tilepilot::ir::testing {
namespace {

constexpr std::array kVariableNames{"x", "i", "acc", "max", "tile", "x", "copy", "value_1", "i"};

}  // namespace

Stmt RandomProgram::block(int depth) {
  const auto ints = ints_, scalars = scalars_;
  Block result;
  for (int k = pick(options_.statements) + 1; k > 0; --k) result.body.push_back(statement(depth));
  ints_ = ints;
  scalars_ = scalars;
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::statement(int depth) {
  const bool in_parallel = !element_.empty();
  if (in_parallel && options_.iterations && one_in(3))
    return one_in(2) && !variables_.empty() ? store_variable(depth) : joint_update();
  switch (pick(in_parallel ? 6 : 17)) {
    case 0:
      return let(depth);
    case 1:
      return depth > 0 ? branch(depth) : store(depth);
    case 2:
      return depth > 0 ? loop(depth) : store(depth);
    case 3:
      return store(depth);
    case 4:
      if (in_parallel) return atomic(any(written_), element_);
      return depth > 0 ? parallel(depth) : store(depth);
    case 5:
      return update();
    case 6:
      return depth > 0 ? counted_while(depth) : store(depth);
    case 7:
      return depth > 0 && one_in(2) ? block(depth - 1) : copy();
    case 8: {
      const Buffer& target = any(tiles_);
      return atomic(target, indices(target, 1));
    }
    case 9:
      return one_in(4) ? make_stmt(Sync{}, span()) : copy();
    case 10:
    case 11:
      return chain();
    case 12:
      return check();
    default:
      return tile_operator();
  }
}

Stmt RandomProgram::let(int depth) {
  const Expr value = expr(one_in(2) ? kInt32 : dtype(), std::min(depth, 2));
  const Var var = make_var(kVariableNames[size_t(pick(kVariableNames.size()))], value->type);
  if (who_ == Who::thread) apart_.insert(var.get());
  (value->type == kInt32 || value->type == kInt64 ? ints_ : scalars_).push_back(var);
  return make_stmt(Let{var, value}, span());
}

Stmt RandomProgram::store(int depth) {
  const Buffer target = !element_.empty() ? any(written_) : one_in(3) ? any(writable_) : any(tiles_);
  std::vector<Expr> at = indices(target, 2);
  return make_stmt(Store{target, std::move(at), expr(target->type, std::min(depth + 1, options_.depth))}, span());
}

Stmt RandomProgram::branch(int depth) {
  If result{bool_expr(2), block(depth - 1), nullptr};
  if (one_in(2)) result.otherwise = block(depth - 1);
  if (in_loop_ && one_in(3)) { result.then = one_in(2) ? make_stmt(Break{}, span()) : make_stmt(Continue{}, span()); }
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::loop(int depth) {
  constexpr std::array kKinds{LoopKind::serial, LoopKind::serial, LoopKind::unrolled, LoopKind::pipelined};
  const LoopKind kind = element_.empty() ? kKinds[size_t(pick(4))] : LoopKind::serial;
  const Var var = make_var(kVariableNames[size_t(pick(kVariableNames.size()))], one_in(5) ? kInt64 : kInt32);
  const Expr extent = int_imm(pick(4), var->type, span());
  const bool outer = std::exchange(in_loop_, kind == LoopKind::serial);
  ints_.push_back(var);
  Stmt body = block(depth - 1);
  ints_.pop_back();
  in_loop_ = outer;
  const int stages = kind == LoopKind::pipelined ? pick(4) : 0;
  return make_stmt(For{kind, {var}, {extent}, stages, std::move(body)}, span());
}

Stmt RandomProgram::parallel(int depth) {
  const Buffer target = any(tiles_);
  const bool vectorized = !has_threads() && target->rank() == 1 && one_in(3);
  For result{vectorized ? LoopKind::vectorized : LoopKind::parallel, {}, target->shape, 0, nullptr};
  for (size_t k = 0; k < target->rank(); ++k) {
    result.vars.push_back(make_var(k == 0 ? "i" : "j", kInt32));
    ints_.push_back(result.vars.back());
    element_.push_back(var_ref(result.vars.back(), span()));
  }
  written_ = {target};
  const bool outer = std::exchange(in_loop_, false);
  result.body = as_who(Who::block, [&] {
    if (!options_.iterations) return block(depth - 1);
    const Stmt set = variables(depth - 1);
    return make_stmt(Block{{set, block(depth - 1)}}, span());
  });
  in_loop_ = outer;
  variables_.clear();
  written_.clear();
  element_.clear();
  ints_.resize(ints_.size() - target->rank());
  return make_stmt(std::move(result), span());
}

// Iterations ----------------------------------------------------------------------------------------------------------

// Variables and small arrays, with their first values. Some loops take those of an earlier one.
Stmt RandomProgram::variables(int depth) {
  Block result;
  for (int k = pick(4); k > 0; --k) {
    const int64_t length = one_in(2) ? 1 : 1 + pick(4);
    const auto known = std::find_if(operands_.begin(), operands_.end(), [&](const Buffer& b) {
      return b->name == "v" && *constant_int(b->shape[0]) == length &&
             std::find(variables_.begin(), variables_.end(), b) == variables_.end();
    });
    const bool again = known != operands_.end() && one_in(2);
    const Buffer v = again ? *known : operand("v", dtype(), Scope::local, {length});
    if (length == 1) {
      result.body.push_back(make_stmt(Store{v, {int_imm(0)}, expr(v->type, std::min(depth, 2))}, span()));
    } else {
      const Var e = make_var("e", kInt32);
      ints_.push_back(e);
      const Stmt store = make_stmt(Store{v, {var_ref(e)}, expr(v->type, std::min(depth, 2))}, span());
      ints_.pop_back();
      result.body.push_back(make_stmt(For{LoopKind::serial, {e}, {int_imm(length)}, 0, store}, span()));
    }
    variables_.push_back(v);
  }
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::store_variable(int depth) {
  const Buffer v = any(variables_);
  const Stmt store = make_stmt(Store{v, indices(v, 2), expr(v->type, std::min(depth + 1, options_.depth))}, span());
  if (!one_in(3)) return store;
  If choice{bool_expr(1), store, nullptr};
  if (one_in(2)) choice.otherwise = make_stmt(Store{v, indices(v, 1), expr(v->type, 1)}, span());
  return make_stmt(std::move(choice), span());
}

// At a place that several iterations have.
Stmt RandomProgram::joint_update() {
  const bool global = one_in(4);
  const Buffer target = global ? joint_part_ : any(joint_);
  std::vector<Expr> at;
  for (size_t axis = 0; global && axis < 3; ++axis)
    at.push_back(axis < block_vars_.size() ? var_ref(block_vars_[axis]) : int_imm(0));
  Block result;
  while (at.size() < target->rank()) {
    const int64_t size = *constant_int(target->shape[at.size()]);
    Expr place = index(size, 2);
    if (!one_in(3)) {
      const Expr shared = binary(BinaryOp::floor_div, any(element_), int_imm(1 + pick(4)), span());
      place = binary(BinaryOp::floor_mod, shared, int_imm(size), span());
    }
    if (one_in(3)) {
      const Var name = make_var("place", place->type);
      result.body.push_back(make_stmt(Let{name, place}, span()));
      place = var_ref(name, span());
    }
    at.push_back(place);
  }
  result.body.push_back(joint_store(target, at));
  return make_stmt(std::move(result), span());
}

// All operations commute and are exact, that of a buffer is always the same.
Stmt RandomProgram::joint_store(const Buffer& target, const std::vector<Expr>& at) {
  constexpr std::array kOps{BinaryOp::add,     BinaryOp::min,    BinaryOp::max,    BinaryOp::mul,
                            BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};
  const bool is_float = target->type.is_float();
  const BinaryOp op = joint_ops_.emplace(target.get(), kOps[size_t(pick(is_float ? 3 : 7))]).first->second;
  const Expr value = is_float ? small_number(target->type) : expr(target->type, 2), old = load(target, at, span());
  const auto store = [&](const Expr& updated) { return make_stmt(Store{target, at, updated}, span()); };
  const bool by_order = op == BinaryOp::max || op == BinaryOp::min;
  switch (pick(5)) {
    case 0:
      if (!by_order) return store(binary(op, value, old, span()));
      return make_stmt(
          If{binary(op == BinaryOp::max ? BinaryOp::lt : BinaryOp::gt, old, value, span()), store(value), nullptr},
          span());
    case 1: {
      const Var name = make_var("old", target->type);
      const Stmt let = make_stmt(Let{name, old}, span());
      return make_stmt(Block{{let, store(binary(op, var_ref(name), value, span()))}}, span());
    }
    case 2:
      return store(binary(op == BinaryOp::add ? BinaryOp::sub : op, old, value, span()));
    case 3:
      return store(binary(op, value, old, span()));
    default:
      return store(binary(op, old, value, span()));
  }
}

// A counter of its own bounds the loop.
Stmt RandomProgram::counted_while(int depth) {
  const Buffer counter = operand("counter", kInt32, Scope::local, {1});
  const std::vector<Expr> at{int_imm(0)};
  const bool outer = std::exchange(in_loop_, false);
  Stmt body = block(depth - 1);
  in_loop_ = outer;
  const Stmt step = make_stmt(Store{counter, at, binary(BinaryOp::add, load(counter, at), int_imm(1))}, span());
  const Stmt reset = make_stmt(Fill{whole(counter), int_imm(0)}, span());
  const Expr more = binary(BinaryOp::lt, load(counter, at), int_imm(pick(4)));
  const Stmt loop = make_stmt(While{more, make_stmt(Block{{step, body}}, span())}, span());
  return make_stmt(Block{{reset, loop}}, span());
}

// Atomics -------------------------------------------------------------------------------------------------------------

Stmt RandomProgram::atomic(const Buffer& target, std::vector<Expr> at) {
  if (target->type.is_nibble()) return make_stmt(Store{target, std::move(at), expr(target->type, 1)}, span());
  Atomic a{AtomicOp(pick(6)), {target, std::move(at), {}, span()}, nullptr, MemoryOrder(pick(5)), nullptr};
  a.element.extent.assign(target->rank(), 1);
  const bool has_bits = target->type.is_int() || target->type.is_bool();
  if (a.op == AtomicOp::bit_or && !has_bits) a.op = AtomicOp::max;
  if (target->type.is_bool() && a.op != AtomicOp::load) a.op = AtomicOp::bit_or;
  if (a.op != AtomicOp::load) a.value = expr(target->type, 1);
  if (a.op == AtomicOp::load || one_in(2)) {
    a.previous = make_var("before", target->type);
    if (who_ == Who::thread) apart_.insert(a.previous.get());
    (target->type == kInt32 || target->type == kInt64 ? ints_ : scalars_).push_back(a.previous);
  }
  return make_stmt(std::move(a), span());
}

// All of a kernel update a buffer in the same way, and nobody looks.
Stmt RandomProgram::update() {
  const Buffer target = one_in(2) ? any(totals_) : any(bins_);
  const bool is_float = target->type.is_float();
  const std::array ops{AtomicOp::add, AtomicOp::min, AtomicOp::max, AtomicOp::bit_or};
  const AtomicOp op = updates_.emplace(target.get(), ops[size_t(pick(is_float ? 3 : 4))]).first->second;
  Atomic a{op, {target, indices(target, 2), {}, span()}, nullptr, MemoryOrder(pick(5)), nullptr};
  a.element.extent.assign(target->rank(), 1);
  a.value = is_float ? small_number(target->type) : expr(target->type, 2);
  return make_stmt(std::move(a), span());
}

// Regions -------------------------------------------------------------------------------------------------------------

// A region with these extents (none: random ones that fit), somewhere inside a tile, anywhere around a global buffer.
// What is written is not read to say where.
Region RandomProgram::region(const Buffer& buffer, const std::vector<int64_t>& extent) {
  Region result{buffer, part_start(buffer), {}, span()};
  result.extent.assign(result.start.size(), 1);
  for (size_t k = result.start.size(); k < buffer->rank(); ++k) {
    const auto size = constant_int(buffer->shape[k]);
    const int64_t n = !extent.empty() ? extent[k] : one_in(2) && size ? *size : 1 + pick(int(size.value_or(9)));
    const bool inside = buffer->scope != Scope::global;
    result.extent.push_back(n);
    result.start.push_back(as_who(Who::agreement, [&] {
      if (!inside && options_.held && size && one_in(2)) return start(*size);
      return inside ? index(*size - n + 1, 1) : one_in(2) ? int_imm(0) : expr(kInt32, 1);
    }));
  }
  return result;
}

// A region of `buffer` whose extents other than 1 are those of `wanted`, in order.
std::optional<Region> RandomProgram::region_with(const Buffer& buffer, const std::vector<int64_t>& wanted) {
  std::vector<int64_t> left;
  std::copy_if(wanted.rbegin(), wanted.rend(), std::back_inserter(left), [](int64_t n) { return n != 1; });
  std::vector<int64_t> extent(buffer->rank(), 1);
  for (size_t k = is_part(buffer) ? 3 : 0; k < extent.size() && !left.empty(); ++k) {
    const bool fits = buffer->scope == Scope::global || *constant_int(buffer->shape[k]) >= left.back();
    if (!fits) continue;
    extent[k] = left.back();
    left.pop_back();
  }
  if (!left.empty()) return std::nullopt;
  return region(buffer, extent);
}

Stmt RandomProgram::copy() {
  for (;;) {
    const Buffer to = one_in(3) ? any(writable_) : any(tiles_);
    const Buffer from = one_in(3) && !readable_.empty() ? any(readable_) : one_in(3) ? any(writable_) : any(tiles_);
    if (root(from) == root(to) || !converts(from->type, to->type)) continue;
    const Region source = region(from, {});
    const auto destination = region_with(to, source.extent);
    if (!destination) continue;
    return make_stmt(Copy{source, *destination, {one_in(4), one_in(4) ? 8 : 0}}, span());
  }
}

Stmt RandomProgram::fill() {
  const Buffer& target = one_in(4) ? any(writable_) : any(tiles_);
  return make_stmt(Fill{region(target, {}), expr(target->type, 1)}, span());
}

// Chains --------------------------------------------------------------------------------------------------------------

Stmt RandomProgram::overlapped_loop(const std::vector<Buffer>& tiles, const std::vector<int64_t>& extent) {
  For result{LoopKind::parallel, {}, {}, 0, nullptr};
  std::vector<Expr> here;
  for (const int64_t n : extent) {
    result.vars.push_back(make_var("e", kInt32));
    result.extents.push_back(int_imm(n));
    here.push_back(var_ref(result.vars.back()));
  }
  const Buffer target = any(tiles);
  const auto operand = [&](const Buffer& from) {
    std::vector<Expr> at = here;
    // Elsewhere than here only in tiles that the loop does not write.
    if (from != target && one_in(6)) at[0] = int_imm(0);
    return converted(load(from, at), target->type);
  };
  Expr value = operand(any(tiles));
  if (one_in(2)) value = select(bool_expr(1), operand(any(tiles)), value);
  if (one_in(2)) value = binary(target->type.is_bool() ? BinaryOp::ne : BinaryOp::max, value, operand(any(tiles)));
  Stmt body = make_stmt(Store{target, here, value}, span());
  if (one_in(8)) body = make_stmt(If{bool_expr(1), body, nullptr}, span());
  result.body = make_stmt(Block{{body}}, span());
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::chain() {
  const std::vector<int64_t> extent = one_in(2) ? std::vector<int64_t>{4} : std::vector<int64_t>{2, 4};
  std::vector<Buffer> tiles;
  for (int k = 0, count = 2 + pick(3); k < count; ++k) {
    std::vector<int64_t> shape = extent;
    if (one_in(5)) shape[0] += 1;
    tiles.push_back(tile("chain", shape));
  }
  operands_.insert(operands_.end(), tiles.begin(), tiles.end());
  const auto box = [&](const Buffer& b) {
    return Region{b, std::vector<Expr>(extent.size(), int_imm(0)), extent, span()};
  };
  Block result;
  const auto append_copy = [&](const std::optional<Region>& from, const std::optional<Region>& to) {
    const bool fits = from && to && from->buffer != to->buffer && converts(from->buffer->type, to->buffer->type);
    if (fits) result.body.push_back(make_stmt(Copy{*from, *to, {}}, span()));
  };
  for (int k = 0, count = 2 + pick(5); k < count; ++k) {
    const Buffer a = any(tiles), b = any(tiles);
    switch (pick(6)) {
      case 0:
        if (!readable_.empty()) append_copy(region_with(any(readable_), extent), box(a));
        break;
      case 1:
        append_copy(box(a), region_with(any(writable_), extent));
        break;
      case 2:
        result.body.push_back(make_stmt(Fill{box(a), leaf(a->type)}, span()));
        break;
      case 3:
        append_copy(box(a), box(b));
        break;
      default:
        result.body.push_back(overlapped_loop(tiles, extent));
    }
  }
  return make_stmt(std::move(result), span());
}

}  // namespace tilepilot::ir::testing
