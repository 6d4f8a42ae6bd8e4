#include "compiler/targets/gpu/layout/stmatrix_stores.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/algebra/static_index.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/loop_body.h"
#include "compiler/targets/gpu/facts/replicas.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Scope;
using layout::Fragment;
using layout::Mode;
using layout::Transposed;

namespace {

constexpr int64_t kWords = 4, kHalves = 2, kMostDigits = 2;

// The modes with the first `extent` places as a mode of their own; false if they are none.
bool split_first(std::vector<Mode>& modes, size_t at, int64_t extent) {
  if (at >= modes.size() || modes[at].extent % extent != 0) return false;
  const Mode whole = modes[at];
  if (whole.extent == extent) return true;
  modes[at] = {extent, whole.stride};
  modes.insert(modes.begin() + static_cast<ptrdiff_t>(at) + 1, {whole.extent / extent, whole.stride * extent});
  return true;
}

// The threads of a warp as 4 words of 8 rows.
std::optional<layout::Layout> words_and_rows(const layout::Layout& threads) {
  std::vector<Mode> modes = threads.modes();
  std::erase_if(modes, [](const Mode& mode) { return mode.extent == 1; });
  if (!split_first(modes, 0, kWords) || !split_first(modes, 1, kMatrixRow)) return std::nullopt;
  return layout::Layout(std::move(modes));
}

// With halves of words along the mode `half` of the loop's registers, then the matrices of one instruction.
std::optional<Matrices> arranged(const Fragment& loop, const layout::Layout& threads, size_t half) {
  std::vector<Mode> rest = loop.registers().modes();
  if (!split_first(rest, half, kHalves)) return std::nullopt;
  std::vector<Mode> first{rest[half]};
  rest.erase(rest.begin() + static_cast<ptrdiff_t>(half));
  int64_t digits = 0;
  for (size_t k = 0; k < rest.size() && digits < kMostDigits;) {
    if (rest[k].extent == 1 || !split_first(rest, k, 2)) {
      ++k;
      continue;
    }
    first.push_back(rest[k]);
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(k));
    ++digits;
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return Matrices{Fragment(loop.shape(), threads, layout::Layout(std::move(first)), loop.cover()), digits};
}

// Whether the store writes rows of such matrices, and which way: how far each mode moves it along the tile's axes.
class RowsOfStore {
 public:
  RowsOfStore(const ir::For& loop, const ir::Store& store, const AffineForm& affine) : loop_(loop) {
    for (const Expr& index : store.indices) {
      const auto form = affine(index);
      if (!form) return;
      indices_.push_back(*form);
    }
    known_ = true;
  }

  bool starts_at_rows() const {
    if (!known_ || indices_.empty()) return false;
    const ir::Affine& last = indices_.back();
    return last.constant % kMatrixRow == 0 &&
           std::all_of(last.terms.begin(), last.terms.end(), [&](const ir::Affine::Term& term) {
             return term.coefficient % kMatrixRow == 0 ||
                    std::find(loop_.vars.begin(), loop_.vars.end(), term.var) != loop_.vars.end();
           });
  }

  std::optional<Transposed> way(const Fragment& iterations) const {
    if (!known_ || indices_.empty()) return std::nullopt;
    const auto& threads = iterations.threads().modes();
    const auto& registers = iterations.registers().modes();
    for (const Transposed transposed : {Transposed::no, Transposed::yes}) {
      const bool across = transposed == Transposed::yes;
      bool fits = across ? walks(iterations, threads[1], 1)
                         : walks(iterations, registers[0], 1) && walks(iterations, threads[0], kHalves);
      for (size_t k = 0; k < threads.size() && fits; ++k)
        if (k > 1 || (k == 1) != across) fits = to_other_rows(iterations, threads[k]);
      for (size_t k = across ? 0 : 1; k < registers.size() && fits; ++k) fits = to_other_rows(iterations, registers[k]);
      if (fits) return transposed;
    }
    return std::nullopt;
  }

 private:
  const ir::For& loop_;
  std::vector<ir::Affine> indices_;
  bool known_ = false;

  // Along axis `axis` of the tile.
  int64_t moved(const Fragment& iterations, const Mode& mode, size_t axis) const {
    if (mode.extent == 1) return 0;
    const auto along = axis_of(mode, iterations.cover());
    const auto strides = layout::row_major_strides(iterations.cover());
    return indices_[axis].coefficient(loop_.vars[*along]) * (mode.stride / strides[*along]);
  }
  // Only along the row, by so many elements.
  bool walks(const Fragment& iterations, const Mode& mode, int64_t elements) const {
    for (size_t axis = 0; axis + 1 < indices_.size(); ++axis)
      if (moved(iterations, mode, axis) != 0) return false;
    return moved(iterations, mode, indices_.size() - 1) == elements;
  }
  bool to_other_rows(const Fragment& iterations, const Mode& mode) const {
    return moved(iterations, mode, indices_.size() - 1) % kMatrixRow == 0;
  }
};

bool is_tile_of_halves(const ir::BufferData& buffer) { return buffer.scope == Scope::shared && buffer.type.bits == 16; }

// Why not by matrices, whatever the layout is; "" if nothing speaks against it.
std::string not_by_matrices(const LoopBody& body, const ir::Store& store) {
  const std::string& name = store.buffer->name;
  if (store.buffer->base || store.buffer->address) return fmt::format("`{}` is a view or named by its address", name);
  if (body.accesses(store.buffer) > 1) return fmt::format("the loop accesses `{}` more than once", name);
  for (const Expr& index : store.indices)
    if (body.mentions_values(index) || ir::has_loads(index))
      return fmt::format("where `{}` is written is computed in the loop", name);
  return "";
}

// Whether something that it loads is wanted.
bool loads_any(const ir::Stmt& stmt, const std::function<bool(const ir::BufferData&)>& wanted) {
  bool found = false;
  ir::each_effect(stmt, [&](const ir::Buffer& buffer, bool writes) { found |= !writes && wanted(*buffer); });
  return found;
}

// Why the loop's iterations are no matrices, whatever it stores.
std::string not_in_matrices(const Fragment& loop) {
  if (loop.needs_guard()) return "not all iterations exist that whole matrices have";
  if (has_replicas(loop)) return "several threads hold the same";
  if (!is_separable(loop)) return "registers of its fragments follow no regular order";
  return words_and_rows(loop.threads()) ? "" : "no lanes stand in 8 rows of 4";
}

}  // namespace

std::optional<ir::Affine> affine_as_written(const Expr& index) { return ir::affine(passes::without_casts(index)); }

MatrixStores find_matrix_stores(const ir::For& loop, const Fragment& fragment, const AffineForm& affine) {
  MatrixStores result;
  const LoopBody body(loop, false);
  // A thread that holds whole rows of matrices stores them well itself.
  const auto& registers = fragment.registers().modes();
  const int64_t run = !registers.empty() && registers[0].stride == 1 ? registers[0].extent : 1;
  const auto is_fragment = [](const ir::BufferData& buffer) { return buffer.scope == Scope::fragment; };
  const bool would_gain = run < kMatrixRow && loads_any(loop.body, is_fragment);
  if (!body.is_straight()) {
    const bool stores = ir::contains(loop.body, [](const ir::Stmt& part) {
      const auto* store = ir::as<ir::Store>(part);
      return store && is_tile_of_halves(*store->buffer);
    });
    if (stores && would_gain) result.obstacle = "the loop does more than compute and store";
    return result;
  }
  const std::string why = not_in_matrices(fragment);
  const auto threads = why.empty() ? words_and_rows(fragment.threads()) : std::nullopt;
  for (const ir::Stmt& stmt : body.statements()) {
    const auto* store = ir::as<ir::Store>(stmt);
    if (store == nullptr || !is_tile_of_halves(*store->buffer)) continue;
    const RowsOfStore rows(loop, *store, affine);
    std::string obstacle = not_by_matrices(body, *store);
    if (obstacle.empty()) obstacle = why;
    if (obstacle.empty() && run > kHalves && loads_any(loop.body, is_seen_by_others))
      obstacle = "the loop loads longer vectors";
    if (obstacle.empty() && !rows.starts_at_rows())
      obstacle = fmt::format("rows of matrices may start at no multiple of {} elements of `{}`", kMatrixRow,
                             store->buffer->name);
    std::optional<Transposed> way;
    if (obstacle.empty()) {
      if (result.matrices) way = rows.way(result.matrices->iterations);
      for (size_t half = 0; half < registers.size() && !result.matrices; ++half) {
        const auto matrices = arranged(fragment, *threads, half);
        way = matrices ? rows.way(matrices->iterations) : std::nullopt;
        if (way) result.matrices = matrices;
      }
    }
    if (way) {
      result.stores.emplace(stmt.get(), *way);
    } else if (would_gain) {
      result.obstacle =
          !obstacle.empty()
              ? obstacle
              : fmt::format("lanes hold no rows of `{}` as matrices of tensor cores have them", store->buffer->name);
    }
  }
  return result;
}

bool rows_are_aligned(const layout::SharedLayout& memory) {
  if (memory.span() != layout::SwizzleSpan::none) return true;
  const layout::Shape& shape = memory.shape();
  const std::vector<int64_t> strides = layout::row_major_strides(shape);
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis)
    if (shape[axis] > 1 && memory.offset(strides[axis]) % kMatrixRow != 0) return false;
  return true;
}

}  // namespace tilepilot::targets::gpu
