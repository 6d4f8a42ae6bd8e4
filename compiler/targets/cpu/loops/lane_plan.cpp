#include "compiler/targets/cpu/loops/lane_plan.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kRegisterLanes = 256;  // of 4 bytes: half of the largest register file
constexpr int64_t kShortRow = 64;        // lanes, where a chunk has several rows
constexpr int64_t kMostRows = 16;        // as TP_UNROLL unrolls
constexpr int64_t kOwnElements = 32;     // of a buffer a lane keeps in registers, at most
constexpr int64_t kMostPrivate = 256;    // elements of a private buffer, which a lane must keep, in memory if need be
constexpr int64_t kFarRows = 16;         // elements between rows that share no line of a cache

int64_t largest_divisor(int64_t number, int64_t most) {
  int64_t divisor = std::max<int64_t>(most, 1);
  while (number % divisor != 0) --divisor;
  return divisor;
}

// Elements that each lane has of a buffer whose last axes are the thread's.
int64_t elements_of_lane(const ir::Buffer& buffer, size_t thread_axes) {
  int64_t elements = 1;
  const std::vector<int64_t> shape = c::extents(buffer);
  for (size_t axis = 0; axis + thread_axes < shape.size(); ++axis) elements *= shape[axis];
  return elements;
}

// Buffers of which each lane uses the elements that its own indices name, and private ones.
class ThreadPrivateBuffers {
 public:
  ThreadPrivateBuffers(const c::Context& context, const LaneFacts& facts, const std::vector<Dimension>& dimensions)
      : context_(context), facts_(facts), dimensions_(dimensions) {}

  std::vector<ir::Buffer> find(const ir::Stmt& body) {
    for (const Access& access : accesses(context_.facts, body))
      if (!is_own(access)) foreign_.insert(access.buffer.get());
    visit(body, false);
    std::vector<ir::Buffer> found;
    for (const ir::Buffer& buffer : stored_)
      if (loaded_.contains(buffer.get())) found.push_back(buffer);
    for (const Access& access : accesses(context_.facts, body)) {
      const bool is_private = context_.iteration_private.contains(access.buffer.get());
      if (is_private && std::find(found.begin(), found.end(), access.buffer) == found.end())
        found.push_back(access.buffer);
    }
    return found;
  }

  bool is_own(const Access& access) const {
    const ir::Buffer& buffer = access.buffer;
    if (context_.iteration_private.contains(buffer.get())) return true;
    const bool is_private = buffer->scope == ir::Scope::local || buffer->scope == ir::Scope::fragment;
    if (!is_private || buffer->base || buffer->address || context_.sharing.contains(buffer.get())) return false;
    if (context_.layouts.contains(buffer.get()) || access.indices.size() < dimensions_.size()) return false;
    const size_t leading = access.indices.size() - dimensions_.size();
    for (size_t k = 0; k < dimensions_.size(); ++k) {
      const auto* ref = std::get_if<ir::VarRef>(&access.indices[leading + k]->node);
      if (ref == nullptr || ref->var != dimensions_[k].var) return false;
    }
    return true;
  }

 private:
  const c::Context& context_;
  const LaneFacts& facts_;
  const std::vector<Dimension>& dimensions_;
  std::unordered_set<const ir::BufferData*> foreign_;
  std::vector<ir::Buffer> stored_;                    // in common loops
  std::unordered_set<const ir::BufferData*> loaded_;  // likewise

  void visit(const ir::Stmt& stmt, bool in_loop) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node))
      for (const ir::Stmt& child : block->body) visit(child, in_loop);
    if (const auto* branch = std::get_if<ir::If>(&stmt->node)) {
      visit(branch->then, in_loop);
      if (branch->otherwise) visit(branch->otherwise, in_loop);
    }
    if (const auto* loop = std::get_if<ir::For>(&stmt->node)) {
      if (!in_loop && facts_.is_common(*loop)) note_loads(loop->body);
      visit(loop->body, in_loop || facts_.is_common(*loop));
    }
    if (const auto* loop = std::get_if<ir::While>(&stmt->node)) visit(loop->body, in_loop);
    if (const auto* store = std::get_if<ir::Store>(&stmt->node); store != nullptr && in_loop) add(store->buffer);
  }

  void note_loads(const ir::Stmt& body) {
    for (const Access& access : accesses(context_.facts, body))
      if (!access.is_store) loaded_.insert(access.buffer.get());
  }

  void add(const ir::Buffer& buffer) {
    if (context_.iteration_private.contains(buffer.get()) || foreign_.contains(buffer.get())) return;
    if (std::find(stored_.begin(), stored_.end(), buffer) != stored_.end()) return;
    if (elements_of_lane(buffer, dimensions_.size()) <= kOwnElements) stored_.push_back(buffer);
  }
};

// Whether lanes write all that they own of a buffer before they read any of it.
class FirstUse {
 public:
  FirstUse(const ir::Buffer& buffer, size_t thread_axes) : buffer_(buffer), leading_(buffer->rank() - thread_axes) {}

  bool is_write(const ir::Stmt& stmt) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node)) {
      const auto first =
          std::find_if(block->body.begin(), block->body.end(), [&](const ir::Stmt& child) { return uses(child) > 0; });
      return first != block->body.end() && is_write(*first);
    }
    if (const auto* loop = std::get_if<ir::For>(&stmt->node)) {
      if (loop->kind == ir::LoopKind::parallel || ir::constant_int(loop->extents[0]).value_or(0) < 1) return false;
      around_.push_back(loop);
      return is_write(loop->body);
    }
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    return store != nullptr && uses(stmt) == 1 && covers(store->indices);
  }

 private:
  const ir::Buffer& buffer_;
  size_t leading_;
  std::vector<const ir::For*> around_;

  int64_t uses(const ir::Stmt& stmt) const {
    const auto all = count_uses(stmt);
    const auto found = all.find(buffer_.get());
    return found == all.end() ? 0 : found->second;
  }

  // Each axis by a loop of its own, in which nothing else uses the buffer.
  bool covers(const std::vector<ir::Expr>& indices) const {
    std::unordered_set<const ir::VarData*> used;
    const std::vector<int64_t> shape = c::extents(buffer_);
    for (size_t axis = 0; axis < leading_; ++axis) {
      if (shape[axis] == 1) continue;
      const auto* ref = std::get_if<ir::VarRef>(&indices[axis]->node);
      const auto loop = std::find_if(around_.begin(), around_.end(), [&](const ir::For* other) {
        return ref != nullptr && other->vars[0] == ref->var;
      });
      if (loop == around_.end() || ir::constant_int((*loop)->extents[0]) != shape[axis]) return false;
      if (!used.insert(ref->var.get()).second || uses((*loop)->body) != 1) return false;
    }
    return true;
  }
};

// How many lanes of a chunk keep what they own in registers.
int64_t register_lanes(const LanePlan& plan) {
  int64_t words = 0;
  for (const ir::Buffer& buffer : plan.own)
    words += elements_of_lane(buffer, buffer->rank() - plan.leading_axes(buffer)) * (buffer->type.bytes() + 3) / 4;
  return std::max(kVectorLanes, kRegisterLanes / std::max<int64_t>(words, 1) / kVectorLanes * kVectorLanes);
}

// Whether the element is the next one in memory at the next step, and far away at the next lane.
bool walks_along_row(const std::vector<ir::Expr>& indices, const ir::Var& lane, const ir::Var& step) {
  const auto last = ir::affine(indices.back());
  const std::vector<ir::Expr> leading(indices.begin(), indices.end() - 1);
  if (!last || last->coefficient(step) != 1 || mentions(leading, step)) return false;
  return mentions(leading, lane) || std::abs(last->coefficient(lane)) >= kFarRows;
}

// The accesses of long common loops whose lanes walk along rows, where blocks of steps are worth a try (see
// transposed_loads.h).
std::vector<Access> walks_along_rows(const c::Context& context, const LaneFacts& facts, const ir::Var& lane,
                                     const ir::Stmt& body) {
  std::vector<Access> found;
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        const auto* loop = std::get_if<ir::For>(&stmt->node);
        if (loop == nullptr || !facts.is_common(*loop) || is_unrolled(*loop)) return;
        if (ir::constant_int(loop->extents[0]).value_or(kRowSteps) < kRowSteps) return;
        const auto uses = count_uses(loop->body);
        for (Access& access : accesses(context.facts, loop->body)) {
          const bool is_safe = access.is_store ? uses.at(access.buffer.get()) == 1 : !facts.is_stored(access.buffer);
          if (is_safe && walks_along_row(access.indices, lane, loop->vars[0])) found.push_back(std::move(access));
        }
      },
      [](const ir::Expr&) {});
  return found;
}

// `step`: chunks start at multiples of it, or 0.
void choose_width(LanePlan& plan, int64_t lanes, int64_t step) {
  const auto extent = ir::constant_int(plan.lane.extent);
  plan.width = step > 0 ? step : lanes;
  plan.is_whole = extent && !plan.ends_with_runs && *extent % plan.width == 0;
  if (!extent || plan.ends_with_runs) return;
  if (*extent <= plan.width) {
    plan.width = std::max<int64_t>(*extent, 1);
    plan.is_whole = true;
    return;
  }
  if (step > 0 || *extent % kVectorLanes != 0) return;
  const int64_t vectors = largest_divisor(*extent / kVectorLanes, lanes / kVectorLanes);
  if (vectors * kVectorLanes * 4 < lanes) return;
  plan.is_whole = true;
  plan.width = vectors * kVectorLanes;
}

// How the chunks respect the runs; gives `step` of choose_width.
int64_t choose_runs(LanePlan& plan, const LaneRuns& runs, int64_t lanes) {
  if (runs.parts().empty()) return 0;
  const int64_t step = largest_divisor(runs.aligned(), lanes);
  const auto extent = ir::constant_int(plan.lane.extent);
  const bool is_aligned = step >= kVectorLanes || (extent && *extent <= step);
  if (!is_aligned && !runs.is_known_before()) return 0;
  plan.runs = runs;
  plan.ends_with_runs = !is_aligned;
  return is_aligned ? step : 0;
}

}  // namespace

LaneFacts::LaneFacts(const std::vector<Dimension>& dimensions, const ir::Stmt& body) {
  for (const Dimension& dimension : dimensions) varying_.insert(dimension.var.get());
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        if (const auto* store = std::get_if<ir::Store>(&stmt->node)) stored_.insert(store->buffer.get());
      },
      [](const ir::Expr&) {});
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        const auto* let = std::get_if<ir::Let>(&stmt->node);
        if (let != nullptr && !is_uniform(let->value)) varying_.insert(let->var.get());
      },
      [](const ir::Expr&) {});
}

bool LaneFacts::is_uniform(const ir::Expr& expr) const {
  bool varies = false;
  ir::walk(expr, [&](const ir::Expr& part) {
    const auto* ref = std::get_if<ir::VarRef>(&part->node);
    varies = varies || (ref != nullptr && is_varying(ref->var));
  });
  return !varies && is_stable(expr);
}

bool LaneFacts::is_stable(const ir::Expr& expr) const {
  bool stable = true;
  ir::walk(expr, [&](const ir::Expr& part) {
    const auto* load = std::get_if<ir::Load>(&part->node);
    stable = stable && !(load != nullptr && is_stored(load->buffer));
  });
  return stable;
}

bool LaneFacts::stores_any(const std::unordered_set<const ir::BufferData*>& buffers) const {
  return std::any_of(stored_.begin(), stored_.end(),
                     [&](const ir::BufferData* data) { return buffers.contains(data); });
}

bool LaneFacts::is_common(const ir::For& loop) const {
  return loop.kind != ir::LoopKind::parallel && is_uniform(loop.extents[0]) &&
         !contains<ir::Break, ir::Continue>(loop.body);
}

bool LaneFacts::has_common_loop(const ir::Stmt& stmt) const {
  if (const auto* block = std::get_if<ir::Block>(&stmt->node))
    return std::any_of(block->body.begin(), block->body.end(),
                       [&](const ir::Stmt& child) { return has_common_loop(child); });
  if (const auto* loop = std::get_if<ir::For>(&stmt->node)) return is_common(*loop);
  const auto* branch = std::get_if<ir::If>(&stmt->node);
  if (branch == nullptr || !(is_guard(*branch) || is_uniform(branch->condition))) return false;
  return has_common_loop(branch->then) || (branch->otherwise && has_common_loop(branch->otherwise));
}

std::optional<LanePlan> plan_lanes(const c::Context& context, const LaneFacts& facts,
                                   const std::vector<Dimension>& dimensions, const ir::Stmt& body) {
  ThreadPrivateBuffers buffers(context, facts, dimensions);
  // Of its own buffers a lane's order follows the others.
  std::vector<Access> others;
  for (Access& access : accesses(context.facts, body))
    if (!buffers.is_own(access)) others.push_back(std::move(access));
  LanePlan plan;
  plan.thread = plan.outer = dimensions;
  order_for(others, plan.outer);
  plan.lane = plan.outer.back();
  plan.outer.pop_back();
  plan.own = buffers.find(body);
  for (const ir::Buffer& buffer : plan.own) {
    const bool is_private = context.iteration_private.contains(buffer.get());
    if (is_private && elements_of_lane(buffer, 0) > kMostPrivate) return std::nullopt;
    if (is_private) plan.without_thread.insert(buffer.get());
    if (is_private || FirstUse(buffer, dimensions.size()).is_write(body)) plan.fresh.insert(buffer.get());
  }
  const int64_t lanes = register_lanes(plan);
  // Rows of a chunk share what they load for a lane: rather several short ones than a long one.
  const int64_t row_extent = plan.outer.empty() ? 1 : ir::constant_int(plan.outer.back().extent).value_or(1);
  const bool has_rows = row_extent > 1;
  int64_t widest = has_rows ? std::min(lanes, kShortRow) : lanes;
  // Of many rows at a time the caches lose the lines before all of them is read.
  const std::vector<Access> walks = walks_along_rows(context, facts, plan.lane.var, body);
  if (!walks.empty() && ir::constant_int(plan.lane.extent).value_or(1) % kVectorLanes == 0) widest = kVectorLanes;
  choose_width(plan, widest, choose_runs(plan, LaneRuns(context.facts, plan.lane.var, body), widest));
  const bool same_rows = std::none_of(walks.begin(), walks.end(), [&](const Access& access) {
    return has_rows && mentions(access.indices, plan.outer.back().var);
  });
  if (has_rows && plan.is_whole && same_rows)
    plan.rows = largest_divisor(row_extent, std::min<int64_t>({lanes / plan.width, kMostRows, row_extent}));
  if (plan.rows > 1) {
    plan.row = plan.outer.back();
    plan.outer.pop_back();
  }
  return plan;
}

}  // namespace tilepilot::targets::cpu
