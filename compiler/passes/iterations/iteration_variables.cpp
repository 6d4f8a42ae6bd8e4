#include "compiler/passes/iterations/iteration_variables.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/search.h"
#include "compiler/passes/iterations/definite_assignment.h"
#include "compiler/passes/iterations/iteration_conflicts.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr size_t kMostOfChoice = 6;  // stores, of which each may repeat the values of those before

bool is_parallel(const Stmt& stmt) {
  const auto* loop = as<For>(stmt);
  return loop != nullptr && loop->kind == LoopKind::parallel;
}

bool has_one_iteration(const For& loop) {
  return std::all_of(loop.extents.begin(), loop.extents.end(), [](const Expr& e) { return constant_int(e) == 1; });
}

// What a kernel's parallel loops do with local memory.
class Locals {
 public:
  explicit Locals(const Kernel& kernel) {
    for (const Buffer& buffer : kernel.allocations) {
      if (buffer->scope != Scope::local) continue;
      names_[memory_of(buffer)].push_back(buffer);
      if (!buffer->base) memory_.push_back(buffer);
    }
    place(kernel.body, nullptr);
  }

  const std::vector<Stmt>& loops() const { return loops_; }
  // Memory that the loop writes: the buffer that is no view.
  const std::vector<Buffer>& written(const Stmt& loop) const { return uses_.at(loop.get()).written; }
  bool has_views(const Buffer& memory) const { return names_.at(memory.get()).size() > 1; }
  const std::vector<Buffer>& names(const Buffer& memory) const { return names_.at(memory.get()); }
  // Whether one statement alone names it.
  bool has_one_user(const Buffer& memory) const { return users_.at(memory.get()).size() == 1; }

  bool is_carried(const Stmt& loop, const Buffer& memory) const {
    return uses_.at(loop.get()).carried.count(memory.get()) > 0;
  }
  bool is_own(const Stmt& loop, const Buffer& memory) const {
    return !is_carried(loop, memory) && !is_read_after(loop, memory);
  }
  // Whether the order of iterations shows: in what one reads, or in which of them writes an element last.
  bool is_sequential(const Stmt& loop, const Buffer& memory) const {
    return is_carried(loop, memory) || (is_read_after(loop, memory) && elements_conflict(*as<For>(loop), memory));
  }

 private:
  struct Uses {
    std::vector<Buffer> written;
    std::set<const BufferData*> carried;       // read before it is written, or not sure
    size_t end = 0;                            // the place behind the loop
    size_t around = SIZE_MAX, around_end = 0;  // the outermost loop around it
  };
  std::vector<Buffer> memory_;
  std::unordered_map<const BufferData*, std::vector<Buffer>> names_;
  std::vector<Stmt> loops_;
  std::unordered_map<const StmtNode*, Uses> uses_;
  std::unordered_map<const BufferData*, std::vector<size_t>> reads_;  // places where the value before counts
  std::unordered_map<const BufferData*, std::set<size_t>> users_;     // places of statements that name it
  size_t next_ = 0;                                                   // place of a statement

  void note(const BufferData* memory, size_t at, bool reads) {
    users_[memory].insert(at);
    if (reads) reads_[memory].push_back(at);
  }

  // `around`: the outermost loop around the statement, and where it begins.
  void place(const Stmt& stmt, std::vector<Uses*>* inside) {
    const size_t at = next_++;
    if (is_parallel(stmt)) {
      Uses& uses = add_loop(stmt, at);
      uses.end = next_;
      if (inside != nullptr) inside->push_back(&uses);
      return;
    }
    const auto on_effect = [&](const Buffer& buffer, bool writes) {
      if (buffer->scope == Scope::local) note(memory_of(buffer), at, !writes);
    };
    if (bodies_of(stmt).empty()) return each_effect(stmt, on_effect);
    if (const auto* choice = as<If>(stmt)) each_effect(choice->condition, on_effect);
    if (const auto* loop_while = as<While>(stmt)) each_effect(loop_while->condition, on_effect);
    if (const auto* loop = as<For>(stmt))
      for (const Expr& extent : loop->extents) each_effect(extent, on_effect);
    const bool outermost = inside == nullptr && (as<For>(stmt) || as<While>(stmt));
    std::vector<Uses*> found;
    for (const Stmt& body : bodies_of(stmt)) place(body, outermost ? &found : inside);
    for (Uses* uses : found) {
      uses->around = at;
      uses->around_end = next_;
    }
  }

  static std::vector<Stmt> bodies_of(const Stmt& stmt) {
    std::vector<Stmt> result;
    if (const auto* n = as<Block>(stmt)) result = n->body;
    if (const auto* n = as<For>(stmt)) result = {n->body};
    if (const auto* n = as<While>(stmt)) result = {n->body};
    if (const auto* n = as<Roles>(stmt)) result = {n->body};
    if (const auto* n = as<If>(stmt)) {
      result = {n->then};
      if (n->otherwise) result.push_back(n->otherwise);
    }
    if (const auto* n = as<Concurrent>(stmt))
      for (const Concurrent::Role& role : n->roles) result.push_back(role.body);
    return result;
  }

  Uses& add_loop(const Stmt& stmt, size_t at) {
    loops_.push_back(stmt);
    Uses& uses = uses_[stmt.get()];
    const Effects effects = memory_effects_of(stmt);
    for (const Buffer& memory : memory_) {
      const bool writes = effects.writes.count(memory.get()) > 0;
      if (!writes && effects.reads.count(memory.get()) == 0) continue;
      const bool carried = !writes || !writes_before_reading(*as<For>(stmt), memory);
      note(memory.get(), at, carried);
      if (carried) uses.carried.insert(memory.get());
      if (writes) uses.written.push_back(memory);
    }
    return uses;
  }

  // Where extents are known at launch alone, threads share out the loop anyhow, each with an array of its own.
  static bool elements_conflict(const For& loop, const Buffer& memory) {
    const IterationSpace space(loop);
    bool conflict = !std::all_of(loop.extents.begin(), loop.extents.end(),
                                 [](const Expr& e) { return constant_int(e).has_value(); });
    walk(
        loop.body,
        [&](const Stmt& part) {
          const auto* store = as<Store>(part);
          const bool plain = store != nullptr && store->buffer == memory;
          if (plain) conflict = conflict || space.may_conflict(store->indices);
          if (!plain) each_own_effect(part, [&](const Buffer& b, bool) { conflict |= memory_of(b) == memory.get(); });
        },
        [](const Expr&) {});
    return conflict;
  }

  bool is_read_after(const Stmt& loop, const Buffer& memory) const {
    const Uses& uses = uses_.at(loop.get());
    const auto reads = reads_.find(memory.get());
    if (reads == reads_.end()) return false;
    return std::any_of(reads->second.begin(), reads->second.end(),
                       [&](size_t at) { return at >= uses.end || (at >= uses.around && at < uses.around_end); });
  }
};

// The stores of scalars as definitions, where they are plain to see: in the body itself, or in a condition that does
// nothing else.
class Definitions {
 public:
  Definitions(const Stmt& body, std::vector<Buffer> scalars) {
    flatten(body, statements_);
    for (const Buffer& scalar : scalars) scalars_.insert(scalar.get());
    for (size_t before = scalars_.size() + 1; before != scalars_.size();) {
      before = scalars_.size();
      for (const Stmt& stmt : statements_) check(stmt);
    }
  }

  const std::unordered_set<const BufferData*>& scalars() const { return scalars_; }

  Stmt body(Span span) {
    std::vector<Stmt> result;
    for (const Stmt& stmt : statements_) add(stmt, result);
    return make_stmt(Block{std::move(result)}, span);
  }

 private:
  using Values = std::map<const BufferData*, Expr>;

  class Forward : public Rewriter {
   public:
    explicit Forward(const Values& values) : values_(values) {}
    using Rewriter::rewrite;
    Expr rewrite(const Expr& expr) override {
      const auto* load = as<Load>(expr);
      const auto value = load ? values_.find(load->buffer.get()) : values_.end();
      return value == values_.end() ? rewrite_children(expr) : value->second;
    }

   private:
    const Values& values_;
  };

  std::vector<Stmt> statements_;
  std::unordered_set<const BufferData*> scalars_;
  Values values_;

  static void flatten(const Stmt& stmt, std::vector<Stmt>& out) {
    const auto* block = as<Block>(stmt);
    if (block == nullptr) return out.push_back(stmt);
    for (const Stmt& part : block->body) flatten(part, out);
  }

  const Store* store_of_scalar(const Stmt& stmt) const {
    const auto* store = as<Store>(stmt);
    return store != nullptr && scalars_.count(store->buffer.get()) > 0 ? store : nullptr;
  }

  bool is_choice(const Stmt& stmt) const {
    const auto* choice = as<If>(stmt);
    if (choice == nullptr) return false;
    std::vector<Stmt> parts;
    flatten(choice->then, parts);
    if (choice->otherwise) flatten(choice->otherwise, parts);
    return parts.size() <= kMostOfChoice &&
           std::all_of(parts.begin(), parts.end(), [&](const Stmt& part) { return store_of_scalar(part) != nullptr; });
  }

  // Takes away the scalars that this statement stores otherwise, or touches as a place in memory.
  void check(const Stmt& stmt) {
    if (as<Store>(stmt) || is_choice(stmt)) return;
    walk(
        stmt,
        [&](const Stmt& part) {
          each_own_effect(part, [&](const Buffer& buffer, bool) { scalars_.erase(buffer.get()); });
        },
        [](const Expr&) {});
  }

  Expr forwarded(const Expr& expr) const { return Forward(values_).rewrite(expr); }

  void define(const Buffer& buffer, const Expr& value, Span span, std::vector<Stmt>& out) {
    const Var var = make_var(buffer->name, buffer->type);
    out.push_back(make_stmt(Let{var, value}, span));
    values_[buffer.get()] = var_ref(var, span);
  }

  void add(const Stmt& stmt, std::vector<Stmt>& out) {
    if (const Store* store = store_of_scalar(stmt))
      return define(store->buffer, forwarded(store->value), stmt->span, out);
    if (const auto* choice = as<If>(stmt); choice != nullptr && is_choice(stmt) && !is_empty(*choice))
      return add_choice(*choice, stmt->span, out);
    out.push_back(Forward(values_).rewrite(stmt));
  }

  static bool is_empty(const If& choice) {
    std::vector<Stmt> parts;
    flatten(choice.then, parts);
    if (choice.otherwise) flatten(choice.otherwise, parts);
    return parts.empty();
  }

  // What a side gives to the scalars, in terms of what was before.
  Values side(const Stmt& body, std::vector<Buffer>& stored) const {
    std::vector<Stmt> parts;
    if (body) flatten(body, parts);
    Values values = values_;
    for (const Stmt& part : parts) {
      const Store& store = *as<Store>(part);
      values[store.buffer.get()] = Forward(values).rewrite(store.value);
      if (std::find(stored.begin(), stored.end(), store.buffer) == stored.end()) stored.push_back(store.buffer);
    }
    return values;
  }

  void add_choice(const If& choice, Span span, std::vector<Stmt>& out) {
    const Var condition = make_var("condition", kBool);
    out.push_back(make_stmt(Let{condition, forwarded(choice.condition)}, span));
    std::vector<Buffer> stored;
    const Values then = side(choice.then, stored), otherwise = side(choice.otherwise, stored);
    for (const Buffer& buffer : stored) {
      // One that only one side gives a value is read only where that side was taken.
      const auto value = [&](const Values& values) {
        const auto found = values.find(buffer.get());
        return found == values.end() ? cast(int_imm(0), buffer->type) : found->second;
      };
      define(buffer, select(var_ref(condition), value(then), value(otherwise), span), span, out);
    }
  }
};

class IterationVariables : public Rewriter {
 public:
  IterationVariables(const Kernel& kernel, LoopKind innermost) : locals_(kernel), innermost_(innermost) {}
  using Rewriter::rewrite;

  Kernel run(const Kernel& kernel) {
    Kernel result = kernel;
    result.body = rewrite(kernel.body);
    if (result.body == kernel.body) return kernel;
    result.allocations.insert(result.allocations.end(), fresh_.begin(), fresh_.end());
    BufferSet used;
    for (const Buffer& buffer : result.allocations)
      if (buffer->base) used.insert(memory_of(buffer));
    const Effects effects = memory_effects_of(result.body);
    std::erase_if(result.allocations, [&](const Buffer& buffer) {
      return buffer->scope == Scope::local && used.count(buffer.get()) == 0 &&
             effects.reads.count(memory_of(buffer)) == 0 && effects.writes.count(memory_of(buffer)) == 0 &&
             removed_.count(buffer.get()) > 0;
    });
    return result;
  }

  Stmt rewrite(const Stmt& stmt) override {
    if (!is_parallel(stmt)) return rewrite_children(stmt);
    const auto& loop = *as<For>(stmt);
    if (locals_.written(stmt).empty() || has_one_iteration(loop)) return stmt;
    for (const Buffer& memory : locals_.written(stmt))
      if (locals_.is_sequential(stmt, memory)) return as_sequence(loop, stmt->span);
    return with_own(stmt, loop);
  }

 private:
  const Locals locals_;
  const LoopKind innermost_;
  std::vector<Buffer> fresh_;
  BufferSet removed_;

  Stmt as_sequence(const For& loop, Span span) const {
    Stmt body = loop.body;
    for (size_t axis = loop.vars.size(); axis-- > 0;)
      body = make_stmt(For{axis + 1 == loop.vars.size() ? kind_of_innermost(body) : LoopKind::serial,
                           {loop.vars[axis]},
                           {loop.extents[axis]},
                           0,
                           body},
                       span);
    return make_stmt(For{LoopKind::parallel, {make_var("once", kInt32)}, {int_imm(1)}, 0, body}, span);
  }

  // Elements of half a byte are no matter of vectors.
  LoopKind kind_of_innermost(const Stmt& body) const {
    bool has_nibbles = false;
    each_effect(body, [&](const Buffer& buffer, bool) { has_nibbles |= buffer->type.is_nibble(); });
    return has_nibbles || contains<Break, Continue>(body) ? LoopKind::serial : innermost_;
  }

  Stmt with_own(const Stmt& stmt, const For& loop) {
    std::vector<Buffer> scalars;
    for (const Buffer& memory : locals_.written(stmt)) {
      if (!locals_.is_own(stmt, memory)) continue;
      const bool one = std::all_of(memory->shape.begin(), memory->shape.end(),
                                   [](const Expr& extent) { return constant_int(extent) == 1; });
      if (one && !locals_.has_views(memory)) scalars.push_back(memory);
    }
    Definitions definitions(loop.body, scalars);
    Stmt body = loop.body;
    if (!definitions.scalars().empty()) body = definitions.body(loop.body->span);
    Replacements by;
    for (const Buffer& memory : locals_.written(stmt)) {
      if (!locals_.is_own(stmt, memory)) continue;
      removed_.insert(memory.get());
      if (definitions.scalars().count(memory.get()) > 0 || locals_.has_one_user(memory)) continue;
      rename(memory, by);
    }
    if (!by.empty()) body = replace_buffers(body, by);
    if (body == loop.body) return stmt;
    For result = loop;
    result.body = body;
    return make_stmt(std::move(result), stmt->span);
  }

  // Each loop has an array of its own.
  void rename(const Buffer& memory, Replacements& by) {
    const auto add = [&](const Buffer& buffer) {
      removed_.insert(buffer.get());
      BufferData data = *buffer;
      if (data.base) data.base = by.at(data.base.get());
      fresh_.push_back(std::make_shared<BufferData>(std::move(data)));
      by.emplace(buffer.get(), fresh_.back());
    };
    add(memory);
    for (const Buffer& name : locals_.names(memory))
      if (name != memory) add(name);
  }
};

}  // namespace

Program iteration_variables(const Program& program, LoopKind innermost) {
  Program result = program;
  for (Kernel& kernel : result.kernels) kernel = IterationVariables(kernel, innermost).run(kernel);
  return result;
}

std::vector<SequentialVariable> sequential_variables(const Kernel& kernel) {
  const Locals locals(kernel);
  std::vector<SequentialVariable> result;
  for (const Stmt& loop : locals.loops()) {
    if (has_one_iteration(*as<For>(loop))) continue;
    for (const Buffer& memory : locals.written(loop))
      if (locals.is_sequential(loop, memory)) result.push_back({memory, loop, locals.is_carried(loop, memory)});
  }
  return result;
}

}  // namespace tilepilot::passes
