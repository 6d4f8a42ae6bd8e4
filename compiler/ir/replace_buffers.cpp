#include "compiler/ir/replace_buffers.h"

#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

class Replace : public Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Replace(const Replacements& by) : by_(by) {}
  Expr rewrite(const Expr& expr) override {
    const Expr inner = rewrite_children(expr);
    const auto* read = as<Load>(inner);
    return read && by_.contains(read->buffer.get()) ? load(by_.at(read->buffer.get()), read->indices, expr->span)
                                                    : inner;
  }
  Stmt rewrite(const Stmt& stmt) override {
    const Stmt inner = rewrite_children(stmt);
    const auto* store = as<Store>(inner);
    if (store == nullptr || !by_.contains(store->buffer.get())) return inner;
    return make_stmt(Store{by_.at(store->buffer.get()), store->indices, store->value}, stmt->span);
  }

 protected:
  Region rewrite_region(const Region& region) override {
    Region result = Rewriter::rewrite_region(region);
    if (const auto found = by_.find(region.buffer.get()); found != by_.end()) result.buffer = found->second;
    return result;
  }

 private:
  const Replacements& by_;
};

}  // namespace

Stmt replace_buffers(const Stmt& stmt, const Replacements& by) { return Replace(by).rewrite(stmt); }

Buffer as_shared(const Buffer& fragment, const Replacements& by) {
  BufferData data = *fragment;
  data.scope = Scope::shared;
  if (data.base) data.base = by.at(data.base.get());
  return std::make_shared<BufferData>(std::move(data));
}

Kernel replace_buffers(const Kernel& kernel, const Replacements& by) {
  if (by.empty()) return kernel;
  Kernel result = kernel;
  for (Buffer& buffer : result.allocations)
    if (const auto found = by.find(buffer.get()); found != by.end()) buffer = found->second;
  for (RequestedLayout& request : result.layouts)
    if (const auto found = by.find(request.buffer.get()); found != by.end()) request.buffer = found->second;
  result.body = replace_buffers(kernel.body, by);
  return result;
}

}  // namespace tilepilot::ir
