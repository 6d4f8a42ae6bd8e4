#include "compiler/targets/cpu/join_blocks.h"

#include "compiler/targets/cpu/loop_body.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kJoined = 4;

// The loop that is all of the statement.
const ir::For* only_loop(const ir::Stmt& stmt) {
  if (const auto* block = std::get_if<ir::Block>(&stmt->node))
    return block->body.size() == 1 ? only_loop(block->body[0]) : nullptr;
  const auto* loop = std::get_if<ir::For>(&stmt->node);
  return loop != nullptr && loop->kind == ir::LoopKind::parallel ? loop : nullptr;
}

IntegerFacts facts_of(const ir::Stmt& body) {
  IntegerFacts facts;
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        const auto* let = std::get_if<ir::Let>(&stmt->node);
        if (let != nullptr && is_index_arithmetic(let->value)) facts.set_value(let->var, let->value);
      },
      [](const ir::Expr&) {});
  return facts;
}

// Its last indices are the loop's variables.
bool is_own(const Access& access, const ir::For& loop) {
  if (access.buffer->scope != ir::Scope::local || access.buffer->base || access.buffer->address) return false;
  if (access.indices.size() < loop.vars.size()) return false;
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
bool is_joinable(const std::vector<Access>& all, const ir::For& loop, const ir::Var& block) {
  bool shares = false;
  for (const Access& access : all) {
    if (access.buffer->scope != ir::Scope::global) {
      if (!is_own(access, loop)) return false;
      continue;
    }
    if (access.is_store && !mentions(access.indices, block)) return false;
    shares = shares || is_shared(access, loop, block);
  }
  return shares;
}

// Whether threads of all blocks along the axis take the loops the same way.
bool loops_alike(const IntegerFacts& facts, const ir::Stmt& body, const ir::Var& block) {
  bool alike = true;
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        const auto* loop = std::get_if<ir::For>(&stmt->node);
        alike = alike && !(loop != nullptr && mentions(facts.expand(loop->extents[0]), block));
      },
      [](const ir::Expr&) {});
  return alike;
}

class Joiner : public ir::Rewriter {
 public:
  Joiner(const ir::For& loop, const ir::Var& block, const std::vector<ir::Buffer>& buffers)
      : threads_(loop.vars.size()), block_(block), member_(ir::make_var(block->name + "_1", block->type)) {
    for (const ir::Buffer& buffer : buffers) {
      ir::BufferData data = *buffer;
      data.shape.insert(data.shape.end() - static_cast<std::ptrdiff_t>(threads_), ir::int_imm(kJoined));
      joined_.emplace(buffer.get(), std::make_shared<ir::BufferData>(std::move(data)));
    }
  }
  using ir::Rewriter::rewrite;

  const ir::Var& member() const { return member_; }
  const ir::Buffer& joined(const ir::Buffer& buffer) const { return joined_.at(buffer.get()); }

  ir::Expr rewrite(const ir::Expr& expr) override {
    if (const auto* ref = std::get_if<ir::VarRef>(&expr->node); ref != nullptr && ref->var == block_)
      return ir::binary(ir::BinaryOp::add, expr, ir::var_ref(member_));
    const auto* load = std::get_if<ir::Load>(&expr->node);
    if (load == nullptr || !joined_.contains(load->buffer.get())) return rewrite_children(expr);
    return ir::load(joined(load->buffer), element(load->indices), expr->span);
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store == nullptr || !joined_.contains(store->buffer.get())) return rewrite_children(stmt);
    return ir::make_stmt(ir::Store{joined(store->buffer), element(store->indices), rewrite(store->value)}, stmt->span);
  }

 private:
  size_t threads_;
  ir::Var block_, member_;
  std::unordered_map<const ir::BufferData*, ir::Buffer> joined_;

  std::vector<ir::Expr> element(const std::vector<ir::Expr>& indices) {
    std::vector<ir::Expr> result = rewrite_all(indices);
    result.insert(result.end() - static_cast<std::ptrdiff_t>(threads_), ir::var_ref(member_));
    return result;
  }
};

ir::Kernel joined_along(const ir::Kernel& kernel, const ir::For& loop, size_t axis) {
  const ir::Var& block = kernel.block_vars[axis];
  Joiner joiner(loop, block, kernel.allocations);
  ir::For body = loop;
  body.body = joiner.rewrite(loop.body);
  body.vars.insert(body.vars.begin(), joiner.member());
  body.extents.insert(body.extents.begin(), ir::int_imm(kJoined, block->type));
  ir::Kernel result = kernel;
  for (ir::Buffer& buffer : result.allocations) buffer = joiner.joined(buffer);
  // The last joined block is the last of the grid at most.
  if (const auto extent = ir::constant_int(kernel.grid[axis]))
    result.grid[axis] = ir::int_imm(std::max<int64_t>(*extent - kJoined + 1, 1), kernel.grid[axis]->type);
  result.body = ir::make_stmt(ir::Block{{ir::make_stmt(std::move(body), kernel.body->span)}}, kernel.body->span);
  return result;
}

}  // namespace

std::optional<JoinedBlocks> join_blocks(const ir::Kernel& kernel) {
  const ir::For* loop = only_loop(kernel.body);
  if (loop == nullptr || kernel.allocations.empty() || !contains<ir::For>(loop->body)) return std::nullopt;
  if (contains<ir::While, ir::Atomic, ir::Barrier, ir::Check, ir::Print, ir::ExternCall>(loop->body))
    return std::nullopt;
  if (loop->vars.size() != 1 || !ir::constant_int(loop->extents[0])) return std::nullopt;
  const IntegerFacts facts = facts_of(kernel.body);
  const std::vector<Access> all = accesses(facts, loop->body);
  for (size_t axis = 0; axis < kernel.block_vars.size(); ++axis) {
    const ir::Var& block = kernel.block_vars[axis];
    if (ir::constant_int(kernel.grid[axis]).value_or(kJoined) < kJoined) continue;
    if (is_joinable(all, *loop, block) && loops_alike(facts, loop->body, block))
      return JoinedBlocks{axis, kJoined, joined_along(kernel, *loop, axis)};
  }
  return std::nullopt;
}

}  // namespace tilepilot::targets::cpu
