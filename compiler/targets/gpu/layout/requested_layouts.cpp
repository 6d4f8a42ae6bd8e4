#include "compiler/targets/gpu/layout/requested_layouts.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/passes/algebra/static_index.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/loop_uses.h"
#include "compiler/targets/gpu/layout/shared_layouts.h"
#include "compiler/targets/gpu/layout/stmatrix_stores.h"
#include "compiler/targets/gpu/machine/tma_rules.h"

namespace tilepilot::targets::gpu {

using layout::Fragment;
using layout::Layout;
using layout::Mode;
using layout::Shape;
using layout::SharedLayout;
using layout::SwizzleSpan;

namespace {

constexpr int64_t kMostOffset = int64_t{1} << 32;  // far beyond shared memory
constexpr const char* kUnknownForm = "some places that it gives are negative, or known to nobody";

bool is_allocated(const ir::Kernel& kernel, const ir::Buffer& buffer) {
  return std::find(kernel.allocations.begin(), kernel.allocations.end(), buffer) != kernel.allocations.end();
}

Shape tile_shape(const ir::RequestedLayout& request) {
  const Shape shape = shape_of(request.buffer);
  return Shape(shape.end() - static_cast<ptrdiff_t>(request.rank()), shape.end());
}

// The values of an index expression for all elements in row-major order, replicas last and fastest.
std::optional<std::vector<int64_t>> values_of(const ir::Expr& expr, const ir::RequestedLayout& request) {
  const auto index = passes::StaticIndex::of(expr, request.vars);
  if (!index) return std::nullopt;
  Shape shape = tile_shape(request);
  if (request.replicas > 1) shape.push_back(request.replicas);
  std::vector<int64_t> values(static_cast<size_t>(layout::volume(shape))), at(shape.size(), 0);
  for (int64_t& value : values) {
    value = (*index)(at);
    if (value < 0 || value > kMostOffset) return std::nullopt;
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
  return values;
}

// The layout that gives these values for 0, 1, 2, ...; none if they are no sums of digits times strides.
std::optional<Layout> as_layout(const std::vector<int64_t>& values) {
  const auto count = static_cast<int64_t>(values.size());
  const auto at = [&](int64_t i) { return values[static_cast<size_t>(i)]; };
  std::vector<Mode> modes;
  for (int64_t below = 1; below < count;) {
    const int64_t stride = at(below);
    if (stride < 0) return std::nullopt;
    int64_t extent = 2;
    while ((extent + 1) * below <= count && at(extent * below) == extent * stride) ++extent;
    while (extent > 1 && count % (extent * below) != 0) --extent;
    if (extent == 1) return std::nullopt;
    modes.push_back({extent, stride});
    below *= extent;
  }
  Layout layout(std::move(modes));
  for (int64_t i = 0; i < count; ++i)
    if (layout(i) != at(i)) return std::nullopt;
  return layout;
}

// The elements of threads: `registers` of each, one thread after the other.
struct Held {
  int64_t threads, registers;
  std::vector<int64_t> elements;

  int64_t at(int64_t thread, int64_t reg) const { return elements[static_cast<size_t>(thread * registers + reg)]; }
};

// None if threads are given no such share each; `why` says it.
std::optional<Held> elements_of_threads(const ir::RequestedLayout& request, int64_t threads, std::string& why) {
  const auto owner = values_of(request.thread, request);
  const auto place = request.position ? values_of(request.position, request) : std::nullopt;
  if (!owner || (request.position && !place)) return why = kUnknownForm, std::nullopt;
  const auto places = static_cast<int64_t>(owner->size());
  const int64_t replicas = places / layout::volume(shape_of(request.buffer));
  if (places % threads != 0)
    return why = fmt::format("{} elements are no multiple of {} threads", places, threads), std::nullopt;
  Held held{threads, places / threads, std::vector<int64_t>(owner->size(), -1)};
  std::vector<int64_t> taken(static_cast<size_t>(threads), 0);
  for (size_t k = 0; k < owner->size(); ++k) {
    const int64_t thread = (*owner)[k];
    if (thread < 0 || thread >= threads)
      return why = fmt::format("thread {} is none of {}", thread, threads), std::nullopt;
    const int64_t reg = place ? (*place)[k] : taken[static_cast<size_t>(thread)]++;
    if (reg < 0 || reg >= held.registers)
      return why =
                 fmt::format("thread {} has a register {}, where each holds {} elements", thread, reg, held.registers),
             std::nullopt;
    int64_t& element = held.elements[static_cast<size_t>(thread * held.registers + reg)];
    if (element >= 0) return why = fmt::format("two elements have register {} of thread {}", reg, thread), std::nullopt;
    element = static_cast<int64_t>(k) / replicas;
  }
  return held;
}

std::optional<Fragment> as_fragment(const ir::RequestedLayout& request, int64_t threads, std::string& why) {
  const auto held = elements_of_threads(request, threads, why);
  if (!held) return std::nullopt;
  std::vector<int64_t> by_thread, by_register;
  for (int64_t t = 0; t < threads; ++t) by_thread.push_back(held->at(t, 0));
  for (int64_t r = 0; r < held->registers; ++r) by_register.push_back(held->at(0, r));
  const auto of_threads = as_layout(by_thread), of_registers = as_layout(by_register);
  bool alike = of_threads && of_registers;
  for (int64_t t = 0; alike && t < threads; ++t)
    for (int64_t r = 0; r < held->registers; ++r) alike &= held->at(t, r) == (*of_threads)(t) + (*of_registers)(r);
  if (!alike) return why = "what threads hold is no sum of digits of their numbers", std::nullopt;
  const Shape shape = shape_of(request.buffer);
  Fragment fragment = split_by_axes(Fragment(shape, *of_threads, *of_registers, shape));
  if (!is_separable(fragment)) return why = "what a thread holds crosses the ends of rows", std::nullopt;
  return fragment;
}

// The layout, of those that shared tiles can have, in which each element lies where the request says.
std::optional<SharedLayout> as_shared_layout(const ir::RequestedLayout& request, std::string& why) {
  const auto offsets = values_of(request.position, request);
  if (!offsets) return why = kUnknownForm, std::nullopt;
  const Shape tile = tile_shape(request), shape = shape_of(request.buffer);
  const int64_t bits = request.buffer->type.bytes() * 8, columns = tile.empty() ? 1 : tile.back();
  const auto lies_so = [&](const SharedLayout& memory) {
    for (size_t k = 0; k < offsets->size(); ++k)
      if (memory.offset(static_cast<int64_t>(k)) != (*offsets)[k]) return false;
    return true;
  };
  const int64_t row = columns < layout::volume(tile) ? (*offsets)[static_cast<size_t>(columns)] : columns;
  if (row >= columns && lies_so(SharedLayout::padded(tile, bits, row - columns)))
    return SharedLayout::padded(shape, bits, row - columns);
  const bool has_rows = tile.size() > 1;
  for (SwizzleSpan span : {SwizzleSpan::bytes_128, SwizzleSpan::bytes_64, SwizzleSpan::bytes_32})
    if (const auto swizzled = SharedLayout::swizzled(tile, bits, span); has_rows && swizzled && lies_so(*swizzled))
      return SharedLayout::swizzled(shape, bits, span);
  why = "tiles lie row by row, with padded rows, or swizzled within 32, 64 or 128 bytes";
  return std::nullopt;
}

struct TileUses {
  bool of_wgmma = false, of_matrices = false, of_boxes = false, in_panels = false, in_order = false;
};

TileUses tile_uses(const ir::Kernel& kernel, const ir::Buffer& tile, const Inference& inference) {
  TileUses uses;
  uses.of_boxes = tiles_of_boxes(kernel.body).contains(tile.get());
  uses.in_order = tiles_in_order(kernel.body).contains(tile.get());
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& part) {
        const auto* gemm = ir::as<ir::Gemm>(part);
        if (gemm && (gemm->a.buffer == tile || gemm->b.buffer == tile))
          uses.of_wgmma |= inference.gemms.at(part.get()).is_wgmma();
        if (const auto* load = ir::as<ir::LoadMatrix>(part)) uses.of_matrices |= load->row.buffer == tile;
        const auto* copy = ir::as<ir::Copy>(part);
        if (copy && copy->mode == ir::CopyMode::bulk_load && copy->destination.buffer == tile)
          uses.in_panels |= needs_panels(copy->destination);
      },
      [](const ir::Expr&) {});
  return uses;
}

// What keeps a tile from being so, or "".
std::string obstacle_of(const SharedLayout& memory, const TileUses& uses, bool viewed) {
  const bool is_swizzled = memory.span() != SwizzleSpan::none;
  const bool is_plain = !is_swizzled && memory.size() == layout::volume(memory.shape());
  if ((viewed || uses.in_order) && !is_plain) return "its elements have to follow each other, as others see them";
  if (uses.of_wgmma && !is_swizzled) return "wgmma reads swizzled tiles";
  if (uses.in_panels && !is_swizzled) return "TMA fills panels of swizzled tiles";
  if (uses.of_boxes && !is_swizzled && !is_plain) return "TMA supports no padding";
  if (uses.of_matrices && !rows_are_aligned(memory)) return "ldmatrix reads rows of 16 bytes";
  return "";
}

void note(Inference& inference, const ir::RequestedLayout& request, std::string obstacle) {
  std::erase_if(inference.requests, [&](const Inference::Request& one) { return one.buffer == request.buffer; });
  inference.requests.push_back({request.buffer, request.span, std::move(obstacle)});
}

}  // namespace

std::vector<std::pair<ir::Buffer, Fragment>> requested_fragments(const ir::Kernel& kernel, int64_t threads,
                                                                 Inference& inference) {
  std::vector<std::pair<ir::Buffer, Fragment>> result;
  for (const ir::RequestedLayout& request : kernel.layouts) {
    const ir::Buffer& buffer = request.buffer;
    if (!request.thread || !is_allocated(kernel, buffer)) continue;
    std::string obstacle;
    auto fragment = buffer->scope == ir::Scope::fragment ? as_fragment(request, threads, obstacle) : std::nullopt;
    if (buffer->scope != ir::Scope::fragment) obstacle = "it does not stay in registers";
    const auto demanded = inference.fragments.find(buffer.get());
    if (fragment && demanded != inference.fragments.end() && !equal_functions(demanded->second, *fragment))
      obstacle = "the instructions of its products hold it otherwise";
    else if (fragment)
      result.emplace_back(buffer, *std::move(fragment));
    note(inference, request, std::move(obstacle));
  }
  return result;
}

void lay_out_as_requested(const ir::Kernel& kernel, const std::unordered_set<const ir::BufferData*>& viewed,
                          Inference& inference) {
  for (const ir::RequestedLayout& request : kernel.layouts) {
    if (request.thread || request.buffer->scope != ir::Scope::shared || !is_allocated(kernel, request.buffer)) continue;
    std::string obstacle;
    const auto memory = as_shared_layout(request, obstacle);
    if (memory)
      obstacle =
          obstacle_of(*memory, tile_uses(kernel, request.buffer, inference), viewed.contains(request.buffer.get()));
    if (memory && obstacle.empty()) inference.tiles.insert_or_assign(request.buffer.get(), *memory);
    note(inference, request, std::move(obstacle));
  }
}

bool is_as_requested(const Inference& inference, const ir::BufferData* tile) {
  return std::any_of(inference.requests.begin(), inference.requests.end(),
                     [&](const Inference::Request& one) { return one.buffer.get() == tile && one.obstacle.empty(); });
}

std::vector<Diagnostic> request_warnings(const std::vector<const Inference*>& roles) {
  std::vector<Inference::Request> unmet;
  for (const Inference* role : roles)
    for (const Inference::Request& request : role->requests) {
      const auto is_same = [&](const Inference::Request& one) { return one.buffer == request.buffer; };
      const bool is_met = std::any_of(roles.begin(), roles.end(), [&](const Inference* other) {
        return is_as_requested(*other, request.buffer.get());
      });
      if (!is_met && std::none_of(unmet.begin(), unmet.end(), is_same)) unmet.push_back(request);
    }
  std::vector<Diagnostic> warnings;
  for (const Inference::Request& request : unmet)
    warnings.push_back({DiagnosticKind::ignored_request, request.span,
                        fmt::format("`{}` is not laid out as asked: {}", request.buffer->name, request.obstacle)});
  return warnings;
}

}  // namespace tilepilot::targets::gpu
