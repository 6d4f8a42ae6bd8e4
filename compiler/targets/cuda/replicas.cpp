#include "compiler/targets/cuda/replicas.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/search.h"
#include "compiler/ir/touches.h"

namespace tilepilot::targets::cuda {
namespace {

// Whether the iterations write each element of the buffer: its indices are the loop's variables.
bool names_all(const ir::For& loop, const ir::Store& store) {
  std::vector<ir::Var> named;
  for (size_t axis = 0; axis < store.indices.size(); ++axis) {
    const auto* ref = ir::as<ir::VarRef>(store.indices[axis]);
    const auto found = ref ? std::find(loop.vars.begin(), loop.vars.end(), ref->var) : loop.vars.end();
    if (found == loop.vars.end() || std::find(named.begin(), named.end(), *found) != named.end()) return false;
    const auto extent = ir::constant_int(loop.extents[static_cast<size_t>(found - loop.vars.begin())]);
    if (!extent || extent != ir::constant_int(store.buffer->shape[axis])) return false;
    named.push_back(*found);
  }
  return true;
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

bool overwrites(const ir::Stmt& stmt, const ir::Buffer& buffer) {
  const auto* reduce = ir::as<ir::Reduce>(stmt);
  if (reduce) return reduce->clear && reduce->destination.buffer == buffer;
  if (const auto* gemm = ir::as<ir::Gemm>(stmt)) return gemm->clear_accumulator && gemm->c.buffer == buffer;
  const auto* loop = ir::as<ir::For>(stmt);
  if (loop == nullptr || loop->kind != ir::LoopKind::parallel) return false;
  for (const ir::Stmt& part : ir::statements(loop->body)) {
    const auto* atomic = ir::as<ir::Atomic>(part);
    if (ir::touched_buffers(part).reads.contains(buffer.get()) || (atomic && atomic->element.buffer == buffer))
      return false;
    const auto* store = ir::as<ir::Store>(part);
    if (store && store->buffer == buffer && names_all(*loop, *store)) return true;
    if (store == nullptr && ir::as<ir::Let>(part) == nullptr && atomic == nullptr) return false;
  }
  return false;
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

}  // namespace tilepilot::targets::cuda
