// Copies by TMA: boxes of tensors, consecutive bytes, and tiles of other blocks of a cluster.
#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/ir/cluster.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/cuda/target_lowering.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using ir::Expr;
using ir::Stmt;

namespace {

// Calls `each` with the arguments of a box a panel of the tile: its address, the tensor's map, and where the box lies.
void for_each_box(Lowering& lowering, const ir::Region& tile, const ir::Region& tensor, Span span,
                  const std::function<void(const ir::Region&, const Expr&, const std::vector<Expr>&)>& each) {
  const layout::SharedLayout& memory = lowering.inference.tiles.at(tile.buffer.get());
  if (memory.span() == layout::SwizzleSpan::none && memory.size() != layout::volume(memory.shape()))
    return lowering.fail(span, fmt::format("TMA supports no padding, as `{}` has it", tile.buffer->name));
  const int64_t columns = tensor.extent.back();
  const int64_t width = memory.span() == layout::SwizzleSpan::none
                            ? columns
                            : static_cast<int64_t>(memory.span()) / tensor.buffer->type.bytes();
  std::vector<int64_t> box = tensor.extent;
  box.back() = width;
  const ir::Var map = lowering.map_of(tensor.buffer, box, memory.span());
  for (int64_t first = 0; first < columns; first += width) {
    std::vector<Expr> inside = tile.start, outside;
    inside.back() = plus(inside.back(), ir::int_imm(first));
    for (Expr& index : inside) index = ir::cast(index, ir::kInt32);
    for (size_t axis = tensor.start.size(); axis-- > 0;) outside.push_back(ir::cast(tensor.start[axis], ir::kInt32));
    outside.front() = plus(outside.front(), ir::int_imm(first));
    each(lowering.address(tile.buffer, inside, span), ir::var_ref(map), outside);
  }
}

// Row-major without gaps.
bool is_plain(const layout::SharedLayout& tile) {
  return tile.span() == layout::SwizzleSpan::none && tile.size() == layout::volume(tile.shape());
}

// Whether a part is whole matrices of the tile, of which each begins where a swizzle's pattern does.
bool is_of_matrices(const ir::Region& part, const layout::SharedLayout& tile) {
  constexpr int64_t kPattern = 1024;
  const size_t rank = part.extent.size();
  int64_t bytes = tile.element_bits() / 8;
  for (size_t axis = rank - std::min<size_t>(rank, 2); axis < rank; ++axis) {
    if (part.extent[axis] != tile.shape()[axis]) return false;
    bytes *= part.extent[axis];
  }
  return bytes % kPattern == 0 && tile.size() == layout::volume(tile.shape());
}

// Bytes go from tile to tile as they lie there.
void lower_to_block(Lowering& lowering, const ir::Copy& copy, Span span, Lowering::Stmts& out) {
  const layout::SharedLayout &from = lowering.inference.tiles.at(copy.source.buffer.get()),
                             &to = lowering.inference.tiles.at(copy.destination.buffer.get());
  const auto width = [](const layout::SharedLayout& tile) { return tile.shape().back(); };
  const bool alike = from.span() == to.span() && width(from) == width(to) && is_of_matrices(copy.source, from) &&
                     is_of_matrices(copy.destination, to);
  if (!alike && !(is_plain(from) && is_plain(to)))
    return lowering.fail(span, fmt::format("`{}` and `{}` do not lie in memory alike: copy whole tiles, or without a "
                                           "`remote_barrier`",
                                           copy.source.buffer->name, copy.destination.buffer->name));
  const Stmt moved = call(
      "bulk_copy_remote",
      {lowering.address(copy.destination.buffer, copy.destination.start, span), copy.peer,
       lowering.address(copy.source.buffer, copy.source.start, span), ir::int_imm(bytes_of_copy(copy)), *copy.barrier},
      span);
  lowering.add_by_first_thread({moved}, span, out);
}

}  // namespace

void lower_bulk_load(Lowering& lowering, const Stmt& stmt, Lowering::Stmts& out) {
  const auto& copy = *ir::as<ir::Copy>(stmt);
  const Span span = stmt->span;
  if (copy.peer) return lower_to_block(lowering, copy, span, out);
  if (copy.in_line) {
    const Stmt load =
        call("bulk_load",
             {lowering.address(copy.destination.buffer, copy.destination.start, span),
              element(copy.source.buffer, copy.source.start, span), ir::int_imm(bytes_of_copy(copy)), *copy.barrier},
             span);
    return lowering.add_by_first_thread({load}, span, out);
  }
  Lowering::Stmts own, shared;
  for_each_box(lowering, copy.destination, copy.source, span,
               [&](const ir::Region& place, const Expr& map, const std::vector<Expr>& at) {
                 CallArguments arguments{place, map, *copy.barrier};
                 arguments.insert(arguments.end(), at.begin(), at.end());
                 own.push_back(call(fmt::format("tma_load_{}d", at.size()), arguments, span));
                 arguments.insert(arguments.begin() + 3, ir::int_imm(copy.multicast));
                 shared.push_back(call(fmt::format("tma_load_multicast_{}d", at.size()), std::move(arguments), span));
               });
  if (copy.multicast == 0) return lowering.add_by_first_thread(std::move(own), span, out);
  // The first block of the mask loads for all of it.
  const Expr rank = ir::rank_in_cluster(lowering.kernel, span);
  const Expr first = ir::int_imm(std::countr_zero(static_cast<uint64_t>(copy.multicast)));
  const Expr bit = ir::binary(ir::BinaryOp::shr, ir::int_imm(copy.multicast), rank, span);
  const Expr apart =
      ir::binary(ir::BinaryOp::eq, ir::binary(ir::BinaryOp::bit_and, bit, ir::int_imm(1), span), ir::int_imm(0), span);
  const Stmt others = ir::make_stmt(ir::If{apart, block(std::move(own), span), nullptr}, span);
  const Stmt chosen = ir::make_stmt(
      ir::If{ir::binary(ir::BinaryOp::eq, rank, first, span), block(std::move(shared), span), others}, span);
  lowering.add_by_first_thread({chosen}, span, out);
}

void lower_bulk_store(Lowering& lowering, const Stmt& stmt, Lowering::Stmts& out) {
  const auto& copy = *ir::as<ir::Copy>(stmt);
  Lowering::Stmts body;
  if (copy.in_line) {
    const Span span = stmt->span;
    const Stmt store =
        call("bulk_store",
             {element(copy.destination.buffer, copy.destination.start, span),
              lowering.address(copy.source.buffer, copy.source.start, span), ir::int_imm(bytes_of_copy(copy))},
             span);
    return lowering.add_by_first_thread({store}, span, out);
  }
  for_each_box(lowering, copy.source, copy.destination, stmt->span,
               [&](const ir::Region& place, const Expr& map, const std::vector<Expr>& at) {
                 CallArguments arguments{map, place};
                 arguments.insert(arguments.end(), at.begin(), at.end());
                 body.push_back(call(fmt::format("tma_store_{}d", at.size()), std::move(arguments), stmt->span));
               });
  lowering.decisions.push_back({stmt->span, name_of_copy(copy.source.buffer, copy.destination.buffer), "by TMA"});
  lowering.add_by_first_thread(std::move(body), stmt->span, out);
}

}  // namespace tilepilot::targets::cuda
