#include "compiler/targets/gpu/layout/normalize.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/ir/effects.h"
#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/search.h"
#include "compiler/passes/element_form.h"
#include "compiler/targets/gpu/facts/conflicting_updates.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/dynamic_registers.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/parallel_scans.h"
#include "compiler/targets/gpu/layout/partial_results.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Region;
using ir::Scope;
using ir::Stmt;

namespace {

// A copy or fill as a loop that all threads share.
Stmt as_loop(const Stmt& stmt) {
  const auto form = passes::box_form(stmt);
  if (!form) return nullptr;
  ir::For loop{ir::LoopKind::parallel, form->vars, {}, 0, block(form->body, stmt->span)};
  for (const int64_t extent : form->extents) loop.extents.push_back(ir::int_imm(extent));
  if (loop.vars.empty()) {
    loop.vars.push_back(ir::make_var("once", ir::kInt32));
    loop.extents.push_back(ir::int_imm(1));
  }
  return ir::make_stmt(std::move(loop), stmt->span);
}

Stmt copy_loop(const Region& from, const Region& to, Span span) {
  return as_loop(ir::make_stmt(ir::Copy{from, to, {}}, span));
}

// Copies a slice of two whole buffers: held where it belongs, so that every thread looks at what it holds.
Stmt copy_slice(const Region& from, const Region& to, const Slice& slice, Span span) {
  const Stmt copy = copy_loop(from, to, span);
  ir::For loop = *ir::as<ir::For>(copy);
  const auto& store = *ir::as<ir::Store>(ir::statements(loop.body)[0]);
  Expr inside;
  for (size_t axis = 0; axis < slice.size(); ++axis) {
    if (!slice[axis]) continue;
    const ir::DType type = ir::promote(store.indices[axis]->type, slice[axis]->type);
    inside = both(inside,
                  ir::binary(ir::BinaryOp::eq, ir::cast(store.indices[axis], type), ir::cast(slice[axis], type), span));
  }
  if (inside) loop.body = ir::make_stmt(ir::If{inside, loop.body, nullptr}, span);
  return ir::make_stmt(std::move(loop), span);
}

// The one axis of the loop that does not choose among the fragment's elements, if the others are its axes in order.
std::optional<size_t> reduced_axis(const ir::For& loop, const ir::Region& element) {
  if (loop.vars.size() != element.start.size() + 1) return std::nullopt;
  std::optional<size_t> reduced;
  for (size_t axis = 0; axis < loop.vars.size(); ++axis) {
    const auto extent = ir::constant_int(loop.extents[axis]);
    if (!extent) return std::nullopt;
    const size_t own = axis - (reduced ? 1 : 0);
    const auto* var = own < element.start.size() ? ir::as<ir::VarRef>(element.start[own]) : nullptr;
    if (var != nullptr && var->var == loop.vars[axis] && ir::constant_int(element.buffer->shape[own]) == extent)
      continue;
    if (reduced) return std::nullopt;
    reduced = axis;
  }
  return reduced;
}

class Normalizer : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  // `layouts`: which fragments the program lays out itself.
  Normalizer(std::vector<Buffer>& allocations, const std::vector<ir::RequestedLayout>& layouts)
      : allocations_(allocations), layouts_(layouts) {}

  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* copy = ir::as<ir::Copy>(stmt)) return rewrite_copy(stmt, *copy);
    if (const auto* fill = ir::as<ir::Fill>(stmt)) return rewrite_fill(stmt, *fill);
    if (const auto* gemm = ir::as<ir::Gemm>(stmt)) return rewrite_gemm(stmt, *gemm);
    if (const auto* reduce = ir::as<ir::Reduce>(stmt)) return rewrite_reduce(stmt, *reduce);
    if (const auto* loop = ir::as<ir::For>(stmt); loop && loop->kind == ir::LoopKind::parallel)
      return rewrite_parallel(stmt);
    return rewrite_children(stmt);
  }

 private:
  std::vector<Buffer>& allocations_;
  const std::vector<ir::RequestedLayout>& layouts_;

  Region temporary(const Region& like, Scope scope) {
    ir::BufferData data{like.buffer->name + (scope == Scope::fragment ? "_held" : "_tile"),
                        like.buffer->type,
                        scope,
                        {},
                        {},
                        like.span};
    for (const int64_t extent : like.extent) data.shape.push_back(ir::int_imm(extent));
    allocations_.push_back(std::make_shared<ir::BufferData>(std::move(data)));
    return whole(allocations_.back(), like.span);
  }

  Stmt rewrite_parallel(const Stmt& stmt) {
    if (is_async_gather(stmt)) return stmt;
    const Stmt updating = with_atomic_updates(over_held_elements(stmt));
    const auto& loop = *ir::as<ir::For>(updating);
    if (const Stmt serial = in_turn(updating); serial != updating) {
      std::vector<Buffer> fragments;
      for (const passes::Update& update : updates_in_turn(updating))
        if (update.buffer->scope == Scope::fragment) fragments.push_back(update.buffer);
      return through_tiles(serial, fragments);
    }
    if (const Stmt reduction = as_reduction(updating, loop)) return reduction;
    const std::vector<Buffer> joint = jointly_updated_fragments(loop);
    if (const Stmt parts = joint.empty() ? nullptr : with_partial_results(updating, allocations_))
      return rewrite(parts);
    // Where the program says who holds what, each thread may have the elements that it updates (layout_conflicts.h).
    const bool is_told = std::all_of(joint.begin(), joint.end(), [&](const Buffer& fragment) {
      return std::any_of(layouts_.begin(), layouts_.end(), [&](const auto& each) { return each.buffer == fragment; });
    });
    return is_told ? rewrite_children(updating) : through_tiles(updating, joint);
  }

  // The fragments lie in shared memory meanwhile.
  Stmt through_tiles(const Stmt& stmt, const std::vector<Buffer>& fragments) {
    std::vector<Stmt> all, after;
    ir::Replacements by;
    for (const Buffer& fragment : fragments) {
      if (by.contains(fragment.get())) continue;
      const Buffer tile = ir::as_shared(fragment, by);
      allocations_.push_back(tile);
      by.emplace(fragment.get(), tile);
      const Region held = whole(fragment, stmt->span), there = whole(tile, stmt->span);
      all.push_back(copy_loop(held, there, stmt->span));
      after.push_back(copy_loop(there, held, stmt->span));
    }
    all.push_back(ir::replace_buffers(rewrite_children(stmt), by));
    all.insert(all.end(), after.begin(), after.end());
    return block(std::move(all), stmt->span);
  }

  // Threads hold copies of a fragment's element, and each would add what it has to its own. Null: no such update.
  Stmt as_reduction(const Stmt& stmt, const ir::For& loop) {
    Stmt body = loop.body;
    for (const auto* only = ir::as<ir::Block>(body); only && only->body.size() == 1; only = ir::as<ir::Block>(body))
      body = only->body[0];
    const auto* atomic = ir::as<ir::Atomic>(body);
    if (atomic == nullptr || atomic->previous || atomic->element.buffer->scope != Scope::fragment) return nullptr;
    const auto op = reduction_of(atomic->op);
    const auto axis = reduced_axis(loop, atomic->element);
    if (!op || !axis) return nullptr;
    Region parts = atomic->element;
    parts.extent.clear();
    std::vector<Expr> at;
    for (size_t k = 0; k < loop.vars.size(); ++k) {
      parts.extent.push_back(*ir::constant_int(loop.extents[k]));
      at.push_back(ir::var_ref(loop.vars[k]));
    }
    const Region held = temporary(parts, Scope::fragment);
    ir::For each = loop;
    each.body = block({ir::make_stmt(ir::Store{held.buffer, at, atomic->value}, body->span)}, body->span);
    const Region all = whole(atomic->element.buffer, stmt->span);
    return block({ir::make_stmt(std::move(each), stmt->span),
                  ir::make_stmt(ir::Reduce{*op, held, all, static_cast<int>(*axis), false}, stmt->span)},
                 stmt->span);
  }

  Stmt rewrite_copy(const Stmt& stmt, const ir::Copy& copy) {
    if (copy.mode != ir::CopyMode::complete || copy.peer) return stmt;
    if (copy.source.buffer != copy.destination.buffer) return as_loop(stmt);
    const Region between = temporary(copy.source, Scope::fragment);  // boxes of one buffer may overlap
    return block({copy_loop(copy.source, between, stmt->span), copy_loop(between, copy.destination, stmt->span)},
                 stmt->span);
  }

  Stmt rewrite_fill(const Stmt& stmt, const ir::Fill& fill) {
    if (!ir::has_loads(fill.value)) return as_loop(stmt);
    const ir::Var value = ir::make_var("value", fill.value->type);
    const Stmt let = ir::make_stmt(ir::Let{value, fill.value}, stmt->span);
    return block({let, as_loop(ir::make_stmt(ir::Fill{fill.destination, ir::var_ref(value)}, stmt->span))}, stmt->span);
  }

  // Neither a fragment nor shared memory: into a shared tile first.
  void fetch(Region& operand, std::vector<Stmt>& before, Span span) {
    if (operand.buffer->scope == Scope::fragment || operand.buffer->scope == Scope::shared) return;
    const Region tile = temporary(operand, Scope::shared);
    before.push_back(copy_loop(operand, tile, span));
    operand = tile;
  }

  Stmt rewrite_gemm(const Stmt& stmt, const ir::Gemm& gemm) {
    ir::Gemm result = gemm;
    std::vector<Stmt> all;
    fetch(result.a, all, stmt->span);
    fetch(result.b, all, stmt->span);
    const bool held = gemm.c.buffer->scope == Scope::fragment && is_whole(gemm.c);
    if (held && all.empty()) return stmt;
    if (!held) {
      result.c = temporary(gemm.c, Scope::fragment);
      if (!gemm.clear_accumulator) all.push_back(copy_loop(gemm.c, result.c, stmt->span));
    }
    result.asynchronous = false;
    const Region c = result.c;
    all.push_back(ir::make_stmt(std::move(result), stmt->span));
    if (!held) all.push_back(copy_loop(c, gemm.c, stmt->span));
    return block(std::move(all), stmt->span);
  }

  Stmt rewrite_reduce(const Stmt& stmt, const ir::Reduce& reduce) {
    ir::Reduce result = reduce;
    std::vector<Stmt> all;
    const bool from_held = reduce.source.buffer->scope == Scope::fragment && is_whole(reduce.source);
    const bool to_held = reduce.destination.buffer->scope == Scope::fragment && is_whole(reduce.destination) &&
                         reduce.destination.buffer != reduce.source.buffer;
    if (from_held && to_held) return stmt;
    if (!from_held) {
      result.source = temporary(reduce.source, Scope::fragment);
      all.push_back(copy_loop(reduce.source, result.source, stmt->span));
    }
    if (!to_held) {
      result.destination = temporary(reduce.destination, Scope::fragment);
      if (!reduce.clear) all.push_back(copy_loop(reduce.destination, result.destination, stmt->span));
    }
    const Region to = result.destination;
    all.push_back(ir::make_stmt(std::move(result), stmt->span));
    if (!to_held) all.push_back(copy_loop(to, reduce.destination, stmt->span));
    return block(std::move(all), stmt->span);
  }
};

class Stager : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Stager(const std::vector<Inference::Conflict>& conflicts, const ir::Kernel& kernel, std::vector<Buffer>& allocations)
      : conflicts_(conflicts), layouts_(kernel.layouts), allocations_(allocations) {}

  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* loop = ir::as<ir::For>(stmt); loop && loop->kind != ir::LoopKind::parallel)
      return with_copies_before(rewrite_children(stmt));
    std::vector<Stmt> before, after;
    Stmt now = stmt;
    for (const Inference::Conflict& conflict : conflicts_) {
      if (conflict.stmt != stmt) continue;
      const bool by_shuffles = conflict.shuffles >= 0;
      const Buffer place = replacement(stmt, conflict.buffer, by_shuffles);
      now = ir::replace_buffers(now, {{conflict.buffer.get(), place}});
      const Region held = whole(conflict.buffer, stmt->span), there = whole(place, stmt->span);
      const auto copied = [&](const Region& from, const Region& to) {
        return by_shuffles ? ir::make_stmt(ir::Copy{from, to, {}}, stmt->span) : copy_loop(from, to, stmt->span);
      };
      // What a statement does not write need not have been written before either.
      const auto slice = by_shuffles ? std::nullopt : overwritten_slice(stmt, conflict.buffer);
      if (slice) {
        after.push_back(copy_slice(there, held, *slice, stmt->span));
        continue;
      }
      if (!overwrites(stmt, conflict.buffer)) {
        before.push_back(copied(held, there));
        staged_.emplace(before.back().get(), Staged{conflict.buffer, place});
        if (!reads_element(stmt, conflict.buffer)) needs_values(conflict.buffer);
      }
      if (writes_element(stmt, conflict.buffer)) after.push_back(copied(there, held));
    }
    if (now == stmt) return rewrite_children(stmt);
    if (const auto* gemm = ir::as<ir::Gemm>(now); gemm && gemm->asynchronous) {
      ir::Gemm waited = *gemm;  // for by the copies around it
      waited.asynchronous = false;
      now = ir::make_stmt(std::move(waited), now->span);
    }
    before.push_back(Normalizer(allocations_, layouts_).rewrite(now));
    before.insert(before.end(), after.begin(), after.end());
    return block(std::move(before), stmt->span);
  }

  // Fragments that are copied though nothing that the program reads may stand there yet.
  const std::vector<Buffer>& without_values() const { return without_values_; }

 private:
  const std::vector<Inference::Conflict>& conflicts_;
  const std::vector<ir::RequestedLayout>& layouts_;
  std::vector<Buffer>& allocations_;
  std::vector<Buffer> without_values_;
  // A copy for a statement that wants a fragment otherwise.
  struct Staged {
    Buffer held, place;
  };
  std::unordered_map<const ir::StmtNode*, Staged> staged_;

  // Copies of what the loop does not change stand before it.
  Stmt with_copies_before(const Stmt& stmt) const {
    const auto* given = ir::as<ir::For>(stmt);
    std::vector<Stmt> moved;
    const Stmt body = without_copies(given->body, given->body, moved);
    if (moved.empty()) return stmt;
    ir::For loop = *given;
    loop.body = body;
    moved.push_back(ir::make_stmt(std::move(loop), stmt->span));
    return block(std::move(moved), stmt->span);
  }
  Stmt without_copies(const Stmt& stmt, const Stmt& body, std::vector<Stmt>& moved) const {
    const auto* list = ir::as<ir::Block>(stmt);
    if (list == nullptr) return stmt;
    std::vector<Stmt> kept;
    for (const Stmt& part : list->body) {
      const auto found = staged_.find(part.get());
      const bool moves = found != staged_.end() && ir::count_writes(body, found->second.place.get()) == 1 &&
                         !ir::memory_effects_of(body).writes.contains(ir::memory_of(found->second.held));
      if (moves)
        moved.push_back(part);
      else
        kept.push_back(without_copies(part, body, moved));
    }
    return kept.size() == list->body.size() && moved.empty() ? stmt
                                                             : ir::make_stmt(ir::Block{std::move(kept)}, stmt->span);
  }

  void needs_values(const Buffer& buffer) {
    if (std::find(without_values_.begin(), without_values_.end(), buffer) == without_values_.end())
      without_values_.push_back(buffer);
  }

  Buffer replacement(const Stmt& stmt, const Buffer& buffer, bool by_shuffles) {
    const auto* gemm = ir::as<ir::Gemm>(stmt);
    const auto* reduce = ir::as<ir::Reduce>(stmt);
    const bool held =
        by_shuffles || (reduce && reduce->destination.buffer == buffer) || (gemm && gemm->c.buffer == buffer);
    ir::BufferData data{buffer->name + (held ? "_held" : "_tile"),
                        buffer->type,
                        held ? Scope::fragment : Scope::shared,
                        buffer->shape,
                        {},
                        buffer->span};
    allocations_.push_back(std::make_shared<ir::BufferData>(std::move(data)));
    return allocations_.back();
  }
};

}  // namespace

ir::Kernel normalize(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = with_parallel_scans(kernel, result.allocations);
  result.body = Normalizer(result.allocations, kernel.layouts).rewrite(result.body);
  return result;
}

ir::Kernel stage_conflicts(const ir::Kernel& kernel, const std::vector<Inference::Conflict>& conflicts) {
  ir::Kernel result = kernel;
  Stager stager(conflicts, kernel, result.allocations);
  std::vector<Stmt> all{stager.rewrite(kernel.body)};
  for (const Buffer& fragment : stager.without_values()) {
    const Span span = fragment->span;
    const Stmt fill = ir::make_stmt(ir::Fill{whole(fragment, span), ir::cast(ir::int_imm(0), fragment->type)}, span);
    all.insert(all.begin(), as_loop(fill));
  }
  result.body = block(std::move(all), kernel.body->span);
  return result;
}

}  // namespace tilepilot::targets::gpu
