#include "compiler/passes/threads/thread_values.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/fold.h"
#include "compiler/passes/element_form.h"

namespace tilepilot::passes {

using namespace ir;

int64_t thread_count(const Kernel& kernel) {
  return std::accumulate(kernel.threads.begin(), kernel.threads.end(), int64_t{1}, std::multiplies<>());
}

namespace {

// Lets of lets may grow without end: what is larger keeps its name.
constexpr int kMostNodes = 200;

bool is_small(const Expr& e) {
  int nodes = 0;
  walk(e, [&](const Expr&) { ++nodes; });
  return nodes <= kMostNodes;
}

// What `over` makes of each operand.
template <class Over>
std::optional<std::vector<int64_t>> folded(const std::vector<int64_t>& operands, DType type, const Over& over) {
  std::vector<int64_t> result;
  for (const int64_t operand : operands) {
    const Expr applied = over(int_imm(operand, type));
    const Expr value = constant_int(applied) ? applied : fold(applied);
    const auto constant = value ? constant_int(value) : std::nullopt;
    if (!constant) return std::nullopt;
    result.push_back(*constant);
  }
  return result;
}

}  // namespace

ThreadValues::ThreadValues(const Kernel& kernel) : count_(static_cast<size_t>(thread_count(kernel))) {
  int64_t below = 1;
  for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis) {
    std::vector<int64_t>& indices = indices_[kernel.thread_vars[axis].get()];
    for (size_t thread = 0; thread < count_; ++thread)
      indices.push_back(static_cast<int64_t>(thread) / below % kernel.threads[axis]);
    below *= kernel.threads[axis];
  }
  walk(
      kernel.body,
      [&](const Stmt& s) {
        const auto* n = as<Let>(s);
        if (!n || has_load(n->value)) return;
        if (Expr value = expanded(n->value); is_small(value)) lets_.emplace(n->var.get(), std::move(value));
      },
      [](const Expr&) {});
}

Expr ThreadValues::expanded(const Expr& e) const {
  return substitute(e, [&](const Var& var) -> Expr {
    const auto let = lets_.find(var.get());
    return let == lets_.end() ? nullptr : let->second;
  });
}

bool ThreadValues::names_thread(const Expr& expanded) const {
  bool found = false;
  walk(expanded, [&](const Expr& part) {
    const auto* ref = as<VarRef>(part);
    found |= ref && indices_.count(ref->var.get()) > 0;
  });
  return found;
}

std::optional<std::vector<int64_t>> ThreadValues::of(const Expr& e) const {
  if (const auto constant = constant_int(e)) return std::vector<int64_t>(count_, *constant);
  if (const auto* n = as<VarRef>(e)) {
    const auto index = indices_.find(n->var.get());
    return index == indices_.end() ? std::nullopt : std::optional(index->second);
  }
  if (const auto* n = as<Binary>(e)) {
    auto left = of(n->left);
    const auto right = left ? of(n->right) : std::nullopt;
    if (!right) return std::nullopt;
    for (size_t thread = 0; thread < count_; ++thread) {
      const auto value = fold(n->op, (*left)[thread], (*right)[thread], n->left->type);
      if (!value) return std::nullopt;
      (*left)[thread] = *value;
    }
    return left;
  }
  if (const auto* n = as<Select>(e)) {
    const auto condition = of(n->condition), then = of(n->then), otherwise = of(n->otherwise);
    if (!condition || !then || !otherwise) return std::nullopt;
    std::vector<int64_t> result;
    for (size_t thread = 0; thread < count_; ++thread)
      result.push_back(((*condition)[thread] != 0 ? *then : *otherwise)[thread]);
    return result;
  }
  if (const auto* n = as<Unary>(e)) {
    const auto operand = of(n->operand);
    if (!operand) return std::nullopt;
    return folded(*operand, n->operand->type, [&](Expr x) { return unary(n->op, std::move(x)); });
  }
  if (const auto* n = as<Cast>(e)) {
    const auto operand = of(n->value);
    if (!operand) return std::nullopt;
    return folded(*operand, n->value->type, [&](Expr x) { return cast(std::move(x), e->type); });
  }
  return std::nullopt;
}

namespace {

class CommonQuotients : public Rewriter {
 public:
  explicit CommonQuotients(const Kernel& kernel) : values_(kernel) {}
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    const auto* n = as<Binary>(e);
    if (!n || (n->op != BinaryOp::floor_div && n->op != BinaryOp::shr)) return rewrite_children(e);
    const Expr expanded = values_.expanded(e);
    const auto values = values_.names_thread(expanded) ? values_.of(expanded) : std::nullopt;
    if (!values || std::adjacent_find(values->begin(), values->end(), std::not_equal_to<>()) != values->end())
      return rewrite_children(e);
    return int_imm(values->front(), e->type, e->span);
  }

 private:
  const ThreadValues values_;
};

}  // namespace

Kernel with_common_quotients(const Kernel& kernel) { return CommonQuotients(kernel).rewrite(kernel); }

}  // namespace tilepilot::passes
