#include "compiler/targets/gpu/facts/replicas.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {

using ir::Expr;

namespace {

bool reads_memory(const Expr& expr) {
  bool found = false;
  ir::walk(expr, [&](const Expr& part) { found |= ir::as<ir::Load>(part) != nullptr; });
  return found;
}

// The slice that a store writes all of: its indices are variables of the loop, or fixed while the loop runs. `bound`:
// variables of the loop and those that its body binds. None if the form does not show it.
std::optional<Slice> slice_of(const ir::For* loop, const std::vector<ir::Var>& bound, const ir::Store& store) {
  Slice slice;
  std::vector<ir::Var> named;
  for (size_t axis = 0; axis < store.indices.size(); ++axis) {
    const Expr& index = store.indices[axis];
    const auto length = ir::constant_int(store.buffer->shape[axis]);
    const bool is_fixed = !reads_memory(index) && std::none_of(bound.begin(), bound.end(), [&](const ir::Var& var) {
      return ir::mentions(index, var);
    });
    slice.push_back(is_fixed && length != 1 ? index : nullptr);
    if (is_fixed) continue;
    const auto* ref = ir::as<ir::VarRef>(index);
    if (ref == nullptr || loop == nullptr) return std::nullopt;
    const auto found = std::find(loop->vars.begin(), loop->vars.end(), ref->var);
    if (found == loop->vars.end() || std::find(named.begin(), named.end(), *found) != named.end()) return std::nullopt;
    const auto extent = ir::constant_int(loop->extents[static_cast<size_t>(found - loop->vars.begin())]);
    if (!extent || extent != length) return std::nullopt;
    named.push_back(*found);
  }
  return slice;
}

bool is_all(const Slice& slice) {
  return std::none_of(slice.begin(), slice.end(), [](const Expr& index) { return index != nullptr; });
}

}  // namespace

bool has_replicas(const layout::Fragment& fragment) {
  const auto& modes = fragment.threads().modes();
  return std::any_of(modes.begin(), modes.end(),
                     [](const layout::Mode& mode) { return mode.extent > 1 && mode.stride == 0; });
}

bool is_seen_by_others(const ir::BufferData& buffer) {
  return buffer.scope == ir::Scope::shared || buffer.scope == ir::Scope::global;
}

bool writes_element(const ir::Stmt& stmt, const ir::Buffer& buffer) {
  return ir::writes_any(stmt, [&](const ir::Buffer& written) { return written == buffer; });
}

bool reads_element(const ir::Stmt& stmt, const ir::Buffer& buffer) {
  return ir::effects_of(stmt).reads.contains(buffer.get()) || ir::contains(stmt, [&](const ir::Stmt& part) {
           const auto* atomic = ir::as<ir::Atomic>(part);
           return atomic != nullptr && atomic->element.buffer == buffer;
         });
}

bool overwrites(const ir::Stmt& stmt, const ir::Buffer& buffer) {
  const auto* reduce = ir::as<ir::Reduce>(stmt);
  if (reduce) return reduce->clear && reduce->destination.buffer == buffer;
  if (const auto* gemm = ir::as<ir::Gemm>(stmt)) return gemm->clear_accumulator && gemm->c.buffer == buffer;
  const auto slice = overwritten_slice(stmt, buffer);
  return slice && is_all(*slice);
}

std::optional<Slice> overwritten_slice(const ir::Stmt& stmt, const ir::Buffer& buffer) {
  const auto* loop = ir::as<ir::For>(stmt);
  const bool is_parallel = loop != nullptr && loop->kind == ir::LoopKind::parallel;
  if (!is_parallel && !ir::as<ir::Store>(stmt)) return std::nullopt;
  std::vector<ir::Var> bound;
  if (is_parallel) bound = loop->vars;
  std::optional<Slice> slice;
  for (const ir::Stmt& part : ir::statements(is_parallel ? loop->body : stmt)) {
    const auto* atomic = ir::as<ir::Atomic>(part);
    if (ir::effects_of(part).reads.contains(buffer.get()) || (atomic && atomic->element.buffer == buffer))
      return std::nullopt;
    const auto* let = ir::as<ir::Let>(part);
    if (let != nullptr) bound.push_back(let->var);
    const auto* store = ir::as<ir::Store>(part);
    if (store == nullptr && let == nullptr && atomic == nullptr) return std::nullopt;
    if (store == nullptr || store->buffer != buffer) continue;
    if (slice) return std::nullopt;
    slice = slice_of(loop, bound, *store);
    if (!slice || is_all(*slice)) return slice;
  }
  return slice;
}

bool writes_own(const ir::Stmt& stmt) {
  return ir::writes_any(stmt, [](const ir::Buffer& written) { return !is_seen_by_others(*written); });
}

bool needs_one_thread(const ir::Stmt& stmt) {
  std::unordered_set<const ir::BufferData*> written;
  bool uses_change = false, reads = false;
  ir::walk(
      stmt,
      [&](const ir::Stmt& part) {
        const auto* store = ir::as<ir::Store>(part);
        const auto* atomic = ir::as<ir::Atomic>(part);
        if (store != nullptr && is_seen_by_others(*store->buffer)) written.insert(ir::memory_of(store->buffer));
        if (atomic == nullptr || !is_seen_by_others(*atomic->element.buffer)) return;
        uses_change |= atomic->previous != nullptr;
        written.insert(ir::memory_of(atomic->element.buffer));
      },
      [](const ir::Expr&) {});
  ir::walk(
      stmt, [](const ir::Stmt&) {},
      [&](const ir::Expr& part) {
        const auto* load = ir::as<ir::Load>(part);
        reads |= load != nullptr && written.contains(ir::memory_of(load->buffer));
      });
  return uses_change || reads;
}

}  // namespace tilepilot::targets::gpu
