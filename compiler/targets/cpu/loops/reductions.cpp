#include "compiler/targets/cpu/loops/reductions.h"

#include "compiler/ir/text/text.h"
#include "compiler/passes/iterations/iteration_conflicts.h"
#include "compiler/targets/c/expr.h"

namespace tilepilot::targets::cpu {
namespace {

struct Operation {
  ir::BinaryOp op;
  ir::AtomicOp atomic;
  const char* clause;  // of omp simd
  const char* update;  // of the prelude's atomic_update
};
constexpr Operation kOperations[] = {
    {ir::BinaryOp::add, ir::AtomicOp::add, "+", "add_update"},
    {ir::BinaryOp::max, ir::AtomicOp::max, "max", "max_update"},
    {ir::BinaryOp::min, ir::AtomicOp::min, "min", "min_update"},
    {ir::BinaryOp::bit_or, ir::AtomicOp::bit_or, "|", "or_update"},
};
const Operation* find(ir::BinaryOp op) {
  for (const Operation& each : kOperations)
    if (each.op == op) return &each;
  return nullptr;
}
const Operation* find(ir::AtomicOp op) {
  for (const Operation& each : kOperations)
    if (each.atomic == op) return &each;
  return nullptr;
}

// Elements are computed in the type that they are stored in.
bool is_computed_as_stored(ir::DType type) {
  return (type.is_int() && !type.is_bool() && type.bits >= 32) ||
         (type.is_float() && (type.bits == 32 || type.bits == 64) && !type.is_small_float());
}

bool names(const ir::Expr& expr, const ir::BufferData* buffer) {
  bool found = false;
  ir::walk(expr, [&](const ir::Expr& part) {
    const auto* load = std::get_if<ir::Load>(&part->node);
    found = found || (load != nullptr && load->buffer.get() == buffer);
  });
  return found;
}

bool same(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::Expr& x, const ir::Expr& y) { return ir::structurally_equal(x, y); });
}

// All updates of one buffer in a loop's body.
class Updates {
 public:
  Updates(const c::Context& context, const ir::Buffer& buffer) : context_(context), buffer_(buffer) {}

  std::optional<Reduction> find(const ir::Stmt& body) {
    visit(body, false);
    if (!sound_ || !found_ || count_uses(body).at(buffer_.get()) != uses_) return std::nullopt;
    if (guarded_ && !may_have_no_update(*found_)) return std::nullopt;
    return found_;
  }

 private:
  const c::Context& context_;
  const ir::Buffer& buffer_;
  std::optional<Reduction> found_;
  int64_t uses_ = 0;
  bool sound_ = true, guarded_ = false;

  void visit(const ir::Stmt& stmt, bool guarded) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node))
      for (const ir::Stmt& child : block->body) visit(child, guarded);
    if (const auto* branch = std::get_if<ir::If>(&stmt->node)) {
      visit(branch->then, true);
      if (branch->otherwise) visit(branch->otherwise, true);
    }
    if (const auto* loop = std::get_if<ir::For>(&stmt->node)) visit(loop->body, true);
    if (const auto* loop = std::get_if<ir::While>(&stmt->node)) visit(loop->body, true);
    if (const auto* store = std::get_if<ir::Store>(&stmt->node); store != nullptr && store->buffer == buffer_)
      visit_store(*store, guarded);
    if (const auto* atomic = std::get_if<ir::Atomic>(&stmt->node);
        atomic != nullptr && atomic->element.buffer == buffer_)
      visit_atomic(*atomic, guarded);
  }

  void visit_store(const ir::Store& store, bool guarded) {
    const auto* update = std::get_if<ir::Binary>(&store.value->node);
    const ir::BinaryOp op = update == nullptr                 ? ir::BinaryOp::eq
                            : update->op == ir::BinaryOp::sub ? ir::BinaryOp::add
                                                              : update->op;
    sound_ = sound_ && cpu::find(op) != nullptr && is_update(store.value, op, store.indices);
    if (sound_) add(op, store.indices, false, guarded, 2);
  }

  void visit_atomic(const ir::Atomic& atomic, bool guarded) {
    const Operation* operation = cpu::find(atomic.op);
    sound_ = sound_ && operation != nullptr && !atomic.previous && !names(atomic.value, buffer_.get());
    if (sound_) add(operation->op, atomic.element.start, true, guarded, 2);  // it is read and written
  }

  // The element, once, in a chain of operations with what does not name it.
  bool is_update(const ir::Expr& value, ir::BinaryOp op, const std::vector<ir::Expr>& indices) const {
    if (const auto* load = std::get_if<ir::Load>(&value->node))
      return load->buffer == buffer_ && same(load->indices, indices);
    const auto* node = std::get_if<ir::Binary>(&value->node);
    const bool subtracts = node != nullptr && node->op == ir::BinaryOp::sub && op == ir::BinaryOp::add;
    if (node == nullptr || (node->op != op && !subtracts)) return false;
    const bool in_left = names(node->left, buffer_.get()), in_right = names(node->right, buffer_.get());
    if (in_left == in_right || (in_right && subtracts)) return false;
    return is_update(in_left ? node->left : node->right, op, indices);
  }

  void add(ir::BinaryOp op, const std::vector<ir::Expr>& given, bool is_atomic, bool guarded, int64_t uses) {
    Reduction update{buffer_, {}, op, is_atomic && buffer_->scope == ir::Scope::global};
    for (const ir::Expr& index : given) update.indices.push_back(context_.facts.expand(index));
    uses_ += uses;
    guarded_ = guarded_ || guarded;
    if (!found_)
      found_ = std::move(update);
    else
      sound_ = found_->op == op && found_->is_atomic == update.is_atomic && same(found_->indices, update.indices);
  }
};

// The same element in all iterations, and there is one.
bool is_fixed(const c::Context& context, const Reduction& reduction, const std::vector<ir::Var>& vars,
              const ir::Variables& inside, const ir::BufferSet& written) {
  for (size_t axis = 0; axis < reduction.indices.size(); ++axis) {
    const ir::Expr& index = reduction.indices[axis];
    if (ir::mentions(index, inside)) return false;
    for (const ir::Var& var : vars)
      if (mentions(index, var)) return false;
    bool reads_written = false;
    ir::walk(index, [&](const ir::Expr& part) {
      const auto* load = std::get_if<ir::Load>(&part->node);
      reads_written = reads_written || (load != nullptr && written.contains(ir::memory_of(load->buffer)));
    });
    if (reads_written || !context.facts.in_bounds(index, reduction.buffer->shape[axis])) return false;
  }
  return true;
}

}  // namespace

std::vector<Reduction> find_reductions(const c::Context& context, const std::vector<ir::Var>& vars,
                                       const ir::Stmt& body) {
  const ir::Variables inside = ir::bound_in(body);
  const ir::BufferSet written = ir::memory_effects_of(body).writes;
  std::vector<Reduction> found;
  ir::BufferSet seen;
  for (const Access& access : accesses(context.facts, body)) {
    const ir::Buffer& buffer = access.buffer;
    const bool is_element = access.is_store && is_computed_as_stored(buffer->type) && !buffer->base &&
                            !buffer->address && !context.sharing.contains(buffer.get()) && context.roles.empty() &&
                            !context.iteration_private.contains(buffer.get()) &&
                            !context.layouts.contains(buffer.get());
    if (!is_element || !seen.insert(buffer.get()).second) continue;
    auto reduction = Updates(context, buffer).find(body);
    if (reduction && is_fixed(context, *reduction, vars, inside, written)) found.push_back(*std::move(reduction));
  }
  return found;
}

bool may_have_no_update(const Reduction& reduction) {
  const bool is_shared = reduction.buffer->scope == ir::Scope::global && !reduction.is_atomic;
  return !is_shared && (reduction.op == ir::BinaryOp::add || !reduction.buffer->type.is_float());
}

ir::BufferSet buffers_of(const std::vector<Reduction>& reductions) {
  ir::BufferSet result;
  for (const Reduction& reduction : reductions) result.insert(reduction.buffer.get());
  return result;
}

namespace {

class PlainUpdates : public ir::Rewriter {
 public:
  explicit PlainUpdates(const ir::BufferSet& buffers) : buffers_(buffers) {}
  using ir::Rewriter::rewrite;

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* atomic = std::get_if<ir::Atomic>(&stmt->node);
    if (atomic == nullptr || !buffers_.contains(atomic->element.buffer.get())) return rewrite_children(stmt);
    const ir::Buffer& buffer = atomic->element.buffer;
    const ir::Expr update = ir::binary(find(atomic->op)->op, atomic->value, ir::load(buffer, atomic->element.start));
    return ir::make_stmt(ir::Store{buffer, atomic->element.start, update}, stmt->span);
  }

 private:
  const ir::BufferSet& buffers_;
};

}  // namespace

ir::Stmt with_plain_updates(const ir::Stmt& body, const std::vector<Reduction>& reductions) {
  const ir::BufferSet buffers = buffers_of(reductions);
  return PlainUpdates(buffers).rewrite(body);
}

ReductionVariables::ReductionVariables(c::Context& context, const std::vector<Reduction>& reductions,
                                       const ir::Stmt& body)
    : context_(context), reductions_(reductions) {
  std::unordered_map<const ir::BufferData*, std::string> by_buffer;
  for (const Reduction& reduction : reductions) {
    const ir::DType type = reduction.buffer->type;
    const std::string name = context.names.fresh(reduction.buffer->name + "_all"), cpp = c::computed_type(type);
    const char* of_nothing = reduction.op == ir::BinaryOp::max   ? "lowest"
                             : reduction.op == ir::BinaryOp::min ? "highest"
                                                                 : nullptr;
    context.body.line("{} {} = {};", cpp, name,
                      of_nothing != nullptr ? fmt::format("{}<{}>()", of_nothing, cpp) : fmt::format("{}(0)", cpp));
    names_.push_back(name);
    by_buffer[reduction.buffer.get()] = name;
  }
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        const auto* store = std::get_if<ir::Store>(&stmt->node);
        const auto known = store != nullptr ? by_buffer.find(store->buffer.get()) : by_buffer.end();
        if (known == by_buffer.end()) return;
        context.lanes.stores[stmt.get()] = known->second;
        stores_.push_back(stmt.get());
      },
      [&](const ir::Expr& expr) {
        const auto* load = std::get_if<ir::Load>(&expr->node);
        const auto known = load != nullptr ? by_buffer.find(load->buffer.get()) : by_buffer.end();
        if (known == by_buffer.end()) return;
        context.lanes.loads[expr.get()] = known->second;
        loads_.push_back(expr.get());
      });
}

ReductionVariables::~ReductionVariables() {
  for (const ir::ExprNode* node : loads_) context_.lanes.loads.erase(node);
  for (const ir::StmtNode* node : stores_) context_.lanes.stores.erase(node);
}

std::string ReductionVariables::clauses() const {
  std::string text;
  for (size_t k = 0; k < names_.size(); ++k)
    text += fmt::format(" reduction({}: {})", find(reductions_[k].op)->clause, names_[k]);
  return text;
}

void ReductionVariables::store() const {
  for (size_t k = 0; k < names_.size(); ++k) {
    const Reduction& reduction = reductions_[k];
    const std::string place = c::place(context_, reduction.buffer, reduction.indices);
    const char* update = find(reduction.op)->update;
    context_.body.line("{}<{}>(&{}, {});", reduction.is_atomic ? "atomic_update" : "plain_update", update, place,
                       names_[k]);
  }
}

bool iterations_are_independent(const c::Context& context, const ir::For& loop) {
  if (contains<ir::Barrier, ir::Check, ir::Print, ir::Break, ir::Continue>(loop.body)) return false;
  const std::vector<Reduction> reductions = find_reductions(context, loop.vars, loop.body);
  const ir::BufferSet reduced = buffers_of(reductions);
  const passes::IterationSpace space(loop);
  const std::vector<Access> all = accesses(context.facts, loop.body);
  const ir::Variables inside = ir::bound_in(loop.body);
  for (const Access& store : all) {
    const ir::BufferData* buffer = store.buffer.get();
    if (!store.is_store || reduced.contains(buffer) || context.iteration_private.contains(buffer)) continue;
    if (context.sharing.contains(buffer) || space.may_conflict(store.indices)) return false;
    for (const ir::Expr& index : store.indices)
      if (ir::has_loads(index) || ir::mentions(index, inside)) return false;
    for (const Access& other : all)
      if (ir::memory_of(other.buffer) == ir::memory_of(store.buffer) &&
          (other.buffer != store.buffer || !same(other.indices, store.indices)))
        return false;
  }
  return !contains<ir::Atomic>(with_plain_updates(loop.body, reductions));
}

}  // namespace tilepilot::targets::cpu
