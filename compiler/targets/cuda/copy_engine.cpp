#include "compiler/targets/cuda/copy_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/ir/cluster.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/cuda/coordinates.h"
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

namespace {

// The sides of a copy between a tensor and a tile.
struct Sides {
  const ir::Region &tensor, &tile;
};

Sides sides_of(const ir::Copy& copy) {
  const bool loads = copy.source.buffer->scope == ir::Scope::global;
  return {loads ? copy.source : copy.destination, loads ? copy.destination : copy.source};
}

// What tensor the engine does not read or write.
std::string not_a_tensor(const ir::BufferData& tensor) {
  if (tensor.base || tensor.address) return fmt::format("`{}` is another name of a tensor", tensor.name);
  if (tensor.alignment < ir::kTensorAlignment)
    return fmt::format("`{}` starts at an address that is no multiple of 16 bytes", tensor.name);
  if (tensor.rank() > kMostAxes) return fmt::format("`{}` has {} axes, more than 5", tensor.name, tensor.rank());
  return "";
}

std::string not_strided(const ir::BufferData& tensor) {
  const auto distances = row_distances(tensor);
  if (!distances) return fmt::format("elements of rows of `{}` may be apart", tensor.name);
  const int64_t bytes = tensor.type.bytes();
  for (const Multiple& distance : *distances) {
    if (distance.of * bytes % 16 == 0) continue;
    return distance.is_exact
               ? fmt::format("rows of `{}` are {} bytes apart, no multiple of 16", tensor.name, distance.of * bytes)
               : fmt::format("how far rows of `{}` are apart is known at launch alone", tensor.name);
  }
  return "";
}

// What box of a tensor does not fill rows of a tile, panels apart.
std::string not_a_box(const Sides& sides, bool in_panels) {
  const std::vector<int64_t>&from = sides.tensor.extent, &to = sides.tile.extent;
  const int64_t columns = to.back(), rows = to.size() > 1 ? to[to.size() - 2] : 1;
  if (from.back() != columns)
    return fmt::format("rows of the tile do not lie along the last axis of `{}`", sides.tensor.buffer->name);
  if (rows > kMostInBox || (columns > kMostInBox && !in_panels))
    return fmt::format("{} x {} has more than 256 elements along an axis", rows, columns);
  return "";
}

std::string not_whole_rows(int64_t row_bytes) {
  return row_bytes % 32 == 0 ? "" : fmt::format("rows of {} bytes are no multiple of 32", row_bytes);
}

// Where a part of a tile starts that the engine cannot write to; "" if it can, whether the tile is swizzled or not.
std::string not_at_a_box(const ir::Region& part, bool in_panels) {
  const ir::BufferData& tile = *part.buffer;
  const int64_t bytes = tile.type.bytes(), width = ir::constant_int(tile.shape.back()).value_or(1);
  const int64_t span = static_cast<int64_t>(span_of_rows(width * bytes));
  const size_t rank = part.start.size();
  if (!is_multiple(part.start.back(), in_panels ? span / bytes : width) ||
      (in_panels ? part.extent.back() * bytes % span != 0 : part.extent.back() != width))
    return fmt::format("the part of `{}` is no panel of it", tile.name);
  int64_t step = width * bytes;  // from one index of an axis to the next
  for (size_t axis = rank - 1; axis-- > 0; step *= ir::constant_int(tile.shape[axis]).value_or(1)) {
    const int64_t unit = axis + 2 == rank ? 8 : 1;  // rows of a swizzle's pattern
    if (is_multiple(part.start[axis], 128 / std::gcd<int64_t>(step, 128)) && is_multiple(part.start[axis], unit))
      continue;
    return fmt::format("the part of `{}` starts at no multiple of {}", tile.name, unit > 1 ? "8 rows" : "128 bytes");
  }
  return "";
}

}  // namespace

std::string not_by_engine(const ir::Copy& copy) {
  const Sides sides = sides_of(copy);
  if (copy.options.disable_tma) return "the program says so";
  const std::vector<int64_t>& to = sides.tile.extent;
  const int64_t row_bytes = to.back() * sides.tensor.buffer->type.bytes(), rows = to.size() > 1 ? to[to.size() - 2] : 1;
  if (std::string why = not_a_tensor(*sides.tensor.buffer); !why.empty()) return why;
  if (std::string why = not_whole_rows(row_bytes); !why.empty()) return why;
  if (std::string why = not_a_box(sides, false); !why.empty()) return why;
  if (bytes_of_copy(copy) != rows * row_bytes || rows * row_bytes % 128 != 0)
    return "the tile is no matrix of a multiple of 128 bytes";
  return not_strided(*sides.tensor.buffer);
}

bool is_one_row(const ir::BufferData& tile) {
  return std::all_of(tile.shape.begin(), tile.shape.end() - 1,
                     [](const Expr& extent) { return ir::constant_int(extent) == 1; });
}

namespace {

// Elements from one index to the next, of all axes but the last one; none where some are known at launch alone.
std::optional<std::vector<int64_t>> constant_strides(const ir::BufferData& tensor) {
  const auto distances = row_distances(tensor);
  if (!distances) return std::nullopt;
  std::vector<int64_t> strides;
  for (const Multiple& distance : *distances) {
    if (!distance.is_exact) return std::nullopt;
    strides.push_back(distance.of);
  }
  return strides;
}

// Whether a box of a row-major array is one run of elements that starts at a multiple of 16 bytes.
bool is_run(const ir::Region& box, const std::vector<int64_t>& strides) {
  const ir::BufferData& buffer = *box.buffer;
  bool inner = false;  // of an axis of which the box has several indices
  for (size_t axis = 0; axis < box.extent.size(); ++axis) {
    const int64_t step = axis < strides.size() ? strides[axis] : 1;
    if (!is_multiple(box.start[axis], 16 / std::gcd<int64_t>(step * buffer.type.bytes(), 16))) return false;
    if (inner && ir::constant_int(buffer.shape[axis]) != box.extent[axis]) return false;
    inner = inner || box.extent[axis] > 1;
  }
  int64_t expected = 1;
  for (size_t axis = strides.size() + 1; axis-- > 0;) {
    const int64_t step = axis < strides.size() ? strides[axis] : 1;
    if (box.extent[axis] > 1 && step != expected) return false;
    expected *= box.extent[axis];
  }
  return true;
}

}  // namespace

std::string not_in_line(const ir::Copy& copy) {
  const Sides sides = sides_of(copy);
  const ir::BufferData &tensor = *sides.tensor.buffer, &tile = *sides.tile.buffer;
  if (tensor.type != tile.type || tensor.type.is_nibble()) return "its elements change on the way";
  if (std::string why = not_a_tensor(tensor); !why.empty()) return why;
  if (bytes_of_copy(copy) % 16 != 0) return fmt::format("{} bytes are no multiple of 16", bytes_of_copy(copy));
  const auto of_tensor = constant_strides(tensor), of_tile = constant_strides(tile);
  if (!of_tensor || !is_run(sides.tensor, *of_tensor))
    return fmt::format("the part of `{}` is not in one piece that starts at a multiple of 16 bytes", tensor.name);
  if (!of_tile || !is_run(sides.tile, *of_tile))
    return fmt::format("the part of `{}` is not in one piece that starts at a multiple of 16 bytes", tile.name);
  return "";
}

std::string not_to_block(const ir::Copy& copy) {
  const ir::BufferData &from = *copy.source.buffer, &to = *copy.destination.buffer;
  if (from.type != to.type) return "its elements change on the way";
  if (bytes_of_copy(copy) % 16 != 0) return fmt::format("{} bytes are no multiple of 16", bytes_of_copy(copy));
  for (const ir::Region* part : {&copy.source, &copy.destination}) {
    const auto strides = constant_strides(*part->buffer);
    if (!strides || !is_run(*part, *strides))
      return fmt::format("the part of `{}` is not in one piece that starts at a multiple of 16 bytes",
                         part->buffer->name);
  }
  return "";
}

bool needs_panels(const ir::Region& part) {
  const int64_t columns = part.extent.back();
  return part.extent.size() > 1 && (columns > kMostInBox || ir::constant_int(part.buffer->shape.back()) != columns);
}

std::string not_part_by_engine(const ir::Copy& copy, const std::unordered_set<const ir::BufferData*>& viewed) {
  const Sides sides = sides_of(copy);
  const ir::BufferData &tensor = *sides.tensor.buffer, &tile = *sides.tile.buffer;
  if (tensor.scope != ir::Scope::global || tile.scope != ir::Scope::shared)
    return "it does not go between a tensor and shared memory";
  if (tensor.type != tile.type || tensor.type.is_nibble()) return "its elements change on the way";
  if (std::string why = not_a_tensor(tensor); !why.empty()) return why;
  if (std::string why = not_strided(tensor); !why.empty()) return why;
  const bool in_panels = needs_panels(sides.tile);
  if (in_panels && viewed.contains(&tile)) return fmt::format("`{}` is seen as another type or shape", tile.name);
  if (in_panels && is_one_row(tile)) return fmt::format("`{}` is one row of more than 256 elements", tile.name);
  const int64_t width = ir::constant_int(tile.shape.back()).value_or(1) * tile.type.bytes();
  if (std::string why = not_whole_rows(width); !why.empty()) return why;
  if (std::string why = not_a_box(sides, in_panels); !why.empty()) return why;
  const std::vector<int64_t>& to = sides.tile.extent;
  const int64_t rows = to.size() > 1 ? to[to.size() - 2] : 1;
  if (bytes_of_copy(copy) != rows * to.back() * tile.type.bytes()) return "the part of the tile is no matrix";
  return not_at_a_box(sides.tile, in_panels);
}

namespace {

// Calls `each` with the arguments of a box a panel of the tile: its address, the tensor's map, and where the box lies.
void for_each_box(Lowering& lowering, const ir::Region& tile, const ir::Region& tensor, Span span,
                  const std::function<void(const ir::Region&, const Expr&, const std::vector<Expr>&)>& each) {
  const layout::SharedLayout& memory = lowering.inference.tiles.at(tile.buffer.get());
  if (memory.span() == layout::SwizzleSpan::none && memory.size() != layout::volume(memory.shape()))
    return lowering.fail(span, fmt::format("the copy engine knows no padding, as `{}` has it", tile.buffer->name));
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

namespace {

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
  lowering.decisions.push_back(
      {stmt->span, name_of_copy(copy.source.buffer, copy.destination.buffer), "by the copy engine (TMA)"});
  lowering.add_by_first_thread(std::move(body), stmt->span, out);
}

ir::Var Lowering::map_of(const ir::Buffer& tensor, const std::vector<int64_t>& box, layout::SwizzleSpan span) {
  for (const TensorBoxes& known : maps)
    if (known.tensor == tensor && known.box == box && known.span == span) return known.map;
  maps.push_back({tensor, box, span, ir::make_var(tensor->name + "_map", ir::kUInt64)});
  return maps.back().map;
}

}  // namespace tilepilot::targets::cuda
