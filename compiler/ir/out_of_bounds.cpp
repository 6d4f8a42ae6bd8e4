#include "compiler/ir/out_of_bounds.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

class Finder {
 public:
  explicit Finder(const Kernel& kernel) {
    for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis)
      ranges_[kernel.thread_vars[axis].get()] = {0, kernel.threads[axis] - 1};
    for (size_t axis = 0; axis < kernel.block_vars.size(); ++axis)
      set_range(kernel.block_vars[axis], kernel.grid[axis]);
    visit(kernel.body);
  }
  std::vector<OutOfBoundsAccess> take() { return std::move(found_); }
  // Of buffers that are left, how many elements each axis would have to have; none of those left downwards.
  const std::unordered_map<Buffer, std::vector<int64_t>>& wanted() const { return wanted_; }

 private:
  void set_range(const Var& var, const Expr& extent) {
    if (const auto count = constant_int(extent); count && *count > 0) ranges_[var.get()] = {0, *count - 1};
  }

  void visit(const Stmt& stmt) {
    if (const auto* block = as<Block>(stmt)) {
      for (const Stmt& each : block->body) visit(each);
    } else if (const auto* loop = as<For>(stmt)) {
      visit_loop(*loop);
    } else if (const auto* store = as<Store>(stmt)) {
      access(store->buffer, store->indices, stmt->span);
      loads(store->value);
    } else if (const auto* let = as<Let>(stmt)) {
      loads(let->value);
    }
  }

  void visit_loop(const For& loop) {
    for (size_t k = 0; k < loop.vars.size(); ++k) set_range(loop.vars[k], loop.extents[k]);
    bool ends_early = false;
    walk(
        loop.body, [&](const Stmt& s) { ends_early |= as<Break>(s) || as<Continue>(s); }, [](const Expr&) {});
    if (!ends_early) visit(loop.body);
  }

  // Those that are sure to happen: operands of selections and of `and` and `or` are not.
  void loads(const Expr& expr) {
    if (const auto* load = as<Load>(expr)) access(load->buffer, load->indices, expr->span);
    if (const auto* binary = as<Binary>(expr)) {
      if (binary->op == BinaryOp::logical_and || binary->op == BinaryOp::logical_or) return;
      loads(binary->left);
      loads(binary->right);
    }
    if (const auto* cast = as<Cast>(expr)) loads(cast->value);
    if (const auto* unary = as<Unary>(expr)) loads(unary->operand);
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices, Span span) {
    if (buffer->scope == Scope::global || buffer->scope == Scope::barrier) return;
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      const auto extent = constant_int(buffer->shape[axis]);
      const auto form = affine(indices[axis]);
      if (!extent || !form || !is_known(*form)) continue;
      const auto range = bounds(*form, ranges_);
      if (!range || (range->lo >= 0 && range->hi < *extent)) continue;
      if (reported_.insert(buffer.get()).second) found_.push_back({span, buffer, axis, *range});
      want(buffer, axis, *range);
    }
  }

  void want(const Buffer& buffer, size_t axis, Bounds range) {
    std::vector<int64_t>& extents = wanted_[buffer];
    extents.resize(buffer->shape.size());
    constexpr int64_t kNone = -1;
    if (range.lo < 0 || extents[axis] == kNone)
      extents[axis] = kNone;
    else
      extents[axis] = std::max(extents[axis], range.hi + 1);
  }

  // Then the ends of the interval are reached.
  bool is_known(const Affine& form) const {
    for (const Affine::Term& term : form.terms)
      if (!ranges_.contains(term.var.get())) return false;
    return true;
  }

  VarRanges ranges_;
  std::unordered_set<const BufferData*> reported_;
  std::vector<OutOfBoundsAccess> found_;
  std::unordered_map<Buffer, std::vector<int64_t>> wanted_;
};

}  // namespace

std::vector<OutOfBoundsAccess> accesses_out_of_bounds(const Kernel& kernel) { return Finder(kernel).take(); }

Replacements wider_fragments(const Kernel& kernel) {
  const Finder finder(kernel);
  Replacements wider;
  for (const auto& [buffer, extents] : finder.wanted()) {
    const bool has_views = std::any_of(kernel.allocations.begin(), kernel.allocations.end(),
                                       [&, of = buffer](const Buffer& other) { return other->base == of; });
    const bool below = std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent < 0; });
    if (buffer->scope != Scope::fragment || buffer->base || has_views || below) continue;
    BufferData data = *buffer;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      if (extents[axis] > 0) data.shape[axis] = int_imm(extents[axis], data.shape[axis]->type, data.span);
    wider.emplace(buffer.get(), std::make_shared<BufferData>(std::move(data)));
  }
  return wider;
}

}  // namespace tilepilot::ir
