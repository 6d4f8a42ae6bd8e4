// Copies and gemms that do not wait, what waits for them, and roles of warpgroups.
#include <fmt/format.h>

#include "compiler/ir/cluster.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

Result<ir::Copy> tile_copy(const TileArguments& arguments, ir::CopyMode mode) {
  TileOperand source = TRY(open_operand(arguments, 0)), destination = TRY(open_operand(arguments, 1));
  if (source.is_point && destination.is_point) {
    ir::Region from = TRY(tile_region(arguments, 0)), to = TRY(tile_region(arguments, 1));
    return ir::Copy{std::move(from), std::move(to), {}, mode, std::nullopt};
  }
  CopyBox box = TRY(copy_box(arguments, std::move(source), std::move(destination)));
  for (const ir::Expr& extent : box.extents)
    if (!ir::constant_int(extent)) return no_constant_extent(*box.source.buffer, extent, arguments.span());
  return ir::Copy{std::move(box.source), std::move(box.destination), {}, mode, std::nullopt};
}

// T.async_copy(src, dst): from global memory into shared; `T.ptx_wait_group` waits.
Result<Value> async_copy(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(TRY(tile_copy(arguments, ir::CopyMode::group)), arguments.span()));
  TRY(builder.emit(ir::Async{ir::AsyncOp::commit_copies}, arguments.span()));
  return Value();
}

// `cluster_mask=`: the blocks of the cluster that a load is for; 0 where there is none, or blocks run alone.
Result<int64_t> cluster_mask(const TileArguments& arguments, size_t i) {
  const int64_t blocks = ir::cluster_size(arguments.context().builder->kernel());
  const int64_t mask = TRY(arguments.integer_or(i, 0));
  if (mask >= 0 && mask < int64_t{1} << blocks) return blocks > 1 ? mask : 0;
  return make_error(DiagnosticKind::value_error, arguments.span(i),
                    fmt::format("`cluster_mask` {} in a cluster of {} blocks", mask, blocks),
                    "it has a bit for each block, the first the lowest");
}

// `dst_block=`: a block of the cluster.
Result<ir::Expr> block_of_cluster(const TileArguments& arguments, size_t i) {
  const int64_t blocks = ir::cluster_size(arguments.context().builder->kernel());
  if (blocks == 1)
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(i),
                      "a copy into another block's memory, and each block runs alone",
                      "launch them by `T.ClusterKernel(..., cluster_dims=(2, 1, 1))`");
  ir::Expr block = TRY(to_index(arguments[i], "a block of the cluster", arguments.span(i)));
  const auto known = ir::constant_int(block);
  if (!known || (*known >= 0 && *known < blocks)) return block;
  return make_error(DiagnosticKind::value_error, arguments.span(i),
                    fmt::format("block {} in a cluster of {} blocks", *known, blocks), "blocks are counted from 0");
}

// T.copy_cluster(src, dst, dst_block=, remote_barrier=): from a tile into that of another block.
Result<Value> copy_to_block(TileArguments& arguments) {
  ir::Copy node = TRY(tile_copy(arguments, arguments.has(4) ? ir::CopyMode::bulk_load : ir::CopyMode::complete));
  if (arguments.has(3))
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                      "`T.copy_cluster` takes a `dst_block` or a `cluster_mask`, not both");
  for (const ir::Region* side : {&node.source, &node.destination}) {
    const ir::BufferData& buffer = *side->buffer;
    if (buffer.scope == ir::Scope::shared && !buffer.type.is_nibble()) continue;
    Error error =
        make_error(DiagnosticKind::wrong_scope, arguments.span(side == &node.source ? 0 : 1),
                   fmt::format("`T.copy_cluster` with a `dst_block` goes from shared memory to shared memory, "
                               "in elements of a byte at least, and `{}` is none",
                               buffer.name),
                   "copy it into a tile of `T.alloc_shared` before");
    error->notes.push_back(declaration_note(buffer));
    return error;
  }
  node.peer = TRY(block_of_cluster(arguments, 2));
  if (arguments.has(4)) node.barrier = TRY(barrier_operand(arguments, 4));
  TRY(arguments.context().builder->emit(std::move(node), arguments.span()));
  return Value();
}

// T.copy_cluster(src, dst, cluster_mask=): one block loads for those of the mask.
Result<Value> copy_cluster(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  if (arguments.has(2)) return copy_to_block(arguments);
  if (arguments.has(4))
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(4),
                      "`T.copy_cluster` takes a `remote_barrier` with a `dst_block` alone",
                      "a load for several blocks has its `barrier` in `T.tma_copy(..., cluster_mask=)`");
  ir::Copy node = TRY(tile_copy(arguments, ir::CopyMode::complete));
  node.multicast = TRY(cluster_mask(arguments, 3));
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

// T.tma_copy(src, dst, barrier=): the barrier waits for a load's bytes; a store commits a group of its own.
Result<Value> tma_copy(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::Copy node = TRY(tile_copy(arguments, ir::CopyMode::bulk_load));
  const bool is_load = node.source.buffer->scope == ir::Scope::global;
  if (is_load != arguments.has(2))
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                      is_load ? "`T.tma_copy` from global memory needs a `barrier`"
                              : "`T.tma_copy` to global memory takes no `barrier`",
                      is_load ? "allocate it by `T.alloc_barrier(arrive_count)`" : "`T.tma_store_wait()` waits for it");
  if (!is_load) {
    node.mode = ir::CopyMode::bulk_store;
    TRY(builder.emit(std::move(node), arguments.span()));
    TRY(builder.emit(ir::Async{ir::AsyncOp::commit_stores}, arguments.span()));
    return Value();
  }
  node.barrier = TRY(barrier_operand(arguments, 2));
  node.multicast = TRY(cluster_mask(arguments, 3));
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

// T.ptx_cp_async(dst, src, num_elems, predicate=): by each thread; without the predicate's consent they become 0.
Result<Value> cp_async(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const ir::Region to = TRY(tile_region(arguments, 0)), from = TRY(tile_region(arguments, 1));
  const int64_t count = TRY(arguments.integer(2)), size = count * to.buffer->type.bytes();
  if (from.buffer->type != to.buffer->type || (size != 4 && size != 8 && size != 16))
    return make_error(DiagnosticKind::value_error, arguments.span(),
                      fmt::format("`T.ptx_cp_async` of {} elements, {} bytes, from {} to {}", count, size,
                                  ir::to_string(from.buffer->type), ir::to_string(to.buffer->type)),
                      "it copies as many elements as make 4, 8 or 16 bytes, between buffers of one dtype");
  const Span span = arguments.span();
  builder.thread_index(0, span);  // each thread copies for itself
  const ir::Var lane = builder.make_var("lane");
  const auto at = [&](const ir::Region& region) {
    std::vector<ir::Expr> indices = region.start;
    ir::Expr counter = fold_cast(ir::var_ref(lane, span), indices.back()->type, span);
    indices.back() = fold_binary(ir::BinaryOp::add, indices.back(), std::move(counter), span);
    return indices;
  };
  const auto body = [&]() -> Status {
    ir::Expr value = ir::load(from.buffer, at(from), span);
    if (arguments.has(3)) {
      const ir::Expr zero = TRY(to_expr(Value(int64_t{0}), span, value->type));
      value = fold_select(TRY(to_condition(arguments[3], arguments.span(3))), value, zero, span);
    }
    return builder.emit(ir::Store{to.buffer, at(to), value}, span);
  };
  ir::Stmt loop = TRY(builder.nested(BlockKind::parallel_loop, {lane}, body, span));
  TRY(builder.emit(ir::For{ir::LoopKind::vectorized, {lane}, {ir::int_imm(count)}, 0, std::move(loop)}, span));
  return Value();
}

template <ir::AsyncOp op>
Result<Value> async(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Async{op}, arguments.span()));
  return Value();
}

// The first argument is how many groups may still be under way.
template <ir::AsyncOp op>
Result<Value> wait(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const int64_t count = TRY(arguments.integer_or(0, 0));
  if (count < 0)
    return make_error(DiagnosticKind::value_error, arguments.span(0),
                      fmt::format("`{}` cannot leave {} groups under way", arguments.function(), count));
  TRY(builder.emit(ir::Async{op, count}, arguments.span()));
  return Value();
}

Result<Value> give_registers(TileArguments& arguments, bool more) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const int64_t count = TRY(arguments.integer(0));
  if (count < 24 || count > 256 || count % 8 != 0)
    return make_error(DiagnosticKind::value_error, arguments.span(0),
                      fmt::format("`{}` cannot give each thread {} registers", arguments.function(), count),
                      "a multiple of 8 from 24 to 256");
  TRY(builder.emit(ir::Async{more ? ir::AsyncOp::raise_registers : ir::AsyncOp::lower_registers, count},
                   arguments.span()));
  return Value();
}
Result<Value> set_max_nreg(TileArguments& arguments) {
  return give_registers(arguments, TRY(arguments.integer(1)) != 0);
}
Result<Value> inc_max_nreg(TileArguments& arguments) { return give_registers(arguments, true); }
Result<Value> dec_max_nreg(TileArguments& arguments) { return give_registers(arguments, false); }

// `with T.ws(0, 1):` the body is for these warpgroups.
struct RolesFrame final : TypedObject<RolesFrame> {
  static constexpr Type kType{"warpgroup scope"};
  RolesFrame(TileContext& context_, std::vector<int> groups_, Span span_)
      : context(context_), groups(std::move(groups_)), span(span_) {}
  Result<Value> enter(Interpreter&, Span) override {
    context.builder->open(BlockKind::branch, {});
    return Value();
  }
  Status exit(Interpreter&, Span) override {
    ir::Stmt body = context.builder->close(span);
    return context.builder->emit(ir::Roles{groups, std::move(body)}, span);
  }
  TileContext& context;
  const std::vector<int> groups;
  const Span span;
};

Result<Value> roles(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  int64_t threads = 1;
  for (const int64_t extent : builder.kernel().threads) threads *= extent;
  std::vector<int> groups;
  for (const Value& value : arguments.rest()) {
    const int64_t group = TRY(meta_integer(value, "a warpgroup", arguments.span()));
    if (group < 0 || (group + 1) * 128 > threads || (!groups.empty() && group <= groups.back()))
      return make_error(DiagnosticKind::value_error, arguments.span(),
                        fmt::format("warpgroup {} in a block of {} threads", group, threads),
                        "warpgroups have 128 threads each; name them in order");
    groups.push_back(static_cast<int>(group));
  }
  if (groups.empty()) return make_error(DiagnosticKind::wrong_arguments, arguments.span(), "`T.ws` names no warpgroup");
  return Value(std::make_shared<RolesFrame>(arguments.context(), std::move(groups), arguments.span()));
}

}  // namespace

const std::vector<TileFunction>& async_functions() {
  using ir::AsyncOp;
  static const std::vector<TileFunction> kFunctions = {
      {"async_copy", "src, dst, coalesced_width=, annotations?, loop_layout?",
       "a copy that `T.ptx_wait_group` waits for, in a group of its own", async_copy},
      {"tma_copy", "src, dst, barrier=, cluster_mask=, leader_scope_threads?, eviction_policy?",
       "a bulk copy: a load counts at `barrier`, `T.tma_store_wait` waits for a store", tma_copy},
      {"copy_cluster", "src, dst, dst_block=, cluster_mask=, remote_barrier=, eviction_policy?, coalesced_width?",
       "a load that one block makes for all blocks of the mask; or a copy from a tile into that of another block, by "
       "stores, or in bulk, when its bytes count at that block's `remote_barrier`, where the program announces them",
       copy_cluster},
      {"tma_store_arrive", "", "closes a group of bulk stores", async<AsyncOp::commit_stores>},
      {"tma_store_wait", "count=, read=", "waits until at most `count` groups of bulk stores are under way",
       wait<AsyncOp::wait_stores>},
      {"ptx_cp_async", "dst, src, num_elems, predicate=", "each thread copies elements that make 4, 8 or 16 bytes",
       cp_async},
      {"ptx_commit_group", "", "closes a group of asynchronous copies: those of `T.ptx_cp_async`",
       async<AsyncOp::commit_copies>},
      {"ptx_wait_group", "num=", "waits until at most `num` groups of copies are under way",
       wait<AsyncOp::wait_copies>},
      {"wait_wgmma", "num_mma=", "waits until at most `num_mma` asynchronous gemms are under way",
       wait<AsyncOp::wait_gemms>},
      {"fence_proxy_async", "", "what threads wrote is seen by asynchronous copies after it", async<AsyncOp::fence>},
      {"set_max_nreg", "reg_count, is_inc",
       "registers of each thread of the warpgroups that come here: more if `is_inc`, else fewer", set_max_nreg},
      {"inc_max_nreg", "reg_count", "more registers for each thread", inc_max_nreg},
      {"dec_max_nreg", "reg_count", "fewer registers for each thread", dec_max_nreg},
      {"ws", "*warp_group_idx", "`with T.ws(0):` the body is for these groups of 128 threads", roles},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
