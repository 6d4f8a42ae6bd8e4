#include "compiler/targets/cuda/load_hoisting.h"

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using ir::Buffer;
using ir::Stmt;

namespace {

constexpr int64_t kMostBytes = 128;  // of registers that a thread holds for the sake of early loads

using Buffers = std::unordered_set<const ir::BufferData*>;

bool is_vector_copy(const ir::ExternCall& call) { return call.function.starts_with("copy_vector"); }
const ir::Region* region_of(const ir::ExternCall& call, size_t number) {
  return number < call.arguments.size() ? std::get_if<ir::Region>(&call.arguments[number]) : nullptr;
}

Buffers named_in(const Stmt& stmt) {
  ir::Effects effects = ir::effects_of(stmt);
  effects.reads.merge(effects.writes);
  return std::move(effects.reads);
}

// Whether threads of other blocks, and TMA, see nothing of it and it does not wait for them.
bool is_private(const Stmt& stmt) {
  return !ir::contains(stmt, [](const Stmt& part) {
    if (const auto* store = ir::as<ir::Store>(part)) return store->buffer->scope == ir::Scope::global;
    if (const auto* call = ir::as<ir::ExternCall>(part)) {
      const ir::Region* to = region_of(*call, 0);
      return !(is_vector_copy(*call) || call->function.starts_with("keep_")) || to == nullptr ||
             to->buffer->scope == ir::Scope::global;
    }
    if (const auto* sync = ir::as<ir::Sync>(part))
      return sync->scope != ir::SyncScope::block && sync->scope != ir::SyncScope::warp;
    const bool harmless = ir::as<ir::For>(part) || ir::as<ir::Block>(part) || ir::as<ir::Let>(part) ||
                          ir::as<ir::If>(part) || ir::as<ir::Shuffle>(part);
    return !harmless;
  });
}

// Tensors that some statement may write.
Buffers written_in(const Stmt& body) {
  Buffers written;
  ir::walk(
      body,
      [&](const Stmt& part) {
        if (const auto* store = ir::as<ir::Store>(part)) written.insert(store->buffer.get());
        if (const auto* atomic = ir::as<ir::Atomic>(part)) written.insert(atomic->element.buffer.get());
        const auto* call = ir::as<ir::ExternCall>(part);
        for (size_t k = 0; call != nullptr && k < call->arguments.size(); ++k) {
          const bool is_source = k == 1 && (is_vector_copy(*call) || call->function.starts_with("async_copy"));
          if (const ir::Region* region = region_of(*call, k); region && !is_source)
            written.insert(region->buffer.get());
        }
      },
      [](const ir::Expr&) {});
  return written;
}

class EarlyLoads : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit EarlyLoads(const Buffers& written) : written_(written) {}

  Stmt rewrite(const Stmt& stmt) override {
    const Stmt inner = rewrite_children(stmt);
    const auto* list = ir::as<ir::Block>(inner);
    if (list == nullptr) return inner;
    std::vector<Stmt> all;
    flatten(*list, all);
    int64_t held = 0;
    bool moved = false;
    for (size_t k = 0; k < all.size(); ++k) {
      const int64_t bytes = bytes_loaded(all[k]);
      if (bytes == 0 || held + bytes > kMostBytes) continue;
      const size_t to = earliest(all, k);
      if (to == k) continue;
      std::rotate(all.begin() + static_cast<ptrdiff_t>(to), all.begin() + static_cast<ptrdiff_t>(k),
                  all.begin() + static_cast<ptrdiff_t>(k) + 1);
      held += bytes;
      moved = true;
    }
    return moved ? ir::make_stmt(ir::Block{std::move(all)}, stmt->span) : inner;
  }

 private:
  const Buffers& written_;

  static void flatten(const ir::Block& list, std::vector<Stmt>& out) {
    for (const Stmt& part : list.body) {
      const auto* inner = ir::as<ir::Block>(part);
      inner ? flatten(*inner, out) : out.push_back(part);
    }
  }

  // Of the registers that a nest of unrolled loops loads from tensors and does nothing else; 0 of other statements.
  int64_t bytes_loaded(const Stmt& stmt) const {
    Buffers targets;
    const bool other = ir::contains(stmt, [&](const Stmt& part) {
      if (ir::as<ir::Block>(part)) return false;
      if (const auto* loop = ir::as<ir::For>(part)) return loop->kind != ir::LoopKind::unrolled;
      const auto* call = ir::as<ir::ExternCall>(part);
      if (call == nullptr || !is_vector_copy(*call)) return true;
      const ir::Region *to = region_of(*call, 0), *from = region_of(*call, 1);
      if (to == nullptr || from == nullptr || from->buffer->scope != ir::Scope::global) return true;
      if (written_.contains(from->buffer.get()) || from->buffer->base || from->buffer->address) return true;
      targets.insert(to->buffer.get());
      return to->buffer->scope != ir::Scope::local ||
             std::any_of(from->start.begin(), from->start.end(), [](const ir::Expr& at) { return ir::has_loads(at); });
    });
    int64_t bytes = 0;
    if (other) return bytes;
    for (const ir::BufferData* target : targets)
      bytes += ir::constant_int(target->shape[0]).value_or(kMostBytes) * target->type.bytes();
    return bytes;
  }

  static size_t earliest(const std::vector<Stmt>& all, size_t at) {
    const Buffers named = named_in(all[at]);
    size_t to = at;
    while (to > 0) {
      const Stmt& before = all[to - 1];
      const Buffers others = named_in(before);
      const bool apart = std::none_of(others.begin(), others.end(), [&](const auto* other) {
        return other->scope == ir::Scope::global || named.contains(other);
      });
      const ir::Var bound = ir::bound_variable(*before);
      if (!apart || !is_private(before) || (bound && ir::mentions(all[at], bound))) break;
      --to;
    }
    return to;
  }
};

// Whether some statement writes tensors that are not among its arguments: TMA, and stores to places that are loaded.
bool writes_unnamed(const Stmt& body, const Buffers& written) {
  const bool stores_boxes = ir::contains(body, [](const Stmt& part) {
    const auto* call = ir::as<ir::ExternCall>(part);
    return call != nullptr && call->function.starts_with("tma_store");
  });
  return stores_boxes ||
         std::any_of(written.begin(), written.end(), [](const auto* buffer) { return buffer->address; });
}

}  // namespace

Stmt hoist_loads(const Stmt& body) {
  const Buffers written = written_in(body);
  return writes_unnamed(body, written) ? body : EarlyLoads(written).rewrite(body);
}

std::unordered_set<const ir::BufferData*> read_only_tensors(const Stmt& body) {
  const Buffers written = written_in(body);
  const bool has_views = std::any_of(written.begin(), written.end(), [](const auto* buffer) { return buffer->base; });
  if (has_views || writes_unnamed(body, written)) return {};
  Buffers tensors;
  ir::each_effect(body, [&](const Buffer& buffer, bool) {
    const bool is_tensor = buffer->scope == ir::Scope::global && !buffer->base && !buffer->address;
    if (is_tensor && !written.contains(buffer.get())) tensors.insert(buffer.get());
  });
  return tensors;
}

}  // namespace tilepilot::targets::cuda
