#include "compiler/targets/cpu/loops/loop_body.h"

#include "compiler/passes/iterations/iteration_conflicts.h"

namespace tilepilot::targets::cpu {

std::vector<ir::Stmt> flattened(const ir::Stmt& stmt) {
  const auto* block = std::get_if<ir::Block>(&stmt->node);
  if (block == nullptr) return {stmt};
  std::vector<ir::Stmt> result;
  for (const ir::Stmt& child : block->body)
    for (ir::Stmt& part : flattened(child)) result.push_back(std::move(part));
  return result;
}

std::vector<Access> accesses(const c::IntegerFacts& facts, const ir::Stmt& body) {
  std::vector<Access> found;
  const auto add = [&](const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, bool is_store) {
    found.push_back({buffer, {}, is_store});
    for (const ir::Expr& index : indices) found.back().indices.push_back(facts.expand(index));
  };
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        if (const auto* store = std::get_if<ir::Store>(&stmt->node)) add(store->buffer, store->indices, true);
        if (const auto* atomic = std::get_if<ir::Atomic>(&stmt->node))
          add(atomic->element.buffer, atomic->element.start, true);
      },
      [&](const ir::Expr& expr) {
        if (const auto* load = std::get_if<ir::Load>(&expr->node)) add(load->buffer, load->indices, false);
      });
  return found;
}

int contiguity(const std::vector<Access>& all, const ir::Var& var) {
  int score = 0;
  for (const Access& access : all) {
    const std::vector<ir::Expr> leading(access.indices.begin(), access.indices.end() - 1);
    const auto last = ir::affine(access.indices.back());
    if (mentions(leading, var) || (mentions(access.indices.back(), var) && (!last || last->coefficient(var) != 1)))
      score -= 2;
    else if (last && last->coefficient(var) == 1)
      score += access.is_store ? 3 : 1;
  }
  return score;
}

void order_for(const std::vector<Access>& all, std::vector<Dimension>& dimensions) {
  size_t best = dimensions.size() - 1;
  int best_score = contiguity(all, dimensions[best].var);
  for (size_t k = dimensions.size() - 1; k-- > 0;) {
    const int score = contiguity(all, dimensions[k].var);
    if (score > best_score) std::tie(best, best_score) = std::pair(k, score);
  }
  const auto at = dimensions.begin() + static_cast<std::ptrdiff_t>(best);
  std::rotate(at, at + 1, dimensions.end());
}

bool updates_conflict(const std::vector<Dimension>& dimensions, const ir::Stmt& body, const ir::BufferSet& own) {
  ir::For loop{ir::LoopKind::parallel, {}, {}, 0, body};
  for (const Dimension& dimension : dimensions) {
    loop.vars.push_back(dimension.var);
    loop.extents.push_back(dimension.extent);
  }
  const auto conflicts = passes::conflicting_updates(ir::make_stmt(std::move(loop), body->span));
  return std::any_of(conflicts.begin(), conflicts.end(),
                     [&](const passes::Update& update) { return !own.contains(update.buffer.get()); });
}

bool stores_are_private(const c::IntegerFacts& facts, const std::vector<Dimension>& dimensions, const ir::Stmt& body,
                        const ir::BufferSet& own) {
  if (contains<ir::Atomic, ir::Barrier, ir::Check, ir::Print>(body)) return false;
  for (const Access& access : accesses(facts, body)) {
    if (!access.is_store || own.contains(access.buffer.get())) continue;
    for (const Dimension& dimension : dimensions)
      if (ir::constant_int(dimension.extent) != 1 && !mentions(access.indices, dimension.var)) return false;
  }
  return !updates_conflict(dimensions, body, own);
}

namespace {

constexpr int64_t kMostBodies = 64;

// `below`: how many bodies come of each iteration.
bool is_unrolled(const ir::For& loop, int64_t below) {
  const auto extent = ir::constant_int(loop.extents[0]);
  return loop.kind == ir::LoopKind::unrolled && extent && *extent <= kMostBodies / below;
}

// Of the innermost loops below the statement, the most that come of one.
int64_t bodies_below(const ir::Stmt& stmt) {
  int64_t most = 1;
  if (const auto* block = std::get_if<ir::Block>(&stmt->node)) {
    for (const ir::Stmt& child : block->body) most = std::max(most, bodies_below(child));
  } else if (const auto* branch = std::get_if<ir::If>(&stmt->node)) {
    most = std::max(bodies_below(branch->then), branch->otherwise ? bodies_below(branch->otherwise) : 1);
  } else if (const auto* loop = std::get_if<ir::For>(&stmt->node)) {
    most = bodies_below(loop->body);
    if (is_unrolled(*loop, most)) most *= *ir::constant_int(loop->extents[0]);
  }
  return most;
}

}  // namespace

bool is_unrolled(const ir::For& loop) { return is_unrolled(loop, bodies_below(loop.body)); }

std::unordered_map<const ir::BufferData*, int64_t> count_uses(const ir::Stmt& body) {
  std::unordered_map<const ir::BufferData*, int64_t> uses;
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        if (const auto* store = std::get_if<ir::Store>(&stmt->node)) ++uses[store->buffer.get()];
        const ir::Accesses regions = ir::region_accesses(stmt);
        for (const ir::Region* region : regions.reads) ++uses[region->buffer.get()];
        for (const ir::Region* region : regions.writes) ++uses[region->buffer.get()];
      },
      [&](const ir::Expr& expr) {
        if (const auto* load = std::get_if<ir::Load>(&expr->node)) ++uses[load->buffer.get()];
      });
  return uses;
}

}  // namespace tilepilot::targets::cpu
