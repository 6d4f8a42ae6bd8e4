#include "compiler/targets/cuda/replicas.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/barriers.h"

namespace tilepilot::targets::cuda {
namespace {

bool writes_where(const ir::Stmt& stmt, const std::function<bool(const ir::Buffer&)>& wanted) {
  return ir::contains(stmt, [&](const ir::Stmt& part) {
    const auto* store = ir::as<ir::Store>(part);
    if (store != nullptr && wanted(store->buffer)) return true;
    const ir::Accesses accesses = ir::region_accesses(part);
    return std::any_of(accesses.writes.begin(), accesses.writes.end(),
                       [&](const ir::Region* r) { return wanted(r->buffer); });
  });
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
  return writes_where(stmt, [&](const ir::Buffer& written) { return written == buffer; });
}

bool writes_own(const ir::Stmt& stmt) {
  return writes_where(stmt, [](const ir::Buffer& written) { return !is_seen_by_others(*written); });
}

bool needs_one_thread(const ir::Stmt& stmt) {
  std::unordered_set<const ir::BufferData*> written;
  bool uses_change = false, reads = false;
  ir::walk(
      stmt,
      [&](const ir::Stmt& part) {
        const auto* store = ir::as<ir::Store>(part);
        const auto* atomic = ir::as<ir::Atomic>(part);
        if (store != nullptr && is_seen_by_others(*store->buffer)) written.insert(memory_of(store->buffer));
        if (atomic == nullptr || !is_seen_by_others(*atomic->element.buffer)) return;
        uses_change |= atomic->previous != nullptr;
        written.insert(memory_of(atomic->element.buffer));
      },
      [](const ir::Expr&) {});
  ir::walk(
      stmt, [](const ir::Stmt&) {},
      [&](const ir::Expr& part) {
        const auto* load = ir::as<ir::Load>(part);
        reads |= load != nullptr && written.contains(memory_of(load->buffer));
      });
  return uses_change || reads;
}

}  // namespace tilepilot::targets::cuda
