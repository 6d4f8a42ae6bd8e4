#include "compiler/targets/gpu/machine/tma_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/ir/cluster.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::targets::gpu {

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

// Why TMA cannot access a tensor; "" if it can.
std::string not_a_tensor(const ir::BufferData& tensor) {
  if (tensor.address) return fmt::format("`{}` is named by its address", tensor.name);
  if (alignment_of(tensor) < ir::kTensorAlignment)
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

// Why TMA cannot write to a part of a tile that starts there; "" if it can, whether the tile is swizzled or not.
std::string not_at_a_box(const ir::Region& part, bool in_panels) {
  const ir::BufferData& tile = *part.buffer;
  const int64_t bytes = tile.type.bytes(), width = ir::constant_int(tile.shape.back()).value_or(1);
  const int64_t span = static_cast<int64_t>(layout::span_of_rows(width * bytes));
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

std::string tma_obstacle(const ir::Copy& copy) {
  const Sides sides = sides_of(copy);
  if (copy.options.disable_tma) return "the program says so";
  const std::vector<int64_t>& to = sides.tile.extent;
  const int64_t row_bytes = to.back() * sides.tensor.buffer->type.bytes(), rows = to.size() > 1 ? to[to.size() - 2] : 1;
  if (std::string why = not_a_tensor(*sides.tensor.buffer); !why.empty()) return why;
  if (std::string why = not_whole_rows(row_bytes); !why.empty()) return why;
  // Wide tiles are loaded by panels, each as wide as the widest swizzle.
  const bool in_panels =
      to.back() > kMostInBox && row_bytes % static_cast<int64_t>(layout::SwizzleSpan::bytes_128) == 0 && rows > 1;
  if (std::string why = not_a_box(sides, in_panels); !why.empty()) return why;
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

std::string bulk_copy_obstacle(const ir::Copy& copy) {
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

std::string cluster_copy_obstacle(const ir::Copy& copy) {
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

std::string tma_part_obstacle(const ir::Copy& copy, const std::unordered_set<const ir::BufferData*>& viewed) {
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

}  // namespace tilepilot::targets::gpu
