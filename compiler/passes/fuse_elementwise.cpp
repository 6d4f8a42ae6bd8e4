#include "compiler/passes/fuse_elementwise.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/element_form.h"
#include "compiler/passes/tile_liveness.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return structurally_equal(x, y); });
}

// The accesses of one buffer.
struct Use {
  bool stores = false;
  bool at_one_place = true;  // all with the same indices
  std::vector<Expr> indices;
};

using Uses = std::map<Buffer, Use>;

void add_uses(Uses& uses, const std::vector<Stmt>& body) {
  for (const ElementAccess& access : accesses(body)) {
    const auto [entry, fresh] = uses.try_emplace(access.buffer, Use{false, true, access.indices});
    Use& use = entry->second;
    use.stores |= access.is_store;
    use.at_one_place &= fresh || same_indices(use.indices, access.indices);
  }
}

Uses uses_of(const std::vector<Stmt>& body) {
  Uses result;
  add_uses(result, body);
  return result;
}

std::unordered_set<const VarData*> definitions(const std::vector<Stmt>& body) {
  std::unordered_set<const VarData*> result;
  for (const Stmt& s : body) {
    walk(
        s,
        [&](const Stmt& part) {
          if (const Var var = bound_variable(*part)) result.insert(var.get());
        },
        [](const Expr&) {});
  }
  return result;
}

bool share_definitions(const ElementForm& a, const ElementForm& b) {
  const auto first = definitions(a.body), second = definitions(b.body);
  return std::any_of(second.begin(), second.end(), [&](const VarData* v) { return first.count(v) > 0; });
}

bool same_box(const ElementForm& a, const ElementForm& b) {
  return a.extents == b.extents && std::equal(a.vars.begin(), a.vars.end(), b.vars.begin(), b.vars.end(),
                                              [](const Var& x, const Var& y) { return x->type == y->type; });
}

// A run of statements joined so far.
class Group {
 public:
  explicit Group(ElementForm first) : vars_(first.vars) { forms_.push_back(std::move(first)); }

  size_t size() const { return forms_.size(); }
  void shorten(size_t size) { forms_.resize(size); }

  // Adds the statement if it may run element by element with the ones before.
  bool add(const ElementForm& next) {
    if (!same_box(forms_[0], next)) return false;
    ElementForm renamed = over_variables(next, vars_);
    const Uses own = uses_of(renamed.body);
    for (const ElementForm& form : forms_) {
      if (share_definitions(form, renamed) || !independent(uses_of(form.body), own)) return false;
    }
    forms_.push_back(std::move(renamed));
    return true;
  }

  std::vector<Stmt> body() const {
    std::vector<Stmt> result;
    for (const ElementForm& form : forms_) result.insert(result.end(), form.body.begin(), form.body.end());
    return result;
  }

  // Tiles that need no memory any more, if `is_dead` of them after the run.
  template <class IsDead>
  std::vector<Buffer> removable(IsDead is_dead) const {
    std::vector<Buffer> result;
    for (const auto& [buffer, use] : uses_of(body())) {
      const bool simple = use.stores && use.at_one_place && separates_elements(use.indices, forms_[0]);
      if (buffer->scope != Scope::global && simple && stored_unconditionally(buffer) && is_dead(buffer)) {
        result.push_back(buffer);
      }
    }
    return result;
  }

  // The first copy or fill that reads or writes no tile of these.
  size_t first_stranger(const std::vector<Buffer>& tiles) const {
    for (size_t k = 0; k < forms_.size(); ++k) {
      if (forms_[k].is_loop) continue;
      const Uses uses = uses_of(forms_[k].body);
      const bool own = std::any_of(tiles.begin(), tiles.end(), [&](const Buffer& b) { return uses.count(b) > 0; });
      if (!own) return k;
    }
    return forms_.size();
  }

  Stmt loop(std::vector<Stmt> statements, Span span) const {
    For result{LoopKind::parallel, vars_, {}, 0, make_stmt(Block{std::move(statements)}, span)};
    for (size_t k = 0; k < vars_.size(); ++k) result.extents.push_back(int_imm(forms_[0].extents[k], vars_[k]->type));
    return make_stmt(std::move(result), span);
  }

 private:
  std::vector<Var> vars_;
  std::vector<ElementForm> forms_;

  bool independent(const Uses& before, const Uses& after) const {
    for (const auto& [buffer, use] : after) {
      const auto earlier = before.find(buffer);
      if (earlier == before.end() || (!use.stores && !earlier->second.stores)) continue;
      const bool one_place = use.at_one_place && earlier->second.at_one_place;
      if (!one_place || !same_indices(use.indices, earlier->second.indices)) return false;
      if (!separates_elements(use.indices, forms_[0])) return false;
    }
    return true;
  }

  bool stored_unconditionally(const Buffer& tile) const {
    const auto is_store_of_it = [&](const Stmt& s) {
      const auto* n = std::get_if<Store>(&s->node);
      return n && n->buffer == tile;
    };
    const std::vector<Stmt> statements = body();
    const auto top = std::count_if(statements.begin(), statements.end(), is_store_of_it);
    const auto all = accesses(statements);
    return top == std::count_if(all.begin(), all.end(),
                                [&](const ElementAccess& a) { return a.is_store && a.buffer == tile; });
  }
};

// Replaces the stores of tiles by definitions, and the loads that follow by the value defined last.
class Forwarding : public Rewriter {
 public:
  explicit Forwarding(const std::vector<Buffer>& tiles) : tiles_(tiles.begin(), tiles.end()) {}
  using Rewriter::rewrite;

  std::vector<Stmt> rewrite(const std::vector<Stmt>& body) {
    std::vector<Stmt> result;
    for (const Stmt& s : body) result.push_back(rewrite(s));
    return result;
  }

  Stmt rewrite(const Stmt& s) override {
    const auto* n = std::get_if<Store>(&s->node);
    if (!n || tiles_.count(n->buffer) == 0) return rewrite_children(s);
    const Expr value = rewrite(n->value);
    const Var fresh = make_var(n->buffer->name, n->buffer->type);
    values_[n->buffer] = fresh;
    return make_stmt(Let{fresh, value}, s->span);
  }

  Expr rewrite(const Expr& e) override {
    const auto* n = std::get_if<Load>(&e->node);
    const auto known = n ? values_.find(n->buffer) : values_.end();
    return known == values_.end() ? rewrite_children(e) : var_ref(known->second, e->span);
  }

 private:
  std::unordered_set<Buffer> tiles_;
  std::map<Buffer, Var> values_;
};

class Fusion : public Rewriter {
 public:
  using Rewriter::rewrite;

  Kernel rewrite(const Kernel& kernel) override {
    Kernel result = kernel;
    parents_ = {nullptr};
    sharing_ = sharing_buffers(kernel);
    add_buffers_of_roles(kernel.body);
    result.body = rewrite(kernel.body);
    if (result.body == kernel.body) return kernel;
    std::erase_if(result.allocations, [&](const Buffer& b) {
      return sharing_.count(b.get()) == 0 && !accesses_any(result.body, {b.get()});
    });
    return result;
  }

  Stmt rewrite(const Stmt& s) override {
    if (const auto* block = std::get_if<Block>(&s->node)) return rewrite_block(*block, s);
    // A body that is no block is a block of one.
    const std::vector<Stmt> alone = bare_body(s);
    if (!alone.empty()) {
      liveness_.enter(alone, s);
      liveness_.stand_before(1);
    }
    parents_.push_back(s);
    Stmt result = rewrite_children(s);
    parents_.pop_back();
    if (!alone.empty()) liveness_.leave();
    return result;
  }

 private:
  TileLiveness liveness_;
  std::unordered_set<const BufferData*> sharing_;
  std::vector<Stmt> parents_;  // of the statement at hand; null for the kernel

  // What a role leaves in a tile another one may read.
  void add_buffers_of_roles(const Stmt& body) {
    walk(
        body,
        [&](const Stmt& s) {
          if (!as<Concurrent>(s)) return;
          walk(
              s,
              [&](const Stmt& part) {
                const Accesses regions = region_accesses(part);
                for (const auto* list : {&regions.reads, &regions.writes})
                  for (const Region* r : *list) note_role_use(*r->buffer);
                if (const auto* n = as<Store>(part)) note_role_use(*n->buffer);
              },
              [](const Expr&) {});
        },
        [](const Expr&) {});
  }
  void note_role_use(const BufferData& buffer) {
    if (buffer.scope == Scope::shared) sharing_.insert(&buffer);
  }

  // The body of a loop where it is not a block; else empty.
  static std::vector<Stmt> bare_body(const Stmt& s) {
    Stmt body;
    if (const auto* n = std::get_if<For>(&s->node)) body = n->body;
    if (const auto* n = std::get_if<While>(&s->node)) body = n->body;
    if (!body || std::holds_alternative<Block>(body->node)) return {};
    return {body};
  }

  // Statements on memory with two names are left alone.
  std::optional<ElementForm> form_of(const Stmt& s) const {
    return accesses_any(s, sharing_) ? std::nullopt : element_form(s);
  }

  Stmt rewrite_block(const Block& block, const Stmt& s) {
    liveness_.enter(block.body, parents_.back());
    parents_.push_back(s);
    Block fresh;
    for (size_t at = 0; at < block.body.size();) {
      size_t taken = 1;
      Stmt fused = fuse_from(block.body, at, taken);
      liveness_.stand_before(at + taken);
      fresh.body.push_back(fused ? fused : rewrite(block.body[at]));
      at += taken;
    }
    parents_.pop_back();
    liveness_.leave();
    return fresh.body == block.body ? s : make_stmt(std::move(fresh), s->span);
  }

  // The longest run from `at` that is worth joining, as one loop; else null.
  Stmt fuse_from(const std::vector<Stmt>& body, size_t at, size_t& taken) {
    auto first = form_of(body[at]);
    if (!first) return nullptr;
    Group group(*std::move(first));
    for (size_t k = at + 1; k < body.size(); ++k) {
      const auto next = form_of(body[k]);
      if (!next || !group.add(*next)) break;
    }
    while (group.size() > 1) {
      liveness_.stand_before(at + group.size());
      const auto tiles = group.removable([&](const Buffer& b) { return liveness_.is_dead(b); });
      const size_t stranger = group.first_stranger(tiles);
      if (tiles.empty()) return nullptr;
      if (stranger == group.size()) {
        taken = group.size();
        return group.loop(Forwarding(tiles).rewrite(group.body()), body[at]->span);
      }
      group.shorten(stranger);
    }
    return nullptr;
  }
};

}  // namespace

Program fuse_elementwise(const Program& program) { return Fusion().rewrite(program); }

}  // namespace tilepilot::passes
