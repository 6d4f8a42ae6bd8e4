#include "compiler/passes/threads/thread_exchange.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/ir/matrix_operands.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/threads/roles.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

std::optional<ReduceOp> as_reduction(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return ReduceOp::sum;
    case BinaryOp::max:
      return ReduceOp::max;
    case BinaryOp::min:
      return ReduceOp::min;
    case BinaryOp::bit_and:
      return ReduceOp::bit_and;
    case BinaryOp::bit_or:
      return ReduceOp::bit_or;
    case BinaryOp::bit_xor:
      return ReduceOp::bit_xor;
    default:
      return std::nullopt;
  }
}

class Lowering : public Rewriter {
 public:
  explicit Lowering(const Kernel& kernel) : kernel_(kernel) {}
  using Rewriter::rewrite;

  Kernel run() {
    Kernel result = kernel_;
    result.body = rewrite(kernel_.body);
    result.allocations.insert(result.allocations.end(), tiles_.begin(), tiles_.end());
    return result;
  }

  Stmt rewrite(const Stmt& s) override {
    if (const auto* n = as<AllReduce>(s)) return n->lanes > 0 ? of_warp(*n, s->span) : lowered(*n, s->span);
    if (const auto* n = as<Shuffle>(s)) return lowered(*n, s->span);
    if (const auto* n = as<LoadMatrix>(s)) return lowered(*n, s->span);
    if (const auto* n = as<Mma>(s)) return lowered(*n, s->span);
    if (const auto* n = as<Block>(s)) return flattened(*n, s);
    return rewrite_children(s);
  }

 private:
  const Kernel& kernel_;
  std::vector<Buffer> tiles_;

  // A thread's place in its group, and the number of its group.
  struct Place {
    Expr index = int_imm(0);
    int64_t extent = 1;
    void add(const Var& thread, int64_t threads) {
      const Expr step = cast(var_ref(thread), kInt32);
      index = extent == 1 ? step : binary(BinaryOp::add, index, binary(BinaryOp::mul, step, int_imm(extent)));
      extent *= threads;
    }
  };

  Buffer tile(const char* name, DType type, std::vector<int64_t> extents, Span span) {
    BufferData data{name, type, Scope::shared, {}, {}, span, nullptr};
    for (const int64_t extent : extents) data.shape.push_back(int_imm(extent));
    tiles_.push_back(std::make_shared<BufferData>(std::move(data)));
    return tiles_.back();
  }

  // A shuffle binds a variable for what follows: its statements stand in the block around.
  Stmt flattened(const Block& block, const Stmt& s) {
    Block result;
    for (const Stmt& child : block.body) {
      const Stmt fresh = rewrite(child);
      const auto* inner = as<Shuffle>(child) ? as<Block>(fresh) : nullptr;
      if (inner) {
        result.body.insert(result.body.end(), inner->body.begin(), inner->body.end());
      } else if (fresh) {
        result.body.push_back(fresh);
      }
    }
    return result.body == block.body ? s : make_stmt(std::move(result), s->span);
  }

  // The index of a thread in its block, threadIdx.x fastest.
  Place thread() const {
    Place place;
    for (size_t axis = 0; axis < kernel_.threads.size(); ++axis)
      place.add(kernel_.thread_vars[axis], kernel_.threads[axis]);
    return place;
  }
  static Stmt sync(Span span) { return make_stmt(Sync{SyncScope::warp}, span); }

  Stmt lowered(const Shuffle& n, Span span) {
    const Place own = thread();
    const Buffer values = tile("values", n.value->type, {own.extent}, span);
    const Stmt give = make_stmt(Store{values, {own.index}, n.value}, span);
    const Stmt take = make_stmt(Let{n.result, load(values, {source(n, own)}, span)}, span);
    return make_stmt(Block{{give, sync(span), take, sync(span)}}, span);
  }

  // Whose value a thread takes: see `Shuffle`.
  static Expr source(const Shuffle& n, const Place& own) {
    const auto number = [](int64_t value) { return int_imm(value); };
    const Expr start = binary(BinaryOp::sub, own.index, binary(BinaryOp::floor_mod, own.index, number(n.width)));
    const Expr end = binary(BinaryOp::add, start, number(n.width));
    const int64_t bits = n.op == ShuffleOp::from ? n.width - 1 : kWarp - 1;
    const Expr lane = binary(BinaryOp::bit_and, cast(n.lane, kInt32), number(bits));
    static constexpr BinaryOp kChanges[] = {BinaryOp::add, BinaryOp::bit_xor, BinaryOp::sub, BinaryOp::add};
    const Expr other = binary(kChanges[size_t(n.op)], n.op == ShuffleOp::from ? start : own.index, lane);
    const bool goes_down = n.op == ShuffleOp::up;
    Expr valid = goes_down ? binary(BinaryOp::ge, other, start) : binary(BinaryOp::lt, other, end);
    if (own.extent % kWarp != 0)
      valid = binary(BinaryOp::logical_and, valid, binary(BinaryOp::lt, other, number(own.extent)));
    const bool always = n.op == ShuffleOp::from && own.extent % kWarp == 0;
    return always ? other : select(valid, other, own.index);
  }

  // An element of a region of one axis that is not 1, its last.
  static std::vector<Expr> item_of(const Region& region, const Expr& item) {
    std::vector<Expr> at = region.start;
    at.back() = binary(BinaryOp::add, at.back(), cast(item, at.back()->type));
    return at;
  }
  struct Lane {
    Expr first, row, column;  // the warp's first thread; of the lane among the eight rows, and the four in a row
  };
  static Lane lane_of(const Expr& thread) {
    const Expr lane = binary(BinaryOp::floor_mod, thread, int_imm(kWarp)), four = int_imm(kLanesOfRow);
    return {binary(BinaryOp::sub, thread, lane), binary(BinaryOp::floor_div, lane, four),
            binary(BinaryOp::floor_mod, lane, four)};
  }
  static Stmt repeat(const Var& var, int64_t count, Stmt body) {
    return make_stmt(For{LoopKind::serial, {var}, {int_imm(count)}, 0, body}, body->span);
  }

  // Every thread writes where its row starts; others read there.
  Stmt lowered(const LoadMatrix& n, Span span) {
    const Place own = thread();
    const Lane lane = lane_of(own.index);
    const int64_t word = 32 / n.row.buffer->type.bits;
    const size_t rank = n.row.start.size();
    const Buffer starts = tile("rows", kInt64, {int64_t(rank), own.extent}, span);
    Block result;
    for (size_t axis = 0; axis < rank; ++axis)
      result.body.push_back(
          make_stmt(Store{starts, {int_imm(int64_t(axis)), own.index}, cast(n.row.start[axis], kInt64)}, span));
    result.body.push_back(sync(span));
    const Var var = make_var("item", kInt32);
    const Expr item = var_ref(var), width = int_imm(word);
    const Expr element =
        binary(BinaryOp::add, binary(BinaryOp::mul, lane.column, width), binary(BinaryOp::floor_mod, item, width));
    const Expr matrix = binary(BinaryOp::mul, binary(BinaryOp::floor_div, item, width), int_imm(8));
    const Expr source =
        binary(BinaryOp::add, binary(BinaryOp::add, lane.first, matrix), n.transposed ? element : lane.row);
    std::vector<Expr> from;
    for (size_t axis = 0; axis < rank; ++axis)
      from.push_back(cast(load(starts, {int_imm(int64_t(axis)), source}, span), n.row.start[axis]->type));
    from.back() = binary(BinaryOp::add, from.back(), cast(n.transposed ? lane.row : element, from.back()->type));
    const Stmt take = make_stmt(
        Store{n.registers.buffer, item_of(n.registers, item), load(n.row.buffer, std::move(from), span)}, span);
    result.body.push_back(repeat(var, n.count * word, make_stmt(Block{{take}}, span)));
    result.body.push_back(sync(span));
    return make_stmt(std::move(result), span);
  }

  // Every thread writes what it holds of the operands, and sums up its four elements.
  Stmt lowered(const Mma& n, Span span) {
    const Place own = thread();
    const Lane lane = lane_of(own.index);
    const DType c = n.c.buffer->type, type = c.is_float() ? kFloat32 : kInt32;
    const int64_t word = 32 / n.a.buffer->type.bits, depth = 2 * n.a.extent.back();
    Block result;
    const auto shared = [&](const char* name, const Region& region) {
      const Buffer all = tile(name, type, {own.extent, region.extent.back()}, span);
      const Var var = make_var("item", kInt32);
      const Expr value = cast(load(region.buffer, item_of(region, var_ref(var)), span), type);
      const Stmt give = make_stmt(Store{all, {own.index, var_ref(var)}, value}, span);
      result.body.push_back(repeat(var, region.extent.back(), make_stmt(Block{{give}}, span)));
      return all;
    };
    const Buffer all_a = shared("of_a", n.a), all_b = shared("of_b", n.b);
    result.body.push_back(sync(span));
    const auto from = [&](const Expr& row, const OperandPlace& place) -> std::vector<Expr> {
      const Expr first = binary(BinaryOp::add, lane.first, binary(BinaryOp::mul, row, int_imm(kLanesOfRow)));
      return {binary(BinaryOp::add, first, int_imm(place.lane_of_row)), int_imm(place.item)};
    };
    for (int64_t item = 0; item < kItemsOfC; ++item) {
      const std::vector<Expr> at = item_of(n.c, int_imm(item));
      const Expr column = binary(BinaryOp::add, binary(BinaryOp::mul, lane.column, int_imm(2)), int_imm(item % 2));
      Expr sum = cast(load(n.c.buffer, at, span), type);
      for (int64_t k = 0; k < depth; ++k) {
        const Expr a = load(all_a, from(lane.row, place_in_a(item / 2, k, word)), span);
        const Expr b = load(all_b, from(column, place_in_b(k, word)), span);
        sum = binary(BinaryOp::add, sum, binary(BinaryOp::mul, a, b));
      }
      result.body.push_back(make_stmt(Store{n.c.buffer, at, cast(sum, c)}, span));
    }
    result.body.push_back(sync(span));
    return make_stmt(std::move(result), span);
  }

  // The first lane adds up for all.
  Stmt of_warp(const AllReduce& n, Span span) {
    const Place own = thread();
    const DType type = n.result.buffer->type, kept = type.is_float() && type.bits < 32 ? kFloat32 : type;
    const int64_t warps = (own.extent + n.lanes - 1) / n.lanes;
    const Buffer values = tile("values", kept, {own.extent}, span), totals = tile("totals", kept, {warps}, span);
    const Expr warp = binary(BinaryOp::floor_div, own.index, int_imm(n.lanes));
    const Expr value = constant_int(n.condition) == 1 ? n.value : select(n.condition, n.value, n.identity, span);
    const Expr given = joined_with_identity(n.op, cast(value, kept, span));
    const Stmt give = make_stmt(Store{values, {own.index}, given}, span);
    const Var lane = make_var("lane", kInt32);
    const Expr later = binary(BinaryOp::add, own.index, binary(BinaryOp::add, var_ref(lane), int_imm(1)));
    const Expr next = binary(n.op, load(totals, {warp}, span), load(values, {later}, span), span);
    Expr others = int_imm(n.lanes - 1);
    if (own.extent % n.lanes != 0)
      others = binary(BinaryOp::min, others, binary(BinaryOp::sub, int_imm(own.extent - 1), own.index));
    const Stmt step =
        make_stmt(For{LoopKind::serial, {lane}, {others}, 0, make_stmt(Store{totals, {warp}, next}, span)}, span);
    const Stmt sum =
        make_stmt(Block{{make_stmt(Store{totals, {warp}, load(values, {own.index}, span)}, span), step}}, span);
    const Expr is_first = binary(BinaryOp::eq, binary(BinaryOp::floor_mod, own.index, int_imm(n.lanes)), int_imm(0));
    const Stmt add_up = make_stmt(If{is_first, sum, nullptr}, span);
    const Expr total = cast(load(totals, {warp}, span), type, span);
    const Stmt take = make_stmt(Store{n.result.buffer, n.result.start, total}, span);
    return make_stmt(Block{{give, sync(span), add_up, sync(span), take}}, span);
  }

  Stmt lowered(const AllReduce& n, Span span) {
    Place group, member;
    for (size_t axis = 0; axis < kernel_.threads.size(); ++axis) {
      const bool reduced = std::find(n.axes.begin(), n.axes.end(), int(axis)) != n.axes.end();
      (reduced ? member : group).add(kernel_.thread_vars[axis], kernel_.threads[axis]);
    }
    const DType type = n.result.buffer->type;
    const Buffer values = tile("values", type, {group.extent, member.extent}, span);
    const Buffer totals = tile("totals", type, {group.extent}, span);
    const Expr value = constant_int(n.condition) == 1 ? n.value : select(n.condition, n.value, n.identity, span);
    const Stmt give = make_stmt(Store{values, {group.index, member.index}, value}, span);
    const Stmt take = make_stmt(Store{n.result.buffer, n.result.start, load(totals, {group.index}, span)}, span);
    return make_stmt(Block{{give, reduction(n, values, totals, span), take}}, span);
  }

  static Stmt reduction(const AllReduce& n, const Buffer& values, const Buffer& totals, Span span) {
    const int64_t groups = *constant_int(values->shape[0]), members = *constant_int(values->shape[1]);
    if (const auto op = as_reduction(n.op)) {
      const Region source{values, {int_imm(0), int_imm(0)}, {groups, members}, span};
      return make_stmt(Reduce{*op, source, {totals, {int_imm(0)}, {groups}, span}, 1, true}, span);
    }
    const Var group = make_var("group", kInt32), member = make_var("member", kInt32);
    const Expr g = var_ref(group), total = load(totals, {g}, span);
    const Expr later = binary(BinaryOp::add, var_ref(member), int_imm(1), span);
    const Expr next = binary(n.op, total, load(values, {g, later}, span), span);
    const Stmt step = make_stmt(Store{totals, {g}, next}, span);
    Block body{{make_stmt(Store{totals, {g}, load(values, {g, int_imm(0)}, span)}, span),
                make_stmt(For{LoopKind::serial, {member}, {int_imm(members - 1)}, 0, step}, span)}};
    return make_stmt(For{LoopKind::parallel, {group}, {int_imm(groups)}, 0, make_stmt(std::move(body), span)}, span);
  }
};

}  // namespace

Expr joined_with_identity(BinaryOp op, const Expr& value) {
  if (!value->type.is_float()) return value;
  const auto joined = [&](double identity) {
    return binary(op, value, float_imm(identity, value->type, value->span), value->span);
  };
  if (op == BinaryOp::add) return joined(0);
  if (op == BinaryOp::max) return joined(-INFINITY);
  if (op == BinaryOp::min) return joined(INFINITY);
  return value;
}

Kernel exchange_through_tiles(const Kernel& kernel) { return Lowering(kernel).run(); }

}  // namespace tilepilot::passes
