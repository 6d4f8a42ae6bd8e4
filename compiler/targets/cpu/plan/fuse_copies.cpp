#include "compiler/targets/cpu/plan/fuse_copies.h"

#include <algorithm>
#include <map>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/cpu/plan/operand_layout.h"

namespace tilepilot::targets::cpu {
namespace {

bool is_global(const ir::Region& region) { return region.buffer->scope == ir::Scope::global; }

// How often a buffer is named by tile operators, loads and stores.
struct Uses {
  int loads = 0, stores = 0, regions = 0;
  int all() const { return loads + stores + regions; }
};
using UseMap = std::map<const ir::BufferData*, Uses>;

UseMap uses_by_kind(const ir::Stmt& body) {
  UseMap uses;
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        if (const auto* store = std::get_if<ir::Store>(&stmt->node)) ++uses[store->buffer.get()].stores;
        const ir::Accesses accesses = ir::region_accesses(stmt);
        for (const auto* regions : {&accesses.reads, &accesses.writes})
          for (const ir::Region* region : *regions) ++uses[region->buffer.get()].regions;
      },
      [&](const ir::Expr& expr) {
        if (const auto* load = std::get_if<ir::Load>(&expr->node)) ++uses[load->buffer.get()].loads;
      });
  return uses;
}

// True if the indices are the loop's variables, in order.
bool is_point(const std::vector<ir::Expr>& indices, const ir::For& loop) {
  if (indices.size() != loop.vars.size()) return false;
  for (size_t k = 0; k < indices.size(); ++k) {
    const auto* ref = std::get_if<ir::VarRef>(&indices[k]->node);
    if (ref == nullptr || ref->var != loop.vars[k]) return false;
  }
  return true;
}

// True if the loop runs over exactly the elements of the buffer.
bool runs_over(const ir::For& loop, const ir::Buffer& buffer) {
  if (loop.kind != ir::LoopKind::parallel || loop.vars.size() != buffer->rank()) return false;
  for (size_t k = 0; k < loop.vars.size(); ++k) {
    const auto extent = ir::constant_int(loop.extents[k]);
    if (!extent || extent != ir::constant_int(buffer->shape[k])) return false;
  }
  return true;
}

// The element of `region` that lies on the element of the tile at the loop's variables.
std::vector<ir::Expr> point_of(const ir::Region& region, const ir::Buffer& tile, const ir::For& loop) {
  std::vector<ir::Expr> indices = region.start;
  size_t axis = 0;
  for (size_t k = 0; k < loop.vars.size(); ++k) {
    if (ir::constant_int(tile->shape[k]) == 1) continue;
    while (region.extent[axis] == 1) ++axis;
    const ir::Expr step = ir::cast(ir::var_ref(loop.vars[k]), indices[axis]->type);
    const bool from_zero = ir::constant_int(indices[axis]) == 0;
    indices[axis] = from_zero ? step : ir::binary(ir::BinaryOp::add, indices[axis], step);
    ++axis;
  }
  return indices;
}

// The only store of a loop's body, behind lets at most.
const ir::Store* last_store(const ir::Stmt& body) {
  if (const auto* block = std::get_if<ir::Block>(&body->node)) {
    for (size_t k = 0; k + 1 < block->body.size(); ++k)
      if (!std::holds_alternative<ir::Let>(block->body[k]->node)) return nullptr;
    return block->body.empty() ? nullptr : last_store(block->body.back());
  }
  return std::get_if<ir::Store>(&body->node);
}

// Replaces loads of a tile by loads of the tensor it was copied from.
class LoadReplacer : public ir::Rewriter {
 public:
  LoadReplacer(const ir::Copy& copy, const ir::For& loop)
      : copy_(copy), indices_(point_of(copy.source, copy.destination.buffer, loop)) {}
  using Rewriter::rewrite;
  ir::Expr rewrite(const ir::Expr& expr) override {
    const auto* load = std::get_if<ir::Load>(&expr->node);
    if (load == nullptr || load->buffer != copy_.destination.buffer) return rewrite_children(expr);
    return ir::cast(ir::load(copy_.source.buffer, indices_, expr->span), expr->type);
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override { return rewrite_children(stmt); }

 private:
  const ir::Copy& copy_;
  std::vector<ir::Expr> indices_;
};

// Replaces the store of a loop to a tile by a store to the tensor that the tile is copied to.
class StoreReplacer : public ir::Rewriter {
 public:
  StoreReplacer(const ir::Copy& copy, const ir::For& loop)
      : copy_(copy), indices_(point_of(copy.destination, copy.source.buffer, loop)) {}
  using Rewriter::rewrite;
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store == nullptr) return rewrite_children(stmt);
    const ir::Buffer& tensor = copy_.destination.buffer;
    return ir::make_stmt(ir::Store{tensor, indices_, ir::cast(store->value, tensor->type)}, stmt->span);
  }

 private:
  const ir::Copy& copy_;
  std::vector<ir::Expr> indices_;
};

class Fuser {
 public:
  explicit Fuser(const ir::Kernel& kernel) : kernel_(kernel), sharing_(ir::sharing_buffers(kernel)) {}

  ir::Kernel run() {
    const auto* block = std::get_if<ir::Block>(&kernel_.body->node);
    if (block == nullptr) return kernel_;
    body_ = block->body;
    for (size_t k = 0; k + 1 < body_.size(); ++k) fuse_store(k);
    std::erase(body_, nullptr);
    uses_ = uses_by_kind(ir::make_stmt(ir::Block{body_}, kernel_.body->span));
    for (size_t k = 0; k < body_.size(); ++k) fuse_load(k);
    std::erase(body_, nullptr);
    ir::Kernel result = kernel_;
    result.body = ir::make_stmt(ir::Block{body_}, kernel_.body->span);
    const UseMap left = uses_by_kind(result.body);
    std::erase_if(result.allocations, [&](const ir::Buffer& buffer) {
      return !left.contains(buffer.get()) && !sharing_.contains(buffer.get());
    });
    return result;
  }

 private:
  const ir::Kernel& kernel_;
  const std::unordered_set<const ir::BufferData*> sharing_;
  UseMap uses_;
  std::vector<ir::Stmt> body_;

  // copy x -> t; ...; parallel { ... t[i, j] ... }, and nothing else uses t.
  void fuse_load(size_t at) {
    const auto* copy = std::get_if<ir::Copy>(&body_[at]->node);
    if (copy == nullptr || !is_global(copy->source) || is_global(copy->destination) ||
        !covers_buffer(copy->destination) || ir::accesses_any(body_[at], sharing_))
      return;
    const ir::Buffer& tile = copy->destination.buffer;
    const Uses& uses = uses_[tile.get()];
    if (uses.regions != 1 || uses.stores != 0) return;
    for (size_t k = at + 1; k < body_.size(); ++k) {
      const auto* loop = std::get_if<ir::For>(&body_[k]->node);
      if (loop != nullptr && reads_point_only(*loop, *copy, uses.loads)) {
        const ir::Stmt fused = LoadReplacer(*copy, *loop).rewrite(body_[k]);
        body_[k] = fused;
        body_[at] = nullptr;
        return;
      }
      if (writes(body_[k], copy->source.buffer)) return;
    }
  }

  // All `loads` loads of the tile are in this loop, each at the loop's own point; the loop does not write its source.
  static bool reads_point_only(const ir::For& loop, const ir::Copy& copy, int loads) {
    const ir::Buffer& tile = copy.destination.buffer;
    if (!runs_over(loop, tile)) return false;
    int found = 0;
    bool only_points = true;
    ir::walk(
        loop.body,
        [&](const ir::Stmt& stmt) {
          if (const auto* store = std::get_if<ir::Store>(&stmt->node))
            only_points = only_points && store->buffer != copy.source.buffer;
          only_points = only_points && !std::holds_alternative<ir::For>(stmt->node) &&
                        !std::holds_alternative<ir::While>(stmt->node) &&
                        !std::holds_alternative<ir::Atomic>(stmt->node);
        },
        [&](const ir::Expr& expr) {
          const auto* load = std::get_if<ir::Load>(&expr->node);
          if (load == nullptr || load->buffer != tile) return;
          ++found;
          only_points = only_points && is_point(load->indices, loop);
        });
    return only_points && found == loads;
  }

  static bool writes(const ir::Stmt& stmt, const ir::Buffer& buffer) {
    bool found = false;
    ir::walk(
        stmt,
        [&](const ir::Stmt& child) {
          if (const auto* store = std::get_if<ir::Store>(&child->node)) found = found || store->buffer == buffer;
          for (const ir::Region* region : ir::region_accesses(child).writes) found = found || region->buffer == buffer;
        },
        [](const ir::Expr&) {});
    return found;
  }

  // parallel { t[i, j] = ... }; copy t -> y, and t is not used afterwards.
  void fuse_store(size_t at) {
    const auto* loop = body_[at] ? std::get_if<ir::For>(&body_[at]->node) : nullptr;
    const auto* copy = body_[at + 1] ? std::get_if<ir::Copy>(&body_[at + 1]->node) : nullptr;
    if (loop == nullptr || copy == nullptr || is_global(copy->source) || !is_global(copy->destination) ||
        !covers_buffer(copy->source) || !runs_over(*loop, copy->source.buffer) ||
        ir::accesses_any(body_[at + 1], sharing_))
      return;
    const ir::Store* store = last_store(loop->body);
    if (store == nullptr || store->buffer != copy->source.buffer || !is_point(store->indices, *loop)) return;
    if (is_used_after(at + 2, copy->source.buffer) || reads(loop->body, copy->destination.buffer)) return;
    const ir::Stmt fused = StoreReplacer(*copy, *loop).rewrite(body_[at]);
    body_[at] = fused;
    body_[at + 1] = nullptr;
  }

  bool is_used_after(size_t from, const ir::Buffer& buffer) const {
    for (size_t k = from; k < body_.size(); ++k)
      if (body_[k] && uses_by_kind(body_[k]).contains(buffer.get())) return true;
    return false;
  }

  static bool reads(const ir::Stmt& body, const ir::Buffer& buffer) {
    const UseMap uses = uses_by_kind(body);
    const auto found = uses.find(buffer.get());
    return found != uses.end() && found->second.loads > 0;
  }
};

}  // namespace

ir::Kernel fuse_copies(const ir::Kernel& kernel) { return Fuser(kernel).run(); }

}  // namespace tilepilot::targets::cpu
