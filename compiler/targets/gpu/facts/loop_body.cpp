#include "compiler/targets/gpu/facts/loop_body.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/bounds.h"
#include "compiler/ir/effects.h"
#include "compiler/targets/gpu/facts/coordinates.h"

namespace tilepilot::targets::gpu {

bool is_plain_sum(const ir::Stmt& stmt) {
  const auto* atomic = ir::as<ir::Atomic>(stmt);
  if (!atomic || atomic->op != ir::AtomicOp::add || atomic->order != ir::MemoryOrder::relaxed || atomic->previous)
    return false;
  const ir::BufferData& buffer = *atomic->element.buffer;
  return buffer.scope == ir::Scope::global &&
         (buffer.type == ir::kFloat32 || buffer.type == ir::kFloat16 || buffer.type == ir::kBFloat16);
}

namespace {

// The only statement of nested blocks.
const ir::Stmt& only_statement(const ir::Stmt& stmt) {
  const auto* list = ir::as<ir::Block>(stmt);
  return list && list->body.size() == 1 ? only_statement(list->body[0]) : stmt;
}

const ir::For* lanes_of_sum(const ir::Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  const bool sums = loop && loop->kind == ir::LoopKind::vectorized && is_plain_sum(only_statement(loop->body));
  return sums && ir::constant_int(loop->extents[0]) ? loop : nullptr;
}

class LanesOfSums : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr || loop->kind != ir::LoopKind::parallel)
      return in_parallel_ ? one_by_one(stmt) : rewrite_children(stmt);
    ir::For merged = *loop;
    if (const ir::Stmt body = without_lanes(loop->body, merged)) {
      merged.body = body;
      return ir::make_stmt(std::move(merged), stmt->span);
    }
    in_parallel_ = true;
    const ir::Stmt inner = rewrite_children(stmt);
    in_parallel_ = false;
    return inner;
  }

 private:
  bool in_parallel_ = false;

  // The body with the lane among the loop's variables; null: it does more.
  static ir::Stmt without_lanes(const ir::Stmt& body, ir::For& loop) {
    const ir::Stmt& only = only_statement(body);
    if (const ir::For* lanes = lanes_of_sum(only)) {
      loop.vars.push_back(lanes->vars[0]);
      loop.extents.push_back(lanes->extents[0]);
      return lanes->body;
    }
    const auto* choice = ir::as<ir::If>(only);
    if (choice == nullptr || choice->otherwise) return nullptr;
    const ir::Stmt inner = without_lanes(choice->then, loop);
    return inner ? ir::make_stmt(ir::If{choice->condition, inner, nullptr}, only->span) : nullptr;
  }

  ir::Stmt one_by_one(const ir::Stmt& stmt) {
    const ir::For* lanes = lanes_of_sum(stmt);
    if (lanes == nullptr) return rewrite_children(stmt);
    std::vector<ir::Stmt> all;
    for (int64_t lane = 0; lane < *ir::constant_int(lanes->extents[0]); ++lane)
      all.push_back(ir::substitute(lanes->body, [&](const ir::Var& var) {
        return var == lanes->vars[0] ? ir::int_imm(lane, var->type) : nullptr;
      }));
    return ir::make_stmt(ir::Block{std::move(all)}, stmt->span);
  }
};

}  // namespace

ir::Kernel with_lanes_of_sums(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = LanesOfSums().rewrite(kernel.body);
  return result;
}

std::optional<GuardedLoop> guarded_loop(const ir::For& loop, bool adds_vectors) {
  GuardedLoop result{nullptr, loop};
  while (const auto* choice = ir::as<ir::If>(only_statement(result.loop.body))) {
    if (choice->otherwise) break;
    result.guard = both(result.guard, choice->condition);
    const ir::Stmt then = choice->then;  // which the loop's body owns
    result.loop.body = then;
  }
  if (!result.guard) return std::nullopt;
  const LoopBody body(result.loop, adds_vectors);
  if (!body.is_straight() || body.is_written(result.guard)) return std::nullopt;
  return result;
}

LoopBody::LoopBody(const ir::For& loop, bool adds_vectors) : statements_(ir::statements(loop.body)) {
  for (const ir::Stmt& stmt : statements_) {
    const auto* let = ir::as<ir::Let>(stmt);
    if (let) values_.insert(let->var.get());
    is_straight_ = is_straight_ && (let || ir::as<ir::Store>(stmt) || (adds_vectors && is_plain_sum(stmt)));
    ir::each_effect(stmt, [&](const ir::Buffer& buffer, bool writes) {
      Count& count = counts_[ir::memory_of(buffer)];
      ++(writes ? count.stores : count.loads);
    });
    if (is_plain_sum(stmt)) --counts_[ir::memory_of(ir::as<ir::Atomic>(stmt)->element.buffer)].loads;
    note(stmt);
  }
  for (size_t k = 0; k < loop.vars.size(); ++k)
    extents_[loop.vars[k].get()] = ir::constant_int(loop.extents[k]).value_or(INT64_MAX);
}

void LoopBody::note(const ir::Stmt& stmt) {
  const auto* store = ir::as<ir::Store>(stmt);
  ir::walk(
      stmt, [](const ir::Stmt&) {},
      [&](const ir::Expr& part) {
        if (const auto* load = ir::as<ir::Load>(part)) accesses_.push_back({load->buffer, load->indices, false});
      });
  if (store) accesses_.push_back({store->buffer, store->indices, true});
}

bool LoopBody::is_written(const ir::Expr& expr) const {
  bool found = false;
  ir::each_effect(expr, [&](const ir::Buffer& buffer, bool) { found = found || count(buffer).stores > 0; });
  return found;
}

LoopBody::Count LoopBody::count(const ir::Buffer& buffer) const {
  const auto found = counts_.find(ir::memory_of(buffer));
  return found == counts_.end() ? Count{} : found->second;
}

int LoopBody::accesses(const ir::Buffer& buffer) const {
  const Count all = count(buffer);
  return all.loads + all.stores;
}

bool LoopBody::may_move_together(const ir::Buffer& buffer) const {
  if (!is_straight_ || statements_.empty()) return false;
  const Count all = count(buffer);
  const auto* last = ir::as<ir::Store>(statements_.back());
  const auto* sum = ir::as<ir::Atomic>(statements_.back());
  const bool stored_last = (last && ir::memory_of(last->buffer) == ir::memory_of(buffer)) ||
                           (sum && ir::memory_of(sum->element.buffer) == ir::memory_of(buffer));
  return all.stores == 0 || (all.stores == 1 && (all.loads == 0 || stored_last)) || loads_first(buffer);
}

std::vector<ir::Expr> LoopBody::early_loads(int64_t bytes) const {
  std::vector<ir::Expr> early;
  bool stores = false, is_choice = false;
  for (const ir::Stmt& stmt : statements_) {
    const auto* store = ir::as<ir::Store>(stmt);
    stores = stores || (store && store->buffer->scope == ir::Scope::global);
    ir::walk(
        stmt, [](const ir::Stmt&) {},
        [&](const ir::Expr& part) {
          const auto* binary = ir::as<ir::Binary>(part);
          const bool lazy =
              binary && (binary->op == ir::BinaryOp::logical_and || binary->op == ir::BinaryOp::logical_or);
          is_choice = is_choice || ((ir::as<ir::Select>(part) || lazy) && ir::has_loads(part));
          const auto* load = ir::as<ir::Load>(part);
          const bool may = load && load->buffer->scope == ir::Scope::global && may_move_together(load->buffer);
          if (may && std::none_of(load->indices.begin(), load->indices.end(), [&](const ir::Expr& index) {
                return mentions_values(index) || ir::has_loads(index);
              }))
            early.push_back(part);
        });
  }
  for (const ir::Expr& load : early) bytes -= std::max<int64_t>(load->type.bytes(), 4);
  if (!stores || is_choice || bytes < 0) early.clear();  // what is not chosen may lie outside of its tensor
  return early;
}

// Whether an iteration loads all that it loads of the buffer before it stores, and no other one accesses what it
// stores.
bool LoopBody::loads_first(const ir::Buffer& buffer) const {
  std::vector<const Access*> own;
  for (const Access& access : accesses_)
    if (ir::memory_of(access.buffer) == ir::memory_of(buffer)) own.push_back(&access);
  const Count all = count(buffer);
  if (static_cast<int>(own.size()) != all.loads + all.stores) return false;
  bool stored = false;
  for (const Access* access : own) {
    if (stored && !access->stores) return false;
    stored |= access->stores;
    for (const Access* other : own)
      if ((access->stores || other->stores) && !are_apart(*access, *other)) return false;
  }
  return true;
}

// Whether no iteration does the one where another iteration does the other: along some axis the distance is more than
// the loop's variables reach or no multiple of their steps, or each variable has an axis of its own along which both go
// alike.
bool LoopBody::are_apart(const Access& a, const Access& b) const {
  const auto is_computed = [&](const Access& access) {
    return std::any_of(access.indices.begin(), access.indices.end(),
                       [&](const ir::Expr& index) { return mentions_values(index); });
  };
  if (a.buffer != b.buffer || is_computed(a) || is_computed(b)) return false;
  ir::Variables told;  // by the indices of axes at which both are
  for (size_t axis = 0; axis < a.indices.size(); ++axis) {
    const auto at = ir::affine(a.indices[axis]), other = ir::affine(b.indices[axis]);
    const auto difference = at && other ? ir::difference(*at, *other) : std::nullopt;
    if (!difference || !difference->is_constant()) continue;
    ir::Wide reach = 0;
    int64_t step = 0;  // of which all distances between iterations are multiples
    const ir::VarData* alone = nullptr;
    int variables = 0;
    for (const ir::Affine::Term& term : at->terms) {
      const auto extent = extents_.find(term.var.get());
      if (extent == extents_.end()) continue;
      reach += (term.coefficient < 0 ? -ir::Wide{term.coefficient} : ir::Wide{term.coefficient}) * (extent->second - 1);
      step = std::gcd(step, term.coefficient);
      alone = term.var.get();
      ++variables;
    }
    const ir::Wide distance = difference->constant;
    if ((distance < 0 ? -distance : distance) > reach || (step > 1 && distance % step != 0)) return true;
    if (distance == 0 && variables == 1) told.insert(alone);
  }
  return std::all_of(extents_.begin(), extents_.end(),
                     [&](const auto& each) { return each.second == 1 || told.contains(each.first); });
}

}  // namespace tilepilot::targets::gpu
