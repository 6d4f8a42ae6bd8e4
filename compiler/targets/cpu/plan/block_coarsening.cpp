#include "compiler/targets/cpu/plan/block_coarsening.h"

#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {
namespace {

using AxisSet = uint32_t;  // bit k: axis k of the grid
using AxesOfBuffers = std::unordered_map<const ir::BufferData*, AxisSet>;

bool is_thread_loop(const ir::Stmt& stmt) {
  const auto* loop = std::get_if<ir::For>(&stmt->node);
  return loop != nullptr && loop->kind == ir::LoopKind::parallel;
}

// The stores of a loop over threads, and the rest that they need.
class StoresOf : public ir::Rewriter {
 public:
  explicit StoresOf(const std::function<bool(const ir::Buffer&)>& wanted) : wanted_(wanted) {}
  using ir::Rewriter::rewrite;

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store != nullptr) return wanted_(store->buffer) ? stmt : nothing(stmt);
    const ir::Stmt result = rewrite_children(stmt);
    const auto* loop = std::get_if<ir::For>(&result->node);
    const auto* branch = std::get_if<ir::If>(&result->node);
    const bool is_empty = (loop && is_nothing(loop->body)) ||
                          (branch && is_nothing(branch->then) && (!branch->otherwise || is_nothing(branch->otherwise)));
    return is_empty ? nothing(stmt) : result;
  }

 private:
  const std::function<bool(const ir::Buffer&)>& wanted_;

  static ir::Stmt nothing(const ir::Stmt& stmt) { return ir::make_stmt(ir::Block{}, stmt->span); }
  static bool is_nothing(const ir::Stmt& stmt) { return flattened(stmt).empty(); }
};

// Along which axes blocks differ in what a buffer holds.
class BlockDifferences {
 public:
  BlockDifferences(const ir::Kernel& kernel, AxisSet coarsened) : kernel_(kernel), coarsened_(coarsened) {}

  // Nullopt if blocks may not be coarsened.
  std::optional<AxesOfBuffers> find() {
    do {
      has_changed_ = false;
      visit_block(kernel_.body);
    } while (has_changed_ && is_joinable_);
    if (!is_joinable_) return std::nullopt;
    return std::move(of_);
  }

 private:
  const ir::Kernel& kernel_;
  const AxisSet coarsened_;
  AxesOfBuffers of_;
  std::unordered_map<const ir::VarData*, AxisSet> lets_;
  bool has_changed_ = false, is_joinable_ = true;

  AxisSet axes(const ir::Expr& expr) const {
    AxisSet found = 0;
    ir::walk(expr, [&](const ir::Expr& part) {
      if (const auto* load = std::get_if<ir::Load>(&part->node)) {
        const auto known = of_.find(load->buffer.get());
        if (known != of_.end()) found |= known->second;
      }
      const auto* ref = std::get_if<ir::VarRef>(&part->node);
      if (ref == nullptr) return;
      if (const auto let = lets_.find(ref->var.get()); let != lets_.end()) found |= let->second;
      for (size_t axis = 0; axis < kernel_.block_vars.size(); ++axis)
        if (ref->var == kernel_.block_vars[axis]) found |= coarsened_ & AxisSet{1} << axis;
    });
    return found;
  }
  AxisSet axes(const std::vector<ir::Expr>& exprs) const {
    AxisSet found = 0;
    for (const ir::Expr& expr : exprs) found |= axes(expr);
    return found;
  }

  void add(const ir::Buffer& buffer, AxisSet more) {
    if (buffer->scope == ir::Scope::global) return;
    AxisSet& known = of_[buffer.get()];
    has_changed_ = has_changed_ || (known | more) != known;
    known |= more;
  }

  // What all threads do together is the same for all coarsened blocks.
  void visit_block(const ir::Stmt& stmt) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node)) {
      for (const ir::Stmt& child : block->body) visit_block(child);
    } else if (const auto* branch = std::get_if<ir::If>(&stmt->node)) {
      is_joinable_ = is_joinable_ && axes(branch->condition) == 0;
      visit_block(branch->then);
      if (branch->otherwise) visit_block(branch->otherwise);
    } else if (const auto* loop = std::get_if<ir::For>(&stmt->node)) {
      is_joinable_ = is_joinable_ && axes(loop->extents) == 0;
      loop->kind == ir::LoopKind::parallel ? visit_threads(loop->body) : visit_block(loop->body);
    } else {
      is_joinable_ = false;
    }
  }

  // Stores that one loop does share its axes, unless they may be done apart.
  void visit_threads(const ir::Stmt& body) {
    visit(body, 0);
    std::unordered_set<const ir::BufferData*> stored;
    std::vector<ir::Buffer> buffers;
    bool is_read = false, is_global = false;
    const std::vector<Access> all = accesses({}, body);
    for (const Access& access : all)
      if (access.is_store && stored.insert(access.buffer.get()).second) buffers.push_back(access.buffer);
    AxisSet together = 0;
    for (const ir::Buffer& buffer : buffers) {
      is_global = is_global || buffer->scope == ir::Scope::global;
      together |= of_[buffer.get()];
    }
    for (const Access& access : all) is_read = is_read || (!access.is_store && stored.contains(access.buffer.get()));
    if (is_global) together = coarsened_;
    if (!is_read && !is_global) return;
    for (const ir::Buffer& buffer : buffers) add(buffer, together);
  }

  void visit(const ir::Stmt& stmt, AxisSet around) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node)) {
      for (const ir::Stmt& child : block->body) visit(child, around);
    } else if (const auto* branch = std::get_if<ir::If>(&stmt->node)) {
      around |= axes(branch->condition);
      visit(branch->then, around);
      if (branch->otherwise) visit(branch->otherwise, around);
    } else if (const auto* loop = std::get_if<ir::For>(&stmt->node)) {
      visit(loop->body, around | axes(loop->extents));
    } else if (const auto* let = std::get_if<ir::Let>(&stmt->node)) {
      lets_[let->var.get()] = around | axes(let->value);
    } else if (const auto* store = std::get_if<ir::Store>(&stmt->node)) {
      add(store->buffer, around | axes(store->indices) | axes(store->value));
    } else {
      is_joinable_ = false;
    }
  }
};

class BlockCoarsener : public ir::Rewriter {
 public:
  BlockCoarsener(const ir::Kernel& kernel, const std::vector<int64_t>& counts, AxisSet coarsened, AxesOfBuffers of)
      : kernel_(kernel), counts_(counts), coarsened_(coarsened), of_(std::move(of)) {
    for (size_t axis = 0; axis < counts.size(); ++axis) {
      const ir::Var& block = kernel.block_vars[axis];
      members_.push_back(counts[axis] > 1 ? ir::make_var(block->name + "_1", block->type) : nullptr);
    }
  }
  using ir::Rewriter::rewrite;

  CoarsenedBlocks run() {
    ir::Kernel result = kernel_;
    ir::walk(
        kernel_.body,
        [&](const ir::Stmt& stmt) {
          if (is_thread_loop(stmt)) thread_axes_ = std::get<ir::For>(stmt->node).vars.size();
        },
        [](const ir::Expr&) {});
    for (ir::Buffer& buffer : result.allocations) buffer = coarsened(buffer);
    // The last coarsened block is the last of the grid at most.
    for (size_t axis = 0; axis < counts_.size(); ++axis)
      if (const auto extent = ir::constant_int(kernel_.grid[axis]))
        result.grid[axis] = ir::int_imm(std::max<int64_t>(*extent - counts_[axis] + 1, 1), kernel_.grid[axis]->type);
    result.body = rewrite(kernel_.body);
    return {counts_, members_, std::move(result)};
  }

  ir::Expr rewrite(const ir::Expr& expr) override {
    if (const auto* ref = std::get_if<ir::VarRef>(&expr->node)) {
      for (size_t axis = 0; axis < members_.size(); ++axis)
        if (members_[axis] && ref->var == kernel_.block_vars[axis])
          return ir::binary(ir::BinaryOp::add, expr, ir::var_ref(members_[axis]));
    }
    const auto* load = std::get_if<ir::Load>(&expr->node);
    if (load == nullptr || !coarsened_buffers_.contains(load->buffer.get())) return rewrite_children(expr);
    return ir::load(coarsened_buffers_.at(load->buffer.get()), element(load->buffer, load->indices), expr->span);
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    if (is_thread_loop(stmt)) return thread_loops(std::get<ir::For>(stmt->node), stmt);
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store == nullptr || !coarsened_buffers_.contains(store->buffer.get())) return rewrite_children(stmt);
    return ir::make_stmt(ir::Store{coarsened_buffers_.at(store->buffer.get()), element(store->buffer, store->indices),
                                   rewrite(store->value)},
                         stmt->span);
  }

 private:
  const ir::Kernel& kernel_;
  const std::vector<int64_t>& counts_;
  const AxisSet coarsened_;
  const AxesOfBuffers of_;
  std::vector<ir::Var> members_;
  size_t thread_axes_ = 1;
  std::unordered_map<const ir::BufferData*, ir::Buffer> coarsened_buffers_;

  AxisSet axes_of(const ir::Buffer& buffer) const {
    if (buffer->scope == ir::Scope::global) return coarsened_;
    const auto found = of_.find(buffer.get());
    return found == of_.end() ? 0 : found->second;
  }

  // The last axis first: its blocks are the farthest apart.
  template <class F>
  void for_each_axis(AxisSet axes, const F& visit) const {
    for (size_t axis = counts_.size(); axis-- > 0;)
      if ((axes >> axis & 1) != 0) visit(axis);
  }

  // Where the axes of members stand: before those of threads, where a buffer has these.
  std::ptrdiff_t place(const ir::Buffer& buffer) const {
    const bool is_own = buffer->scope == ir::Scope::local && buffer->rank() >= thread_axes_;
    return is_own ? static_cast<std::ptrdiff_t>(buffer->rank() - thread_axes_) : 0;
  }

  ir::Buffer coarsened(const ir::Buffer& buffer) {
    if (axes_of(buffer) == 0) return buffer;
    ir::BufferData data = *buffer;
    std::vector<ir::Expr> extents;
    for_each_axis(axes_of(buffer), [&](size_t axis) { extents.push_back(ir::int_imm(counts_[axis])); });
    data.shape.insert(data.shape.begin() + place(buffer), extents.begin(), extents.end());
    return coarsened_buffers_[buffer.get()] = std::make_shared<ir::BufferData>(std::move(data));
  }

  std::vector<ir::Expr> element(const ir::Buffer& buffer, const std::vector<ir::Expr>& given) {
    std::vector<ir::Expr> indices = rewrite_all(given), members;
    for_each_axis(axes_of(buffer), [&](size_t axis) { members.push_back(ir::var_ref(members_[axis])); });
    indices.insert(indices.begin() + place(buffer), members.begin(), members.end());
    return indices;
  }

  // One for each set of axes that its stores need.
  ir::Stmt thread_loops(const ir::For& loop, const ir::Stmt& stmt) {
    std::vector<AxisSet> sets;
    for (const Access& access : accesses({}, loop.body)) {
      if (!access.is_store) continue;
      const AxisSet axes = axes_of(access.buffer);
      if (std::find(sets.begin(), sets.end(), axes) == sets.end()) sets.push_back(axes);
    }
    std::vector<ir::Stmt> parts;
    for (const AxisSet axes : sets) {
      ir::For part = loop;
      part.vars.clear();
      part.extents.clear();
      for_each_axis(axes, [&](size_t axis) {
        part.vars.push_back(members_[axis]);
        part.extents.push_back(ir::int_imm(counts_[axis], members_[axis]->type));
      });
      part.vars.insert(part.vars.end(), loop.vars.begin(), loop.vars.end());
      part.extents.insert(part.extents.end(), loop.extents.begin(), loop.extents.end());
      const auto wanted = [&](const ir::Buffer& buffer) { return axes_of(buffer) == axes; };
      part.body = rewrite(sets.size() == 1 ? loop.body : StoresOf(wanted).rewrite(loop.body));
      parts.push_back(ir::make_stmt(std::move(part), stmt->span));
    }
    return ir::make_stmt(ir::Block{std::move(parts)}, stmt->span);
  }
};

// Where lanes share an operand
// ---------------------------------------------------------------------------------------------

constexpr int64_t kSharing = 4;

// The loop that is all of the statement.
const ir::For* sole_loop(const ir::Stmt& stmt) {
  const std::vector<ir::Stmt> all = flattened(stmt);
  return all.size() == 1 && is_thread_loop(all[0]) ? std::get_if<ir::For>(&all[0]->node) : nullptr;
}

// Its last indices are the loop's variables.
bool is_of_thread(const Access& access, const ir::For& loop) {
  if (access.buffer->scope != ir::Scope::local || access.indices.size() < loop.vars.size()) return false;
  const size_t leading = access.indices.size() - loop.vars.size();
  for (size_t k = 0; k < loop.vars.size(); ++k) {
    const auto* ref = std::get_if<ir::VarRef>(&access.indices[leading + k]->node);
    if (ref == nullptr || ref->var != loop.vars[k]) return false;
  }
  return true;
}

// Loads of it walk along memory with the last thread variable, wherever the block is.
bool is_shared(const Access& access, const ir::For& loop, const ir::Var& block) {
  if (access.is_store || access.buffer->scope != ir::Scope::global || mentions(access.indices, block)) return false;
  return contiguity({access}, loop.vars.back()) > 0;
}

// Whether blocks along the axis write elements of their own and share an operand.
bool shares_operand(const std::vector<Access>& all, const ir::For& loop, const ir::Var& block) {
  bool shares = false;
  for (const Access& access : all) {
    if (access.buffer->scope != ir::Scope::global) {
      if (!is_of_thread(access, loop)) return false;
      continue;
    }
    if (access.is_store && !mentions(access.indices, block)) return false;
    shares = shares || is_shared(access, loop, block);
  }
  return shares;
}

// Whether threads of all blocks along the axis take the loops the same way.
bool loops_alike(const ir::Stmt& body, const ir::Var& block) {
  return !contains(body, [&](const ir::Stmt& stmt) {
    const auto* loop = std::get_if<ir::For>(&stmt->node);
    return loop != nullptr && mentions(loop->extents, block);
  });
}

}  // namespace

std::optional<CoarsenedBlocks> coarsen_blocks(const ir::Kernel& kernel, const std::vector<int64_t>& counts) {
  if (!ir::sharing_buffers(kernel).empty()) return std::nullopt;
  AxisSet coarsened = 0;
  for (size_t axis = 0; axis < counts.size(); ++axis)
    if (counts[axis] > 1) coarsened |= AxisSet{1} << axis;
  auto differences = BlockDifferences(kernel, coarsened).find();
  if (coarsened == 0 || !differences) return std::nullopt;
  return BlockCoarsener(kernel, counts, coarsened, std::move(*differences)).run();
}

std::vector<int64_t> blocks_sharing_operands(const ir::Kernel& kernel) {
  std::vector<int64_t> counts(kernel.grid.size(), 1);
  const ir::For* loop = sole_loop(kernel.body);
  if (loop == nullptr || kernel.allocations.empty() || !contains<ir::For>(loop->body)) return counts;
  if (loop->vars.size() != 1 || !ir::constant_int(loop->extents[0])) return counts;
  const std::vector<Access> all = accesses({}, loop->body);
  for (size_t axis = 0; axis < kernel.block_vars.size(); ++axis) {
    const ir::Var& block = kernel.block_vars[axis];
    if (ir::constant_int(kernel.grid[axis]).value_or(kSharing) < kSharing) continue;
    if (!shares_operand(all, *loop, block) || !loops_alike(loop->body, block)) continue;
    counts[axis] = kSharing;
    break;
  }
  return counts;
}

}  // namespace tilepilot::targets::cpu
