// What threads of a warp, or of a block, give each other: shuffles, votes, reductions.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/ir/scalar_buffer.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr int64_t kWarp = 32;

Result<int64_t> width_of(const TileArguments& arguments, size_t i) {
  const int64_t width = TRY(arguments.integer_or(i, kWarp));
  if (width >= 1 && width <= kWarp && (width & (width - 1)) == 0) return width;
  return make_error(DiagnosticKind::value_error, arguments.span(i),
                    fmt::format("`{}` over segments of {} lanes", arguments.function(), width),
                    "a segment of a warp has 1, 2, 4, 8, 16 or 32 lanes");
}

// Which arguments of a function are the value, the lane and the width.
struct ShufflePlaces {
  size_t value, lane, width;
};

Result<Value> shuffle(const TileArguments& arguments, ir::ShuffleOp op, const ShufflePlaces& places) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  builder.thread_index(0, arguments.span());  // each thread gives and takes for itself
  ir::Shuffle node{op};
  node.value = TRY(to_expr(arguments[places.value], arguments.span(places.value)));
  const ir::Expr lane = TRY(to_index(arguments[places.lane], "a lane", arguments.span(places.lane)));
  node.lane = fold_cast(lane, ir::kInt32, arguments.span());
  node.width = TRY(width_of(arguments, places.width));
  node.result = builder.make_var("shuffled", node.value->type);
  const ir::Var result = node.result;
  TRY(builder.emit(std::move(node), arguments.span()));
  return make_expr(arguments.context(), ir::var_ref(result, arguments.span()));
}

// T.shfl_xor(value, delta, width=32, mask=0xffffffff)
template <ir::ShuffleOp op>
Result<Value> shfl(TileArguments& arguments) {
  return shuffle(arguments, op, {0, 1, 2});
}
// T.tvm_warp_shuffle(mask, value, lane, width, warp_size)
template <ir::ShuffleOp op>
Result<Value> warp_shuffle(TileArguments& arguments) {
  return shuffle(arguments, op, {1, 2, 3});
}

enum class Among : uint8_t { warp, block };

// What all threads of the warp or block make of their values, known to each of them.
Result<Value> combine(const TileArguments& arguments, ir::BinaryOp op, const ir::Expr& value, const ir::Expr& identity,
                      Among among) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  builder.thread_index(0, span);
  const ir::Buffer result = builder.allocate(ir::scalar_buffer("combined", value->type, span));
  const ir::Expr zero = ir::int_imm(0, ir::kInt32, span);
  ir::AllReduce node{op, value, ir::bool_imm(true, span), identity, {result, {zero}, {1}, span}, {}, 0};
  if (among == Among::warp) node.lanes = kWarp;
  for (size_t axis = 0; among == Among::block && axis < builder.kernel().threads.size(); ++axis)
    node.axes.push_back(static_cast<int>(axis));
  TRY(builder.emit(std::move(node), span));
  return make_expr(arguments.context(), TRY(builder.let("", ir::load(result, {zero}, span), span)));
}

Result<ir::Expr> predicate(const TileArguments& arguments) {
  const ir::Expr value = TRY(to_expr(arguments[0], arguments.span(0)));
  if (value->type.is_float())
    return make_error(
        DiagnosticKind::type_error, arguments.span(0),
        fmt::format("`{}` asks for an integer or a bool, not {}", arguments.function(), ir::to_string(value->type)),
        "compare it with something");
  return to_condition(arguments[0], arguments.span(0));
}

// Of 0s and 1s.
template <ir::BinaryOp op, Among among>
Result<Value> vote(TileArguments& arguments) {
  const ir::Expr holds = fold_cast(TRY(predicate(arguments)), ir::kInt32, arguments.span());
  const int64_t identity = op == ir::BinaryOp::min ? 1 : 0;
  return combine(arguments, op, holds, ir::int_imm(identity, ir::kInt32, arguments.span()), among);
}

Result<Value> ballot_of(const TileArguments& arguments, const ir::Expr& holds) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  ir::Expr thread = ir::int_imm(0, ir::kInt32, span);
  for (size_t axis = builder.kernel().threads.size(); axis-- > 0;) {
    const ir::Expr extent = ir::int_imm(builder.kernel().threads[axis], ir::kInt32, span);
    thread = fold_binary(ir::BinaryOp::add, fold_binary(ir::BinaryOp::mul, thread, extent, span),
                         builder.thread_index(axis, span), span);
  }
  const ir::Expr lane = fold_binary(ir::BinaryOp::floor_mod, thread, ir::int_imm(kWarp, ir::kInt32, span), span);
  const ir::Expr one = ir::int_imm(1, ir::kUInt64, span), zero = ir::int_imm(0, ir::kUInt64, span);
  const ir::Expr bit = fold_binary(ir::BinaryOp::shl, one, fold_cast(lane, ir::kUInt64, span), span);
  return combine(arguments, ir::BinaryOp::bit_or, fold_select(holds, bit, zero, span), zero, Among::warp);
}
Result<Value> ballot(TileArguments& arguments) { return ballot_of(arguments, TRY(predicate(arguments))); }
Result<Value> active_mask(TileArguments& arguments) {
  return ballot_of(arguments, ir::bool_imm(true, arguments.span()));
}

// T.match_any_sync(value, mask=0xffffffff): each lane looks at all others in turn.
Result<Value> match_any(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  builder.thread_index(0, span);
  const ir::Expr value = TRY(builder.let("", TRY(to_expr(arguments[0], arguments.span(0))), span));
  const ir::Expr zero = ir::int_imm(0, ir::kInt32, span);
  const ir::Buffer same = builder.allocate(ir::scalar_buffer("same", ir::kUInt32, span));
  TRY(builder.emit(ir::Store{same, {zero}, ir::int_imm(0, ir::kUInt32, span)}, span));
  const ir::Var lane = builder.make_var("lane");
  const auto look = [&]() -> Status {
    ir::Shuffle node{ir::ShuffleOp::from, value, ir::var_ref(lane, span), kWarp,
                     builder.make_var("other", value->type)};
    const ir::Expr other = ir::var_ref(node.result, span);
    TRY(builder.emit(std::move(node), span));
    const ir::Expr bit = ir::binary(ir::BinaryOp::shl, ir::int_imm(1, ir::kUInt32, span),
                                    ir::cast(ir::var_ref(lane, span), ir::kUInt32, span), span);
    const ir::Expr is_same = ir::binary(ir::BinaryOp::eq, other, value, span);
    const ir::Expr seen = fold_select(is_same, bit, ir::int_imm(0, ir::kUInt32, span), span);
    return builder.emit(
        ir::Store{same, {zero}, ir::binary(ir::BinaryOp::bit_or, ir::load(same, {zero}, span), seen, span)}, span);
  };
  ir::Stmt body = TRY(builder.nested(BlockKind::ordered_loop, {lane}, look, span));
  int64_t threads = 1;
  for (const int64_t extent : builder.kernel().threads) threads *= extent;
  const ir::Expr lanes = ir::int_imm(std::min(kWarp, threads), ir::kInt32, span);
  TRY(builder.emit(ir::For{ir::LoopKind::unrolled, {lane}, {lanes}, 0, std::move(body)}, span));
  ir::Expr result = ir::load(same, {zero}, span);
  if (arguments.has(1)) {
    const ir::Expr mask =
        TRY(to_expr(TRY(convert(arguments.context(), arguments[1], ir::kUInt32, arguments.span(1))), span));
    result = fold_binary(ir::BinaryOp::bit_and, std::move(result), mask, span);
  }
  return make_expr(arguments.context(), TRY(builder.let("", std::move(result), span)));
}

// What changes nothing in a reduction of that type.
ir::Expr identity_of(ir::BinaryOp op, ir::DType type, Span span) {
  if (op == ir::BinaryOp::add || op == ir::BinaryOp::bit_or)
    return type.is_float() ? ir::float_imm(0, type, span) : ir::int_imm(0, type, span);
  if (op == ir::BinaryOp::bit_and) return ir::int_imm(-1, type, span);
  const double infinity = std::numeric_limits<double>::infinity();
  const bool is_max = op == ir::BinaryOp::max;
  if (type.is_float()) return ir::float_imm(is_max ? -infinity : infinity, type, span);
  if (type.code == ir::TypeCode::unsigned_int) return ir::int_imm(is_max ? 0 : -1, type, span);
  const int64_t least = std::numeric_limits<int64_t>::min() >> (64 - type.bits);
  return ir::int_imm(is_max ? least : -(least + 1), type, span);
}

template <ir::BinaryOp op>
Result<Value> warp_reduce(TileArguments& arguments) {
  const ir::Expr value = TRY(to_expr(arguments[0], arguments.span(0)));
  const bool of_bits = op == ir::BinaryOp::bit_and || op == ir::BinaryOp::bit_or;
  if (value->type.is_bool() || (of_bits && value->type.is_float()))
    return make_error(DiagnosticKind::type_error, arguments.span(0),
                      fmt::format("`{}` does not reduce {}", arguments.function(), ir::to_string(value->type)),
                      of_bits ? "bits are those of integers" : "cast it to an integer");
  return combine(arguments, op, value, identity_of(op, value->type, arguments.span()), Among::warp);
}

}  // namespace

const std::vector<TileFunction>& warp_functions() {
  using ir::BinaryOp;
  using ir::ShuffleOp;
  static const std::vector<TileFunction> kFunctions = {
      {"shfl_sync", "value, srcLane, width=, mask=", "the value of lane `srcLane` of the segment of `width` lanes",
       shfl<ShuffleOp::from>},
      {"shfl_xor", "value, delta, width=, mask=", "the value of the lane whose number differs in the bits of `delta`",
       shfl<ShuffleOp::by_xor>},
      {"shfl_up", "value, delta, width=, mask=", "the value of the lane `delta` before", shfl<ShuffleOp::up>},
      {"shfl_down", "value, delta, width=, mask=", "the value of the lane `delta` after", shfl<ShuffleOp::down>},
      {"tvm_warp_shuffle", "mask, value, lane, width, warp_size", "the old name of `T.shfl_sync`",
       warp_shuffle<ShuffleOp::from>},
      {"tvm_warp_shuffle_up", "mask, value, delta, width, warp_size", "the old name of `T.shfl_up`",
       warp_shuffle<ShuffleOp::up>},
      {"tvm_warp_shuffle_down", "mask, value, delta, width, warp_size", "the old name of `T.shfl_down`",
       warp_shuffle<ShuffleOp::down>},
      {"match_any_sync", "value, mask=", "the lanes that have the same value, as bits of a uint32", match_any},
      {"any_sync", "predicate, mask=", "1 if `predicate` holds for a thread of the warp, else 0",
       vote<BinaryOp::max, Among::warp>},
      {"all_sync", "predicate, mask=", "1 if `predicate` holds for all threads of the warp, else 0",
       vote<BinaryOp::min, Among::warp>},
      {"ballot_sync", "predicate, mask=", "the lanes for which `predicate` holds, as bits of a uint64", ballot},
      {"ballot", "predicate", "the same as `T.ballot_sync`", ballot},
      {"activemask", "", "the lanes that come here, as bits of a uint64", active_mask},
      {"syncthreads_count", "predicate", "a barrier that tells for how many threads `predicate` holds",
       vote<BinaryOp::add, Among::block>},
      {"syncthreads_and", "predicate", "a barrier that tells whether `predicate` holds for all threads",
       vote<BinaryOp::min, Among::block>},
      {"syncthreads_or", "predicate", "a barrier that tells whether `predicate` holds for a thread",
       vote<BinaryOp::max, Among::block>},
      {"warp_reduce_sum", "value", "the sum over the warp, for each of its threads", warp_reduce<BinaryOp::add>},
      {"warp_reduce_max", "value", "the maximum over the warp", warp_reduce<BinaryOp::max>},
      {"warp_reduce_min", "value", "the minimum over the warp", warp_reduce<BinaryOp::min>},
      {"warp_reduce_bitand", "value", "the bitwise and over the warp", warp_reduce<BinaryOp::bit_and>},
      {"warp_reduce_bitor", "value", "the bitwise or over the warp", warp_reduce<BinaryOp::bit_or>},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
