#include "compiler/targets/cpu/plan/split_threads.h"

#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {
namespace {

// The loop over threads in one row, or null; and how many there are.
const ir::For* row_of_threads(const ir::Stmt& stmt) {
  const auto* loop = std::get_if<ir::For>(&stmt->node);
  const bool is_row = loop != nullptr && loop->kind == ir::LoopKind::parallel && loop->vars.size() == 1;
  return is_row && ir::constant_int(loop->extents[0]) ? loop : nullptr;
}

// Quotient or remainder of a variable.
const ir::Binary* division_of(const ir::Expr& expr, const ir::Var& var) {
  const auto* node = std::get_if<ir::Binary>(&expr->node);
  const bool divides = node != nullptr && (node->op == ir::BinaryOp::floor_div || node->op == ir::BinaryOp::floor_mod);
  const auto* ref = divides ? std::get_if<ir::VarRef>(&node->left->node) : nullptr;
  return ref != nullptr && ref->var == var ? node : nullptr;
}

// Local buffers whose last axis is the thread's wherever they are used.
std::unordered_set<const ir::BufferData*> buffers_of_threads(const ir::Kernel& kernel, int64_t threads) {
  ir::Variables thread_vars;
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        if (const ir::For* loop = row_of_threads(stmt)) thread_vars.insert(loop->vars[0].get());
      },
      [](const ir::Expr&) {});
  std::unordered_set<const ir::BufferData*> found;
  for (const ir::Buffer& buffer : kernel.allocations)
    if (buffer->scope == ir::Scope::local && ir::constant_int(buffer->shape.back()) == threads)
      found.insert(buffer.get());
  for (const ir::BufferData* buffer : ir::sharing_buffers(kernel)) found.erase(buffer);
  for (const Access& access : accesses({}, kernel.body)) {
    const auto* ref = std::get_if<ir::VarRef>(&access.indices.back()->node);
    if (ref == nullptr || !thread_vars.contains(ref->var.get())) found.erase(access.buffer.get());
  }
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        const ir::Accesses regions = ir::region_accesses(stmt);
        for (const auto* part : {&regions.reads, &regions.writes})
          for (const ir::Region* region : *part) found.erase(region->buffer.get());
      },
      [](const ir::Expr&) {});
  return found;
}

class ThreadSplitter : public ir::Rewriter {
 public:
  ThreadSplitter(const ir::Kernel& kernel, int64_t threads, int64_t row) : threads_(threads), row_(row) {
    const auto own = buffers_of_threads(kernel, threads);
    for (const ir::Buffer& buffer : kernel.allocations) {
      if (!own.contains(buffer.get())) continue;
      ir::BufferData data = *buffer;
      data.shape.back() = ir::int_imm(threads / row);
      data.shape.push_back(ir::int_imm(row));
      split_.emplace(buffer.get(), std::make_shared<ir::BufferData>(std::move(data)));
    }
  }
  using ir::Rewriter::rewrite;

  ir::Buffer buffer(const ir::Buffer& given) const {
    const auto found = split_.find(given.get());
    return found == split_.end() ? given : found->second;
  }

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store != nullptr && split_.contains(store->buffer.get()))
      return ir::make_stmt(ir::Store{buffer(store->buffer), element(store->indices), rewrite(store->value)},
                           stmt->span);
    const ir::For* loop = row_of_threads(stmt);
    if (loop == nullptr || ir::constant_int(loop->extents[0]) != threads_) return rewrite_children(stmt);
    const ir::DType type = loop->vars[0]->type;
    thread_ = loop->vars[0];
    outer_ = ir::make_var(thread_->name + "_row", type);
    inner_ = ir::make_var(thread_->name, type);
    ir::For result = *loop;
    result.vars = {outer_, inner_};
    result.extents = {ir::int_imm(threads_ / row_, type), ir::int_imm(row_, type)};
    result.body = rewrite(loop->body);
    thread_ = nullptr;
    return ir::make_stmt(std::move(result), stmt->span);
  }

  ir::Expr rewrite(const ir::Expr& expr) override {
    const auto* load = std::get_if<ir::Load>(&expr->node);
    if (load != nullptr && split_.contains(load->buffer.get()))
      return ir::load(buffer(load->buffer), element(load->indices), expr->span);
    if (thread_ == nullptr) return rewrite_children(expr);
    if (const ir::Binary* division = division_of(expr, thread_); division && ir::constant_int(division->right) == row_)
      return ir::var_ref(division->op == ir::BinaryOp::floor_div ? outer_ : inner_);
    const auto* ref = std::get_if<ir::VarRef>(&expr->node);
    if (ref == nullptr || ref->var != thread_) return rewrite_children(expr);
    const ir::Expr row = ir::binary(ir::BinaryOp::mul, ir::var_ref(outer_), ir::int_imm(row_, thread_->type));
    return ir::binary(ir::BinaryOp::add, row, ir::var_ref(inner_));
  }

 private:
  const int64_t threads_, row_;
  std::unordered_map<const ir::BufferData*, ir::Buffer> split_;
  ir::Var thread_, outer_, inner_;

  std::vector<ir::Expr> element(const std::vector<ir::Expr>& given) {
    std::vector<ir::Expr> indices(given.begin(), given.end() - 1);
    indices = rewrite_all(indices);
    const ir::Expr& last = given.back();
    const ir::Expr row = ir::int_imm(row_, last->type);
    indices.push_back(rewrite(ir::binary(ir::BinaryOp::floor_div, last, row)));
    indices.push_back(rewrite(ir::binary(ir::BinaryOp::floor_mod, last, row)));
    return indices;
  }
};

int64_t count_threads(const ir::Kernel& kernel) {
  int64_t threads = 1;
  for (const int64_t extent : kernel.threads) threads *= extent;
  return threads;
}

}  // namespace

std::vector<int64_t> thread_rows(const ir::Kernel& kernel) {
  const int64_t threads = count_threads(kernel);
  std::vector<int64_t> rows;
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        const ir::For* loop = row_of_threads(stmt);
        if (loop == nullptr || ir::constant_int(loop->extents[0]) != threads) return;
        ir::walk(
            loop->body, [](const ir::Stmt&) {},
            [&](const ir::Expr& expr) {
              const ir::Binary* division = division_of(expr, loop->vars[0]);
              const int64_t row = division ? ir::constant_int(division->right).value_or(0) : 0;
              const bool is_row = row > 1 && row < threads && threads % row == 0;
              if (is_row && std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
            });
      },
      [](const ir::Expr&) {});
  return rows;
}

ir::Kernel split_threads(const ir::Kernel& kernel, int64_t row) {
  ThreadSplitter splitter(kernel, count_threads(kernel), row);
  ir::Kernel result = kernel;
  result.body = splitter.rewrite(kernel.body);
  for (ir::Buffer& buffer : result.allocations) buffer = splitter.buffer(buffer);
  return result;
}

}  // namespace tilepilot::targets::cpu
