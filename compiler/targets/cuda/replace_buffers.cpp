#include "compiler/targets/cuda/replace_buffers.h"

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cuda {
namespace {

class Replace : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Replace(const Replacements& by) : by_(by) {}
  ir::Expr rewrite(const ir::Expr& expr) override {
    const ir::Expr inner = rewrite_children(expr);
    const auto* load = ir::as<ir::Load>(inner);
    return load && by_.contains(load->buffer.get()) ? ir::load(by_.at(load->buffer.get()), load->indices, expr->span)
                                                    : inner;
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const ir::Stmt inner = rewrite_children(stmt);
    const auto* store = ir::as<ir::Store>(inner);
    if (store == nullptr || !by_.contains(store->buffer.get())) return inner;
    return ir::make_stmt(ir::Store{by_.at(store->buffer.get()), store->indices, store->value}, stmt->span);
  }

 protected:
  ir::Region rewrite_region(const ir::Region& region) override {
    ir::Region result = Rewriter::rewrite_region(region);
    if (const auto found = by_.find(region.buffer.get()); found != by_.end()) result.buffer = found->second;
    return result;
  }

 private:
  const Replacements& by_;
};

}  // namespace

ir::Stmt replace_buffers(const ir::Stmt& stmt, const Replacements& by) { return Replace(by).rewrite(stmt); }

ir::Buffer as_shared(const ir::Buffer& fragment, const Replacements& by) {
  ir::BufferData data = *fragment;
  data.scope = ir::Scope::shared;
  if (data.base) data.base = by.at(data.base.get());
  return std::make_shared<ir::BufferData>(std::move(data));
}

ir::Kernel replace_buffers(const ir::Kernel& kernel, const Replacements& by) {
  if (by.empty()) return kernel;
  ir::Kernel result = kernel;
  for (ir::Buffer& buffer : result.allocations)
    if (const auto found = by.find(buffer.get()); found != by.end()) buffer = found->second;
  result.body = replace_buffers(kernel.body, by);
  return result;
}

}  // namespace tilepilot::targets::cuda
