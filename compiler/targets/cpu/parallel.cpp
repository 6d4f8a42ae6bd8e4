#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/emit.h"
#include "compiler/targets/cpu/lanes.h"
#include "compiler/targets/cpu/loops/hoist.h"
#include "compiler/targets/cpu/loops/index_lets.h"
#include "compiler/targets/cpu/loops/index_set_splitting.h"
#include "compiler/targets/cpu/loops/loop_body.h"
#include "compiler/targets/cpu/loops/private_buffers.h"
#include "compiler/targets/cpu/loops/reductions.h"

namespace tilepilot::targets::cpu {
namespace {

// Writes one loop nest over the dimensions, the last innermost.
class Nest {
 public:
  Nest(c::Context& context, std::vector<Dimension> dimensions)
      : context_(context), dimensions_(std::move(dimensions)) {}

  void emit_body(const ir::Stmt& body) {
    if (const auto parts = split(body); parts.size() > 1) {
      for (const ir::Stmt& part : parts) emit_one(part);
      return;
    }
    emit_one(body);
  }

 private:
  c::Context& context_;
  std::vector<Dimension> dimensions_;

  void emit_one(const ir::Stmt& body) {
    order_for(accesses_to_order_by(body), dimensions_);
    for (size_t k = 0; k + 1 < dimensions_.size(); ++k) open(dimensions_[k]);
    emit_innermost(body);
    for (size_t k = 0; k + 1 < dimensions_.size(); ++k) context_.body.close();
  }

  // Where a loop sums up, what it sums decides.
  std::vector<Access> accesses_to_order_by(const ir::Stmt& body) const {
    std::vector<Access> all = accesses(context_.facts, body);
    ir::BufferSet sums;
    for (const Dimension& dimension : dimensions_)
      if (dimensions_.size() > 1) sums.merge(buffers_of(find_reductions(context_, {dimension.var}, body)));
    std::vector<Access> others;
    for (Access& access : all)
      if (!sums.contains(access.buffer.get())) others.push_back(std::move(access));
    return others;
  }

  void open(const Dimension& dimension) {
    context_.body.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", context_.names.of(dimension.var),
                       factor(context_, dimension.extent));
  }

  // Serial loops inside go outside the innermost dimension, which then runs along memory: iterations are independent,
  // so their steps may be interleaved.
  void emit_innermost(const ir::Stmt& body) {
    const Dimension& inner = dimensions_.back();
    const ir::For* serial = only_loop(body);
    if (serial != nullptr && interchangeable(*serial)) {
      context_.wide.insert(serial->vars[0].get());
      open({serial->vars[0], serial->extents[0]});
      emit_innermost(serial->body);
      context_.body.close();
      return;
    }
    if (const ir::Store* store = streamed_store(body)) return emit_streamed(body, *store);
    if (emit_padded(body)) return;
    if (emit_reduced(body)) return;
    const std::string obstacle = obstacle_to_vectors(body, context_.iteration_private);
    if (obstacle.empty())
      context_.body.line("#pragma omp simd");
    else
      context_.note_scalar({flattened(body).front()->span, fmt::format("loop over `{}`", inner.var->name), obstacle});
    open(inner);
    declare_private_buffers(context_, body);
    emit(context_, body);
    context_.body.close();
  }

  // Elements that all iterations update, in variables of which each lane has one.
  bool emit_reduced(const ir::Stmt& body) {
    const Dimension& inner = dimensions_.back();
    const std::vector<Reduction> reductions = find_reductions(context_, {inner.var}, body);
    const bool may_be_empty = ir::constant_int(inner.extent).value_or(0) < 1;
    if (reductions.empty() || (may_be_empty && !std::all_of(reductions.begin(), reductions.end(), may_have_no_update)))
      return false;
    const ir::Stmt plain = with_plain_updates(body, reductions);
    ir::BufferSet own = buffers_of(reductions);
    own.insert(context_.iteration_private.begin(), context_.iteration_private.end());
    if (!obstacle_to_vectors(plain, own).empty()) return false;
    const ReductionVariables variables(context_, reductions, plain);
    context_.body.line("#pragma omp simd{}", variables.clauses());
    open(inner);
    declare_private_buffers(context_, plain);
    emit(context_, plain);
    context_.body.close();
    variables.store();
    return true;
  }

  // The body's only store, behind lets at most, if it writes neighbours of a large tensor and needs no check.
  const ir::Store* streamed_store(const ir::Stmt& body) const {
    const ir::Stmt* last = &body;
    while (const auto* block = std::get_if<ir::Block>(&(*last)->node)) {
      if (block->body.empty()) return nullptr;
      for (size_t k = 0; k + 1 < block->body.size(); ++k)
        if (!std::holds_alternative<ir::Let>(block->body[k]->node)) return nullptr;
      last = &block->body.back();
    }
    const auto* store = std::get_if<ir::Store>(&(*last)->node);
    if (store == nullptr || !c::is_streamed(store->buffer)) return nullptr;
    const ir::Var& var = dimensions_.back().var;
    const auto position = ir::affine(store->indices.back());
    const bool leading = mentions({store->indices.begin(), store->indices.end() - 1}, var);
    if (leading || !position || position->coefficient(var) != 1) return nullptr;
    const bool checked =
        !context_.proven.contains(last->get()) && !bounds_condition(context_, store->buffer, store->indices).empty();
    return checked ? nullptr : store;
  }

  // Rows of a large tensor, in pieces that are gathered and then stored at once.
  void emit_streamed(const ir::Stmt& body, const ir::Store& store) {
    context_.has_streams = true;
    const Dimension& inner = dimensions_.back();
    const ir::Var first = ir::make_var(inner.var->name + "0", ir::kInt64);
    context_.wide.insert(first.get());
    const std::string start = context_.names.of(first), var = context_.names.of(inner.var),
                      part = context_.names.fresh("part"), type = c::stored_type(store.buffer->type),
                      extent = factor(context_, inner.extent), end = context_.names.fresh("end");
    std::vector<ir::Expr> indices;
    for (const ir::Expr& index : store.indices)
      indices.push_back(ir::substitute(index, [&](const ir::Var& other) -> ir::Expr {
        return other == inner.var ? ir::cast(ir::var_ref(first), inner.var->type) : nullptr;
      }));
    context_.body.open("for (int64_t {0} = 0; {0} < {1}; {0} += stream_length)", start, extent);
    context_.body.line("alignas(64) {} {}[stream_length];", type, part);
    context_.body.line("const int64_t {} = min_of<int64_t>({} + stream_length, {});", end, start, extent);
    context_.body.line("#pragma omp simd");
    context_.body.open("for (int64_t {0} = {1}; {0} < {2}; ++{0})", var, start, end);
    context_.stream_target = fmt::format("{}[{} - {}]", part, var, start);
    emit(context_, body);
    context_.stream_target.clear();
    context_.body.close();
    context_.body.line("stream_run({}, {}, {} - {});", address(context_, store.buffer, indices), part, end, start);
    context_.body.close();
  }

  // Elements that come from elsewhere, but for a constant where a guard says so: the constant first, then the interval.
  bool emit_padded(const ir::Stmt& body) {
    const std::vector<ir::Stmt> all = flattened(body);
    const auto* store = all.size() == 1 ? std::get_if<ir::Store>(&all[0]->node) : nullptr;
    const auto* choice = store != nullptr ? std::get_if<ir::Select>(&store->value->node) : nullptr;
    if (choice == nullptr || context_.proven.contains(choice) ||
        !std::holds_alternative<ir::FloatImm>(choice->otherwise->node))
      return false;
    // What is written twice must be read by nothing here.
    const ir::Buffer& buffer = store->buffer;
    if (buffer->scope == ir::Scope::global || context_.sharing.contains(buffer.get()) ||
        count_uses(body).at(buffer.get()) != 1)
      return false;
    const Dimension& inner = dimensions_.back();
    const auto range = split_index_set(context_, choice->condition, inner.var, [](const ir::Var&) { return false; });
    if (!range || !mentions(store->indices, inner.var)) return false;
    const std::string extent = factor(context_, inner.extent);
    const auto [first, end] = write_range(context_, *range, {extent, ""});
    emit_interval("0", extent, {store->buffer, store->indices, choice->otherwise});
    const size_t assumed = context_.facts.assume(choice->condition);
    emit_interval(first, end, {store->buffer, store->indices, choice->then});
    context_.facts.forget(assumed);
    return true;
  }

  void emit_interval(const std::string& first, const std::string& end, ir::Store store) {
    context_.body.line("#pragma omp simd");
    context_.body.open("for (int64_t {0} = {1}; {0} < {2}; ++{0})", context_.names.of(dimensions_.back().var), first,
                       end);
    emit(context_, ir::make_stmt(std::move(store), {}));
    context_.body.close();
  }

  static const ir::For* only_loop(const ir::Stmt& body) {
    if (const auto* block = std::get_if<ir::Block>(&body->node))
      return block->body.size() == 1 ? only_loop(block->body[0]) : nullptr;
    return std::get_if<ir::For>(&body->node);
  }

  bool interchangeable(const ir::For& serial) const {
    if (serial.kind == ir::LoopKind::parallel) return false;
    // No private ones among them: a step may need what the step before left there. Sums are done in any order.
    std::vector<ir::Var> vars;
    for (const Dimension& dimension : dimensions_) vars.push_back(dimension.var);
    const std::vector<Reduction> reductions = find_reductions(context_, vars, serial.body);
    if (!stores_are_private(context_.facts, dimensions_, with_plain_updates(serial.body, reductions),
                            buffers_of(reductions)))
      return false;
    for (const Dimension& dimension : dimensions_)
      if (mentions(serial.extents, dimension.var)) return false;
    return !contains<ir::Break, ir::Continue>(serial.body);
  }

  // What keeps the innermost loop from vector code; empty: nothing does. `own`: what iterations do not share.
  std::string obstacle_to_vectors(const ir::Stmt& body, const ir::BufferSet& own) const {
    if (contains<ir::For, ir::While>(body)) return obstacle_of_loop(body);
    if (contains<ir::Atomic>(body)) return "it has an atomic operation";
    if (contains<ir::Barrier>(body)) return "it has a barrier";
    if (contains<ir::Check>(body)) return "it has an assertion";
    if (contains<ir::Print>(body)) return "it prints";
    for (const Access& access : accesses(context_.facts, body))
      if (access.is_store && !own.contains(access.buffer.get()) && !mentions(access.indices, dimensions_.back().var))
        return fmt::format("all its iterations write the same element of `{}`", access.buffer->name);
    const bool conflicts = updates_conflict({dimensions_.back()}, body, own);
    return conflicts ? "an iteration may read or write what another one writes" : "";
  }

  // Of a loop inside, which could not be moved outside.
  std::string obstacle_of_loop(const ir::Stmt& body) const {
    if (contains<ir::While>(body)) return "it has a `while` loop";
    if (contains<ir::Break, ir::Continue>(body)) return "it has a loop that ends early";
    const ir::For* serial = only_loop(body);
    if (serial == nullptr) return "it has a loop among other statements that could not be taken apart";
    for (const Dimension& dimension : dimensions_)
      if (mentions(serial->extents, dimension.var)) return "the loop inside it differs in length between iterations";
    return "an iteration of the loop inside it may read or write what another one writes";
  }

  // The body as groups that may each have a nest of their own: loops alone, the statements between them together. One
  // group if iterations share memory or carry values from one group to the next.
  std::vector<ir::Stmt> split(const ir::Stmt& body) const {
    const auto* block = std::get_if<ir::Block>(&body->node);
    if (block == nullptr || !contains_loop(body) || !stores_are_private(context_.facts, dimensions_, body))
      return {body};
    std::vector<ir::Stmt> groups;
    std::vector<ir::Stmt> straight;
    const auto flush = [&] {
      if (!straight.empty()) groups.push_back(ir::make_stmt(ir::Block{std::move(straight)}, body->span));
      straight.clear();
    };
    for (const ir::Stmt& stmt : block->body) {
      if (ir::bound_variable(*stmt)) return {body};
      if (!contains_loop(stmt)) {
        straight.push_back(stmt);
        continue;
      }
      flush();
      groups.push_back(stmt);
    }
    flush();
    return groups;
  }
};

// Marks nodes as proven for as long as it lives.
class ProvenScope {
 public:
  ProvenScope(c::Context& context, const std::vector<const void*>& nodes) : context_(context) {
    for (const void* node : nodes)
      if (context.proven.insert(node).second) added_.push_back(node);
  }
  ~ProvenScope() {
    for (const void* node : added_) context_.proven.erase(node);
  }
  ProvenScope(const ProvenScope&) = delete;

 private:
  c::Context& context_;
  std::vector<const void*> added_;
};

// Index arithmetic with a division that differs between iterations of the loop.
bool divides_per_iteration(const ir::Expr& value, const ir::For& loop) {
  bool divides = false;
  ir::walk(value, [&](const ir::Expr& part) {
    const auto* node = std::get_if<ir::Binary>(&part->node);
    if (node == nullptr || (node->op != ir::BinaryOp::floor_div && node->op != ir::BinaryOp::floor_mod)) return;
    for (const ir::Var& var : loop.vars) divides = divides || mentions(part, var);
  });
  return divides;
}

// Without the lets of index arithmetic; with `divisions`, also of those that divide per iteration.
ir::For freed_loop(const ir::For& loop, bool divisions) {
  ir::For result = loop;
  result.body = without_index_lets(
      loop.body, [&](const ir::Expr& value) { return !divisions && divides_per_iteration(value, loop); });
  return result;
}

// Twice where some checks hold for most blocks.
template <class Emit>
void emit_checked(c::Context& context, const ir::For& loop, const Emit& emit_body) {
  const HoistedChecks checks = hoist_checks(context, loop);
  // Nodes of copies that became loops do not outlive this call: no node stays in `proven`.
  const ProvenScope always(context, checks.always_proven);
  if (checks.conditions.empty()) return emit_body();
  context.body.open("if ({})", fmt::format("{}", fmt::join(checks.conditions, " && ")));
  {
    const ProvenScope here(context, checks.proven);
    emit_body();
  }
  context.body.reopen("else");
  emit_body();
  context.body.close();
}

// The lets of index arithmetic would tie loops inside together, and hide runs.
bool emit_as_lanes(c::Context& context, const ir::For& loop, const std::vector<Dimension>& dimensions) {
  for (const bool divisions : {true, false}) {
    if (!divisions && !contains_loop(loop.body)) return false;
    const ir::For freed = freed_loop(loop, divisions);
    const std::optional<Lanes> lanes = choose_lanes(context, dimensions, freed.body);
    if (!lanes || (divisions && lanes->plan.runs.parts().empty())) continue;
    emit_checked(context, freed, [&] { emit_lanes(context, *lanes, freed.body); });
    return true;
  }
  return false;
}

}  // namespace

void emit_parallel(c::Context& context, const ir::For& loop) {
  std::vector<Dimension> dimensions;
  for (size_t k = 0; k < loop.vars.size(); ++k) {
    context.wide.insert(loop.vars[k].get());
    context.facts.set_range(loop.vars[k], {0, std::max<int64_t>(context.facts.range(loop.extents[k]).hi, 1) - 1});
    dimensions.push_back({loop.vars[k], loop.extents[k]});
  }
  if (emit_as_lanes(context, loop, dimensions)) return;
  ir::For freed = contains_loop(loop.body) ? freed_loop(loop, true) : loop;
  if (!stores_are_private(context.facts, dimensions, freed.body)) freed = loop;
  emit_checked(context, freed, [&] { Nest(context, dimensions).emit_body(freed.body); });
}

}  // namespace tilepilot::targets::cpu
