#include "tests/ir/random_program.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace tilepilot::ir::testing {
namespace {

constexpr std::array kTypes{kFloat32, kFloat32, kFloat32, kFloat16, kBFloat16, kFloat64, kInt32,  kInt32,
                            kInt64,   kInt8,    kInt16,   kUInt8,   kUInt32,   kUInt64,  kUInt16, kBool};
constexpr std::array kNames{"x", "i", "acc", "max", "tile", "x", "copy", "value_1", "i"};

DType same_size(DType type) {
  switch (type.bits) {
    case 8:
      return type == kInt8 ? kUInt8 : kInt8;
    case 16:
      return type == kInt16 ? kFloat16 : kInt16;
    case 32:
      return type == kInt32 ? kFloat32 : kInt32;
    default:
      return type == kInt64 ? kFloat64 : kInt64;
  }
}

// Whether every value of one type becomes one of the other.
bool converts(DType from, DType to) { return !from.is_float() || !to.is_int(); }

}  // namespace

DType RandomProgram::dtype() { return kTypes[size_t(pick(kTypes.size()))]; }

Span RandomProgram::span() { return {0, uint32_t(pick(100)), uint32_t(100 + pick(100))}; }

Buffer RandomProgram::buffer(std::string name, DType type, Scope scope, std::vector<Expr> shape) {
  return std::make_shared<BufferData>(BufferData{std::move(name), type, scope, std::move(shape), {}, span(), nullptr});
}

Buffer RandomProgram::tile(std::string name, std::vector<int64_t> shape) {
  std::vector<Expr> extents;
  for (const int64_t n : shape) extents.push_back(int_imm(n));
  const auto scope = Scope(1 + pick(3));
  return buffer(std::move(name), dtype(), scope, std::move(extents));
}

// expressions ---------------------------------------------------------------------------------------------------------

Expr RandomProgram::leaf(DType type) {
  std::vector<Var> fitting;
  for (const auto* vars : {&ints_, &scalars_}) {
    std::copy_if(vars->begin(), vars->end(), std::back_inserter(fitting),
                 [&](const Var& v) { return v->type == type; });
  }
  if (!fitting.empty() && !one_in(3)) return var_ref(any(fitting), span());
  if (type.is_bool()) return bool_imm(one_in(2), span());
  if (type.is_int()) {
    const bool is_signed = type.code == TypeCode::signed_int;
    return int_imm(pick(100) - (is_signed ? 50 : 0), type, span());
  }
  constexpr double kSpecial[] = {0.0,
                                 -0.0,
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN(),
                                 1e-20,
                                 65504.0};
  return float_imm(one_in(8) ? kSpecial[pick(7)] : (pick(200) - 100) / 16.0, type, span());
}

bool RandomProgram::is_written(const Buffer& buffer) const {
  return std::find(written_.begin(), written_.end(), buffer) != written_.end();
}

Expr RandomProgram::index(int64_t limit, int depth) {
  if (one_in(3)) return int_imm(pick(int(limit)), one_in(8) ? kInt64 : kInt32, span());
  const DType type = one_in(6) ? kInt64 : kInt32;
  return binary(BinaryOp::floor_mod, expr(type, depth - 1), int_imm(limit, type), span());
}

std::vector<Expr> RandomProgram::indices(const Buffer& buffer, int depth) {
  if (is_written(buffer)) return element_;
  std::vector<Expr> result;
  for (const Expr& extent : buffer->shape) {
    const auto size = constant_int(extent);
    const bool may_leave = buffer->scope == Scope::global && one_in(2);
    result.push_back(size && !may_leave ? index(*size, depth) : expr(kInt32, depth - 1));
  }
  return result;
}

// A float becomes an integer only where every integer type can hold it.
Expr RandomProgram::converted(Expr value, DType type) {
  if (value->type.is_float() && type.is_int()) {
    const double low = type.code == TypeCode::signed_int ? -64 : 0;
    value = binary(BinaryOp::max, value, float_imm(low, value->type), span());
    value = binary(BinaryOp::min, value, float_imm(64, value->type), span());
  }
  return cast(std::move(value), type, span());
}

Expr RandomProgram::load_of(const Buffer& buffer, int depth) { return load(buffer, indices(buffer, depth), span()); }

Expr RandomProgram::expr(DType type, int depth) {
  if (depth <= 0 || one_in(5)) return leaf(type);
  switch (pick(8)) {
    case 0:
      return select(bool_expr(depth - 1), expr(type, depth - 1), expr(type, depth - 1), span());
    case 1:
      return converted(expr(dtype(), depth - 1), type);
    case 2: {
      const Buffer& from = any_buffer();
      return converted(load_of(from, depth - 1), type);
    }
    case 3:
      if (!type.is_bool()) return reinterpret(expr(same_size(type), depth - 1), type, span());
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
      return binary(one_in(2) ? BinaryOp::floor_div : BinaryOp::floor_mod, left, int_imm(1 + pick(20), type), span());
    case 2:
      return binary(one_in(2) ? BinaryOp::shl : BinaryOp::shr, left, int_imm(pick(type.bits), type), span());
    case 3:
      if (type.code == TypeCode::signed_int) return math(MathFn::abs, left, span());
      [[fallthrough]];
    default:
      return binary(kOps[size_t(pick(kOps.size()))], left, expr(type, depth - 1), span());
  }
}

Expr RandomProgram::float_expr(DType type, int depth) {
  constexpr std::array kOps{BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div,
                            BinaryOp::min, BinaryOp::max, BinaryOp::pow};
  const Expr left = expr(type, depth - 1);
  if (one_in(6)) return unary(UnaryOp::neg, left, span());
  if (one_in(3)) return math(MathFn(pick(int(MathFn::isnan))), left, span());
  return binary(kOps[size_t(pick(kOps.size()))], left, expr(type, depth - 1), span());
}

Expr RandomProgram::bool_expr(int depth) {
  if (depth <= 0) return leaf(kBool);
  if (one_in(6)) return unary(UnaryOp::logical_not, bool_expr(depth - 1), span());
  if (one_in(6))
    return math(MathFn(int(MathFn::isnan) + pick(3)), expr(one_in(2) ? kFloat32 : kFloat16, depth - 1), span());
  if (one_in(3)) {
    const BinaryOp op = one_in(2) ? BinaryOp::logical_and : BinaryOp::logical_or;
    return binary(op, bool_expr(depth - 1), bool_expr(depth - 1), span());
  }
  const DType type = one_in(2) ? kInt32 : dtype();
  const auto op = BinaryOp(int(BinaryOp::eq) + pick(type.is_bool() ? 2 : 6));
  return binary(op, expr(type, depth - 1), expr(type, depth - 1), span());
}

// statements ----------------------------------------------------------------------------------------------------------

Stmt RandomProgram::block(int depth) {
  const auto ints = ints_, scalars = scalars_;
  Block result;
  for (int k = pick(options_.statements) + 1; k > 0; --k) result.body.push_back(statement(depth));
  ints_ = ints;
  scalars_ = scalars;
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::statement(int depth) {
  const bool parallel_body = !element_.empty();
  switch (pick(parallel_body ? 5 : options_.threads ? 16 : 15)) {
    case 0:
      return let(depth);
    case 1:
      return depth > 0 ? branch(depth) : store(depth);
    case 2:
      return depth > 0 ? loop(depth) : store(depth);
    case 3:
      return store(depth);
    case 4:
      if (parallel_body) return atomic(any(written_));
      return depth > 0 ? parallel(depth) : store(depth);
    case 13:
      return scan();
    case 14:
      return atomic(any(tiles_));
    case 15:
      return all_reduce();
    case 5:
      return depth > 0 ? counted_while(depth) : store(depth);
    case 6:
      return depth > 0 && one_in(2) ? block(depth - 1) : copy();
    case 7:
      return gemm();
    case 8:
      return reduce();
    case 9: {
      const Buffer& target = any(tiles_);
      return make_stmt(Fill{region(target, {}), expr(target->type, 1)}, span());
    }
    case 10:
    case 11:
      return chain();
    default:
      return one_in(4) ? make_stmt(Sync{}, span()) : copy();
  }
}

Stmt RandomProgram::chain_loop(const std::vector<Buffer>& tiles, const std::vector<int64_t>& extent) {
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
  for (int k = 0, count = 2 + pick(5); k < count; ++k) {
    const Buffer a = any(tiles), b = any(tiles), global = any(globals_);
    const auto outside = region_with(global, extent);
    switch (pick(6)) {
      case 0:
        if (outside && converts(global->type, a->type))
          result.body.push_back(make_stmt(Copy{*outside, box(a), {}}, span()));
        break;
      case 1:
        if (outside && converts(a->type, global->type))
          result.body.push_back(make_stmt(Copy{box(a), *outside, {}}, span()));
        break;
      case 2:
        result.body.push_back(make_stmt(Fill{box(a), leaf(a->type)}, span()));
        break;
      case 3:
        if (a != b && converts(a->type, b->type)) result.body.push_back(make_stmt(Copy{box(a), box(b), {}}, span()));
        break;
      default:
        result.body.push_back(chain_loop(tiles, extent));
    }
  }
  return make_stmt(std::move(result), span());
}

Stmt RandomProgram::let(int depth) {
  const Expr value = expr(one_in(2) ? kInt32 : dtype(), std::min(depth, 2));
  const Var var = make_var(kNames[size_t(pick(kNames.size()))], value->type);
  (value->type == kInt32 || value->type == kInt64 ? ints_ : scalars_).push_back(var);
  return make_stmt(Let{var, value}, span());
}

Stmt RandomProgram::store(int depth) {
  const Buffer target = !element_.empty() ? any(written_) : one_in(3) ? any(globals_) : any(tiles_);
  return make_stmt(Store{target, indices(target, 2), expr(target->type, std::min(depth + 1, options_.depth))}, span());
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
  const Var var = make_var(kNames[size_t(pick(kNames.size()))], one_in(5) ? kInt64 : kInt32);
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
  const LoopKind kind = target->rank() == 1 && one_in(3) ? LoopKind::vectorized : LoopKind::parallel;
  For result{kind, {}, target->shape, 0, nullptr};
  for (size_t k = 0; k < target->rank(); ++k) {
    result.vars.push_back(make_var(k == 0 ? "i" : "j", kInt32));
    ints_.push_back(result.vars.back());
    element_.push_back(var_ref(result.vars.back(), span()));
  }
  written_ = {target};
  const bool outer = std::exchange(in_loop_, false);
  result.body = block(depth - 1);
  in_loop_ = outer;
  written_.clear();
  element_.clear();
  ints_.resize(ints_.size() - target->rank());
  return make_stmt(std::move(result), span());
}

// A counter of its own bounds the loop.
Stmt RandomProgram::counted_while(int depth) {
  const Buffer counter = buffer("counter", kInt32, Scope::local, {int_imm(1)});
  const std::vector<Expr> at{int_imm(0)};
  const bool outer = std::exchange(in_loop_, false);
  Stmt body = block(depth - 1);
  in_loop_ = outer;
  counters_.push_back(counter);
  const Stmt step = make_stmt(Store{counter, at, binary(BinaryOp::add, load(counter, at), int_imm(1))}, span());
  const Stmt reset = make_stmt(Fill{{counter, at, {1}, span()}, int_imm(0)}, span());
  const Expr more = binary(BinaryOp::lt, load(counter, at), int_imm(pick(4)));
  const Stmt loop = make_stmt(While{more, make_stmt(Block{{step, body}}, span())}, span());
  return make_stmt(Block{{reset, loop}}, span());
}

// A region with these extents (none: random ones that fit), somewhere inside a tile, anywhere around a global buffer.
Region RandomProgram::region(const Buffer& buffer, const std::vector<int64_t>& extent) {
  Region result{buffer, {}, {}, span()};
  for (size_t k = 0; k < buffer->rank(); ++k) {
    const auto size = constant_int(buffer->shape[k]);
    const int64_t n = !extent.empty() ? extent[k] : one_in(2) && size ? *size : 1 + pick(int(size.value_or(9)));
    const bool inside = buffer->scope != Scope::global;
    result.extent.push_back(n);
    result.start.push_back(inside ? index(*size - n + 1, 1) : one_in(2) ? int_imm(0) : expr(kInt32, 1));
  }
  return result;
}

// A region of `buffer` whose extents other than 1 are those of `wanted`, in order.
std::optional<Region> RandomProgram::region_with(const Buffer& buffer, const std::vector<int64_t>& wanted) {
  std::vector<int64_t> left;
  std::copy_if(wanted.rbegin(), wanted.rend(), std::back_inserter(left), [](int64_t n) { return n != 1; });
  std::vector<int64_t> extent(buffer->rank(), 1);
  for (size_t k = 0; k < extent.size() && !left.empty(); ++k) {
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
    const Buffer from = any_buffer(), to = any_buffer();
    if (from == to || !converts(from->type, to->type)) continue;
    const Region source = region(from, {});
    const auto destination = region_with(to, source.extent);
    if (!destination) continue;
    return make_stmt(Copy{source, *destination, {one_in(4), one_in(4) ? 8 : 0}}, span());
  }
}

Stmt RandomProgram::gemm() {
  Gemm g;
  g.transpose_a = one_in(2);
  g.transpose_b = one_in(2);
  g.clear_accumulator = one_in(2);
  g.policy = WarpPolicy(pick(3));
  const auto whole = [&](const Buffer& b) {
    return region(b, {*constant_int(b->shape[0]), *constant_int(b->shape[1])});
  };
  const auto matrix = [&](const char* name, DType type, Scope scope, int rows, int columns) {
    const Buffer b = buffer(name, type, scope, {int_imm(rows), int_imm(columns)});
    operands_.push_back(b);
    return whole(b);
  };
  const int m = 1 << (2 + pick(2)), n = 1 << (2 + pick(2)), k = 1 << (1 + pick(3));
  const DType type = one_in(2) ? kFloat16 : kFloat32;
  g.a = g.transpose_a ? matrix("a", type, Scope::shared, k, m) : matrix("a", type, Scope::shared, m, k);
  g.b = g.transpose_b ? matrix("b", type, Scope::shared, n, k) : matrix("b", type, Scope::shared, k, n);
  g.c = matrix("c", kFloat32, Scope::fragment, m, n);
  return make_stmt(std::move(g), span());
}

Stmt RandomProgram::reduce() {
  const int rank = 1 + pick(3);
  std::vector<Expr> shape;
  for (int k = 0; k < rank; ++k) shape.push_back(int_imm(1 + pick(8)));
  const DType type = one_in(2) ? kFloat32 : kInt32;
  const Buffer source = buffer("from", type, Scope::fragment, shape);
  const int axis = pick(rank);
  if (one_in(2) || rank == 1) {
    shape[size_t(axis)] = int_imm(1);
  } else {
    shape.erase(shape.begin() + axis);
  }
  const Buffer destination = buffer("to", type, Scope::fragment, shape);
  const auto whole = [&](const Buffer& b) {
    Region r{b, {}, {}, span()};
    for (const Expr& n : b->shape) {
      r.start.push_back(int_imm(0));
      r.extent.push_back(*constant_int(n));
    }
    return r;
  };
  operands_.push_back(source);
  operands_.push_back(destination);
  const int ops = type.is_int() ? 8 : 5;
  return make_stmt(Reduce{ReduceOp(pick(ops)), whole(source), whole(destination), axis, one_in(2), one_in(3)}, span());
}

Stmt RandomProgram::scan() {
  std::vector<Expr> shape;
  for (int k = 0, rank = 1 + pick(3); k < rank; ++k) shape.push_back(int_imm(1 + pick(6)));
  const Buffer source = buffer("from", one_in(2) ? kFloat32 : kInt16, Scope::shared, shape);
  const Buffer destination = one_in(3) ? source : buffer("to", source->type, Scope::fragment, shape);
  operands_.push_back(source);
  if (destination != source) operands_.push_back(destination);
  std::vector<int64_t> extent;
  for (const Expr& n : shape) extent.push_back(*constant_int(n));
  const std::vector<Expr> start(shape.size(), int_imm(0));
  Scan s{one_in(2) ? ScanOp::sum : ScanOp::max,
         {source, start, extent, span()},
         {destination, start, extent, span()},
         pick(int(shape.size())),
         one_in(2)};
  return make_stmt(std::move(s), span());
}

Stmt RandomProgram::atomic(const Buffer& target) {
  Atomic a{AtomicOp(pick(6)), {target, indices(target, 1), {}, span()}, nullptr, MemoryOrder(pick(5)), nullptr};
  a.element.extent.assign(target->rank(), 1);
  const bool has_bits = target->type.is_int() || target->type.is_bool();
  if (a.op == AtomicOp::bit_or && !has_bits) a.op = AtomicOp::max;
  if (target->type.is_bool() && a.op != AtomicOp::load) a.op = AtomicOp::bit_or;
  if (a.op != AtomicOp::load) a.value = expr(target->type, 1);
  if (a.op == AtomicOp::load || one_in(2)) {
    a.previous = make_var("before", target->type);
    (target->type == kInt32 || target->type == kInt64 ? ints_ : scalars_).push_back(a.previous);
  }
  return make_stmt(std::move(a), span());
}

Stmt RandomProgram::all_reduce() {
  constexpr std::array kCombiners{BinaryOp::add,     BinaryOp::mul,    BinaryOp::min,    BinaryOp::max,
                                  BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};
  const DType type = one_in(2) ? kFloat32 : kInt32;
  const Buffer result = buffer("all", type, Scope::local, {int_imm(1)});
  operands_.push_back(result);
  const BinaryOp op = kCombiners[size_t(pick(type.is_int() ? 7 : 4))];
  AllReduce r{op, expr(type, 2), bool_expr(1), leaf(type), {result, {int_imm(0)}, {1}, span()}, {0}};
  return make_stmt(std::move(r), span());
}

// programs ------------------------------------------------------------------------------------------------------------

Kernel RandomProgram::kernel() {
  const auto ints = ints_;
  Kernel result;
  result.span = span();
  result.threads = one_in(3) ? std::vector<int64_t>{32, 4} : std::vector<int64_t>{64};
  constexpr std::array kBlocks{"bx", "by", "bz"};
  for (int k = 0, count = 1 + pick(3); k < count; ++k) {
    result.block_vars.push_back(make_var(kBlocks[size_t(k)], kInt32));
    const Expr blocks = binary(BinaryOp::floor_div, binary(BinaryOp::add, leaf(kInt32), int_imm(7)), int_imm(8));
    result.grid.push_back(k == 0 && one_in(3) ? binary(BinaryOp::max, blocks, int_imm(1)) : int_imm(1 + pick(3)));
  }
  ints_.insert(ints_.end(), result.block_vars.begin(), result.block_vars.end());
  for (size_t axis = 0; options_.threads && axis < result.threads.size(); ++axis)
    result.thread_vars.push_back(make_var(axis == 0 ? "tx" : "ty", kInt32));
  ints_.insert(ints_.end(), result.thread_vars.begin(), result.thread_vars.end());
  tiles_.clear();
  for (int k = 0; k < 4; ++k) {
    std::vector<int64_t> shape;
    for (int axis = 0, rank = 1 + pick(3); axis < rank; ++axis) shape.push_back(1 << pick(4));
    tiles_.push_back(tile(kNames[size_t(pick(kNames.size()))], shape));
  }
  counters_.clear();
  operands_.clear();
  std::vector<Stmt> body;
  for (int k = 0; k < options_.statements; ++k) body.push_back(statement(options_.depth));
  result.allocations = tiles_;
  result.allocations.insert(result.allocations.end(), counters_.begin(), counters_.end());
  result.allocations.insert(result.allocations.end(), operands_.begin(), operands_.end());
  Block all;
  for (const Buffer& b : result.allocations) {
    Region whole{b, {}, {}, span()};
    for (const Expr& n : b->shape) {
      whole.start.push_back(int_imm(0));
      whole.extent.push_back(*constant_int(n));
    }
    const Expr zero = b->type.is_float()  ? float_imm(0.5, b->type)
                      : b->type.is_bool() ? bool_imm(false)
                                          : int_imm(1, b->type);
    all.body.push_back(make_stmt(Fill{whole, zero}, span()));
  }
  all.body.insert(all.body.end(), body.begin(), body.end());
  result.body = make_stmt(std::move(all), span());
  ints_ = ints;
  scalars_ = parameters_;
  return result;
}

Program RandomProgram::program() {
  Program p;
  p.name = "random";
  p.span = span();
  const Var m = make_var("m", kInt32);
  p.symbols.push_back(m);
  globals_ = {buffer("x", kFloat32, Scope::global, {var_ref(m), int_imm(16)})};
  for (int k = 0, count = 1 + pick(3); k < count; ++k) {
    std::vector<Expr> shape;
    for (int axis = 0, rank = 1 + pick(3); axis < rank; ++axis) shape.push_back(int_imm(1 + pick(20)));
    globals_.push_back(buffer(kNames[size_t(pick(kNames.size()))], dtype(), Scope::global, shape));
  }
  const std::vector<Expr> strides{int_imm(40), int_imm(2)};
  globals_.push_back(std::make_shared<BufferData>(
      BufferData{"strided", kFloat16, Scope::global, {int_imm(8), int_imm(20)}, strides, span(), nullptr}));
  p.parameters.assign(globals_.begin(), globals_.end());
  const Var scale = make_var("scale", kFloat32), count = make_var("count", kInt64);
  p.parameters.emplace_back(scale);
  p.parameters.emplace_back(count);
  parameters_ = {scale};
  scalars_ = parameters_;
  ints_ = {m, count};
  for (int k = 1 + pick(2); k > 0; --k) p.kernels.push_back(kernel());
  return p;
}

}  // namespace tilepilot::ir::testing
