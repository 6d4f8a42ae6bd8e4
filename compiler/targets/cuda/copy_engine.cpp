#include "compiler/targets/cuda/copy_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/targets/cuda/lower.h"
#include "compiler/targets/cuda/tensor_facts.h"

namespace tilepilot::targets::cuda {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kMostInBox = 256;  // elements along an axis
constexpr size_t kMostAxes = 5;

}  // namespace

bool has_known_rows(const ir::BufferData& tensor) {
  const auto distances = row_distances(tensor);
  return distances && std::all_of(distances->begin(), distances->end(), [&](const Multiple& one) {
           return one.is_exact || one.of * tensor.type.bytes() % ir::kTensorAlignment == 0;
         });
}

int64_t bytes_of_copy(const ir::Copy& copy) {
  int64_t bytes = copy.source.buffer->type.bytes();
  for (const int64_t extent : copy.source.extent) bytes *= extent;
  return bytes;
}

std::string not_by_engine(const ir::Copy& copy) {
  const bool loads = copy.source.buffer->scope == ir::Scope::global;
  const ir::Region &outside = loads ? copy.source : copy.destination, &inside = loads ? copy.destination : copy.source;
  const ir::BufferData& tensor = *outside.buffer;
  const std::vector<int64_t>&from = outside.extent, &to = inside.extent;
  if (copy.options.disable_tma) return "the program says so";
  if (tensor.base) return fmt::format("`{}` is another name of a tensor", tensor.name);
  if (tensor.alignment < ir::kTensorAlignment)
    return fmt::format("`{}` starts at an address that is no multiple of 16 bytes", tensor.name);
  if (from.size() > kMostAxes) return fmt::format("`{}` has {} axes, more than 5", tensor.name, from.size());
  const int64_t bytes = tensor.type.bytes(), columns = to.back(), row_bytes = columns * bytes;
  const int64_t rows = to.size() > 1 ? to[to.size() - 2] : 1;
  if (row_bytes % 32 != 0) return fmt::format("rows of {} bytes are no multiple of 32", row_bytes);
  if (from.back() != columns)
    return fmt::format("rows of the tile do not lie along the last axis of `{}`", tensor.name);
  if (rows > kMostInBox || columns > kMostInBox)
    return fmt::format("{} x {} has more than 256 elements along an axis", rows, columns);
  if (bytes_of_copy(copy) != rows * row_bytes || rows * row_bytes % 128 != 0)
    return "the tile is no matrix of a multiple of 128 bytes";
  const auto distances = row_distances(tensor);
  if (!distances) return fmt::format("elements of rows of `{}` may be apart", tensor.name);
  for (const Multiple& distance : *distances) {
    if (distance.of * bytes % 16 == 0) continue;
    return distance.is_exact
               ? fmt::format("rows of `{}` are {} bytes apart, no multiple of 16", tensor.name, distance.of * bytes)
               : fmt::format("how far rows of `{}` are apart is known at launch alone", tensor.name);
  }
  return "";
}

namespace {

// Calls `each` with the arguments of a box a panel of the tile: its address, the tensor's map, and where the box lies.
void for_each_box(Lowering& lowering, const ir::Region& tile, const ir::Region& tensor, Span span,
                  const std::function<void(const ir::Region&, const Expr&, const std::vector<Expr>&)>& each) {
  const layout::SharedLayout& memory = lowering.inference.tiles.at(tile.buffer.get());
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

}  // namespace

void lower_bulk_load(Lowering& lowering, const Stmt& stmt, Lowering::Stmts& out) {
  const auto& copy = *ir::as<ir::Copy>(stmt);
  Lowering::Stmts body;
  for_each_box(lowering, copy.destination, copy.source, stmt->span,
               [&](const ir::Region& place, const Expr& map, const std::vector<Expr>& at) {
                 CallArguments arguments{place, map, *copy.barrier};
                 arguments.insert(arguments.end(), at.begin(), at.end());
                 body.push_back(call(fmt::format("tma_load_{}d", at.size()), std::move(arguments), stmt->span));
               });
  out.push_back(lowering.by_first_thread(std::move(body), stmt->span));
}

void lower_bulk_store(Lowering& lowering, const Stmt& stmt, Lowering::Stmts& out) {
  const auto& copy = *ir::as<ir::Copy>(stmt);
  Lowering::Stmts body;
  for_each_box(lowering, copy.source, copy.destination, stmt->span,
               [&](const ir::Region& place, const Expr& map, const std::vector<Expr>& at) {
                 CallArguments arguments{map, place};
                 arguments.insert(arguments.end(), at.begin(), at.end());
                 body.push_back(call(fmt::format("tma_store_{}d", at.size()), std::move(arguments), stmt->span));
               });
  body.push_back(call("commit_stores", {}, stmt->span));
  lowering.decisions.push_back(
      {stmt->span, name_of_copy(copy.source.buffer, copy.destination.buffer), "by the copy engine (TMA)"});
  out.push_back(lowering.by_first_thread(std::move(body), stmt->span));
}

ir::Var Lowering::map_of(const ir::Buffer& tensor, const std::vector<int64_t>& box, layout::SwizzleSpan span) {
  for (const TensorBoxes& known : maps)
    if (known.tensor == tensor && known.box == box && known.span == span) return known.map;
  maps.push_back({tensor, box, span, ir::make_var(tensor->name + "_map", ir::kUInt64)});
  return maps.back().map;
}

}  // namespace tilepilot::targets::cuda
