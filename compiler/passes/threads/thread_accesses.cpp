#include "compiler/passes/threads/thread_accesses.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/bounds.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/element_form.h"
#include "compiler/passes/threads/roles.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr int64_t kForever = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostValues = 256;  // that are kept one by one

// How many iterations a loop over this variable has at most; nothing if it is none of this loop's.
std::optional<int64_t> extent_of(const Stmt& loop, const Expr& part) {
  const auto* n = as<For>(loop);
  const auto* ref = as<VarRef>(part);
  for (size_t k = 0; n && ref && k < n->vars.size(); ++k) {
    if (n->vars[k] == ref->var) return constant_int(n->extents[k]).value_or(kForever);
  }
  return std::nullopt;
}

// The values of an expression of one variable of this loop, an iteration each; nothing if it is none, or there are
// many.
std::optional<std::vector<int64_t>> values_in(const Stmt& loop, const Expr& part) {
  const auto* n = as<For>(loop);
  if (n == nullptr || has_load(part)) return std::nullopt;
  const VarData* var = nullptr;
  bool one = true;
  walk(part, [&](const Expr& inner) {
    const auto* ref = as<VarRef>(inner);
    if (ref) one = one && (!var || var == ref->var.get());
    if (ref) var = ref->var.get();
  });
  for (size_t k = 0; one && k < n->vars.size(); ++k) {
    const int64_t extent = constant_int(n->extents[k]).value_or(kForever);
    if (n->vars[k].get() != var || extent > kMostValues) continue;
    std::vector<int64_t> values;
    for (int64_t i = 0; i < extent; ++i) {
      const Bounds value = bounds(part, {{var, {i, i}}});
      if (!value.is_constant()) return std::nullopt;
      values.push_back(value.lo);
    }
    return values;
  }
  return std::nullopt;
}

// All sums of a number of either; none if there are too many.
std::vector<int64_t> sums_of(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> sums;
  if (a.size() * b.size() <= kMostValues * kMostValues)
    for (const int64_t x : a)
      for (const int64_t y : b) sums.push_back(x + y);
  std::sort(sums.begin(), sums.end());
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  if (sums.size() > static_cast<size_t>(kMostValues)) sums.clear();
  return sums;
}

bool same_terms(const std::vector<Sum::Term>& a, const std::vector<Sum::Term>& b) {
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end(), [](const Sum::Term& x, const Sum::Term& y) {
    return x.coefficient == y.coefficient && structurally_equal(x.part, y.part);
  });
}

// The axes along which two accesses can be compared, `later` being `step` further in each iteration that lies between.
struct Compared {
  ThreadAccess::Axis earlier, later;
  int64_t step;
  std::vector<int64_t> apart;  // how far what inner loops add may be apart, in order; none: as far as their ranges are

  Compared(const ThreadAccess::Axis& a, const ThreadAccess::Axis& b, int64_t step_)
      : earlier(a), later(b), step(step_) {
    std::vector<int64_t> negated;
    for (const int64_t number : earlier.added) negated.push_back(-number);
    if (step == 0) apart = sums_of(later.added, negated);
  }
};

// Whether two threads meet in all axes after the same number of iterations, at most `iterations`, or after none.
bool coincide(const std::vector<Compared>& axes, size_t first, size_t second, int64_t iterations) {
  int64_t least = iterations == 0 ? 0 : 1, most = iterations;
  for (const Compared& axis : axes) {
    const int64_t apart = axis.earlier.of_thread[first] - axis.later.of_thread[second];
    int64_t lo = apart + axis.earlier.lo - axis.later.hi, hi = apart + axis.earlier.hi - axis.later.lo;
    if (axis.step == 0) {
      if (lo > 0 || hi < 0) return false;
      if (!axis.apart.empty() && !std::binary_search(axis.apart.begin(), axis.apart.end(), apart)) return false;
      continue;
    }
    if (axis.step < 0) {
      lo = -lo;
      hi = -hi;
      std::swap(lo, hi);
    }
    const int64_t step = std::abs(axis.step);
    least = std::max(least, -static_cast<int64_t>(floor_div(-lo, step)));
    most = std::min(most, static_cast<int64_t>(floor_div(hi, step)));
  }
  return least <= most;
}

bool any_coincide(const std::vector<Compared>& axes, const ThreadAccess& earlier, const ThreadAccess& later,
                  int64_t iterations) {
  for (size_t first = 0; first < earlier.by.size(); ++first) {
    if (!earlier.by[first]) continue;
    for (size_t second = 0; second < later.by.size(); ++second) {
      const bool together = first == second || (earlier.warps_met && first / kWarp == second / kWarp);
      if (!together && later.by[second] && coincide(axes, first, second, iterations)) return true;
    }
  }
  return false;
}

// An index of two axes in one, if they are the quotient and the remainder of one number by the length of the second:
// `tile[x // n, x % n]`; else null.
Expr joined(const Expr& row, const Expr& column, int64_t length) {
  const auto* rest = as<Binary>(column);
  if (!rest || rest->op != BinaryOp::floor_mod || constant_int(rest->right) != length) return nullptr;
  const Sum rows = sum_of(row);
  if (!rows.fits) return nullptr;
  const auto is_quotient = [&](const Sum::Term& term) {
    const auto* node = as<Binary>(term.part);
    return term.coefficient == 1 && node && node->op == BinaryOp::floor_div && constant_int(node->right) == length &&
           structurally_equal(node->left, rest->left);
  };
  const auto quotient = std::find_if(rows.terms.begin(), rows.terms.end(), is_quotient);
  if (quotient == rows.terms.end()) return nullptr;
  const DType type = rest->left->type;
  Expr result = binary(BinaryOp::add, rest->left, int_imm(rows.constant * length, type));
  for (auto term = rows.terms.begin(); term != rows.terms.end(); ++term) {
    if (term == quotient) continue;
    const Expr part = binary(BinaryOp::mul, cast(term->part, type), int_imm(term->coefficient * length, type));
    result = binary(BinaryOp::add, result, part);
  }
  return result;
}

// An axis of what is inside the loop, outside of it; false if it may be any index there.
bool leave(ThreadAccess::Axis& axis, const Stmt& loop, const Variables& bound) {
  std::vector<Sum::Term> outer;
  for (const Sum::Term& term : axis.shared) {
    if (!mentions(term.part, bound)) {
      outer.push_back(term);
      continue;
    }
    if (const auto values = values_in(loop, term.part)) {
      std::vector<int64_t> multiples;
      for (const int64_t value : *values) multiples.push_back(value * term.coefficient);
      const auto [least, most] = std::minmax_element(multiples.begin(), multiples.end());
      axis.lo += multiples.empty() ? 0 : *least;
      axis.hi += multiples.empty() ? 0 : *most;
      axis.added = sums_of(axis.added, multiples);
      continue;
    }
    const auto extent = extent_of(loop, term.part);
    if (!extent || *extent == kForever) return false;
    const int64_t last = (*extent - 1) * term.coefficient;
    (last < 0 ? axis.lo : axis.hi) += last;
    axis.added.clear();
  }
  axis.shared = std::move(outer);
  return true;
}

// A remainder may be any, whatever it is of: how many there are; nothing for other expressions.
std::optional<int64_t> remainders(const Expr& part) {
  const auto* n = as<Binary>(part);
  if (!n || n->op != BinaryOp::floor_mod) return std::nullopt;
  const auto divisor = constant_int(n->right);
  return divisor && *divisor >= 1 && *divisor <= kMostValues ? divisor : std::nullopt;
}

void add_any(ThreadAccess::Axis& axis, int64_t count, int64_t coefficient) {
  std::vector<int64_t> multiples;
  for (int64_t value = 0; value < count; ++value) multiples.push_back(value * coefficient);
  const int64_t last = (count - 1) * coefficient;
  (last < 0 ? axis.lo : axis.hi) += last;
  axis.added = sums_of(axis.added, multiples);
}

// Reads do not disturb each other, nor do atomics.
bool may_conflict(const ThreadAccess& a, const ThreadAccess& b) {
  if (memory_of(*a.buffer) != memory_of(*b.buffer)) return false;
  if (a.buffer->scope == Scope::global && !a.past_operator && !b.past_operator) return false;
  return a.kind == AccessKind::write || b.kind == AccessKind::write || a.kind != b.kind;
}

}  // namespace

class ThreadAccesses::Collector {
 public:
  explicit Collector(const ThreadAccesses& accesses) : accesses_(accesses) {}
  std::vector<ThreadAccess> result;

  void add(const Stmt& s, const std::vector<bool>& by) {
    if (const auto* n = as<If>(s)) {
      read(n->condition, by);
      const Expr condition = accesses_.values_.expanded(n->condition);
      add(n->then, accesses_.where(condition, true, by));
      if (n->otherwise) add(n->otherwise, accesses_.where(condition, false, by));
      return;
    }
    if (is_loop(s)) return add_loop(s, by);
    if (const auto* n = as<Block>(s)) {
      for (const Stmt& child : n->body) add(child, by);
      return;
    }
    walk(
        s, [](const Stmt&) {}, [&](const Expr& part) { read_part(part, by); });
    if (const auto* n = as<Store>(s)) note(n->buffer, AccessKind::write, &n->indices, by);
    if (const auto* n = as<Atomic>(s)) note(n->element.buffer, AccessKind::atomic, &n->element.start, by);
    if (const auto* n = as<ExternCall>(s)) {
      for (const auto& argument : n->arguments) {
        if (const auto* region = std::get_if<Region>(&argument)) note(region->buffer, AccessKind::write, nullptr, by);
      }
    }
    // Of what a warp loads together a thread names a part alone.
    if (!is_tile_operator(*s) && !as<LoadMatrix>(s)) return;
    const ir::Accesses regions = region_accesses(s);
    for (const Region* region : regions.reads) note(region->buffer, AccessKind::read, nullptr, by);
    for (const Region* region : regions.writes) note(region->buffer, AccessKind::write, nullptr, by);
  }

  void read(const Expr& e, const std::vector<bool>& by) {
    walk(e, [&](const Expr& part) { read_part(part, by); });
  }

 private:
  void add_loop(const Stmt& s, const std::vector<bool>& by) {
    Collector body(accesses_);
    if (const auto* n = as<For>(s)) {
      for (const Expr& extent : n->extents) read(extent, by);
    }
    if (const auto* n = as<While>(s)) body.read(n->condition, by);
    for (const Stmt& child : bodies(s)) body.add(child, by);
    std::vector<ThreadAccess> inner = accesses_.of_loop(std::move(body.result), s);
    std::move(inner.begin(), inner.end(), std::back_inserter(result));
  }

  void read_part(const Expr& part, const std::vector<bool>& by) {
    if (const auto* n = as<Load>(part)) note(n->buffer, AccessKind::read, &n->indices, by);
  }

  void note(const Buffer& buffer, AccessKind kind, const std::vector<Expr>* indices, const std::vector<bool>& by) {
    if (buffer->scope != Scope::shared && buffer->scope != Scope::global && !memory_of(buffer)->reducer) return;
    ThreadAccess access{buffer.get(), kind, std::vector<ThreadAccess::Axis>(buffer->rank()), by};
    for (size_t axis = 0; indices && axis < indices->size(); ++axis)
      access.axes[axis] = accesses_.axis((*indices)[axis]);
    if (indices && indices->size() > 1) {
      const size_t last = indices->size() - 1;
      const auto length = constant_int(buffer->shape[last]);
      const auto expanded = [&](size_t axis) { return accesses_.values_.expanded((*indices)[axis]); };
      const Expr both = length ? joined(expanded(last - 1), expanded(last), *length) : nullptr;
      if (both) access.axes.push_back(accesses_.axis(both));  // says more than the two
    }
    result.push_back(std::move(access));
  }

  const ThreadAccesses& accesses_;
};

std::vector<ThreadAccess> ThreadAccesses::of(const Stmt& s, const std::vector<bool>& by) const {
  Collector collector(*this);
  collector.add(s, by);
  return std::move(collector.result);
}

std::vector<ThreadAccess> ThreadAccesses::of(const std::vector<Expr>& exprs, const std::vector<bool>& by) const {
  Collector collector(*this);
  for (const Expr& e : exprs) collector.read(e, by);
  return std::move(collector.result);
}

std::vector<bool> ThreadAccesses::all_threads() const {
  return std::vector<bool>(static_cast<size_t>(thread_count(kernel_)), true);
}

std::vector<bool> ThreadAccesses::where(const Expr& condition, bool holds, std::vector<bool> by) const {
  const Expr expanded = values_.expanded(condition);
  const auto* both = as<Binary>(expanded);
  if (both && both->op == (holds ? BinaryOp::logical_and : BinaryOp::logical_or))
    return where(both->right, holds, where(both->left, holds, std::move(by)));
  if (const auto values = values_.of(expanded)) {
    for (size_t thread = 0; thread < by.size(); ++thread) by[thread] = by[thread] && ((*values)[thread] != 0) == holds;
  }
  return by;
}

ThreadAccess::Axis ThreadAccesses::axis(const Expr& index) const {
  const Sum sum = sum_of(values_.expanded(index));
  if (!sum.fits) return {};
  ThreadAccess::Axis result;
  result.known = true;
  result.of_thread.assign(static_cast<size_t>(thread_count(kernel_)), sum.constant);
  for (const Sum::Term& term : sum.terms) {
    const auto any = remainders(term.part);
    if (!values_.names_thread(term.part)) {
      const bool is_shared = !has_load(term.part) && !differences_.differs(term.part);
      if (!is_shared && !any) return {};
      if (is_shared)
        result.shared.push_back(term);
      else
        add_any(result, *any, term.coefficient);
      continue;
    }
    const auto values = values_.of(term.part);
    if (!values && !any) return {};
    if (!values) {
      add_any(result, *any, term.coefficient);
      continue;
    }
    for (size_t thread = 0; thread < values->size(); ++thread)
      result.of_thread[thread] += term.coefficient * (*values)[thread];
  }
  return result;
}

std::vector<ThreadAccess> ThreadAccesses::of_loop(std::vector<ThreadAccess> accesses, const Stmt& loop) const {
  const auto bound = bound_in(loop);
  for (ThreadAccess& access : accesses) {
    for (ThreadAccess::Axis& axis : access.axes) {
      if (axis.known && !leave(axis, loop, bound)) axis = {};
    }
  }
  return accesses;
}

bool ThreadAccesses::conflict(const ThreadAccess& earlier, const ThreadAccess& later) const {
  if (!may_conflict(earlier, later)) return false;
  std::vector<Compared> compared;
  for (size_t axis = 0; earlier.buffer == later.buffer && axis < std::min(earlier.axes.size(), later.axes.size());
       ++axis) {
    const auto &a = earlier.axes[axis], &b = later.axes[axis];
    if (a.known && b.known && same_terms(a.shared, b.shared)) compared.emplace_back(a, b, 0);
  }
  return any_coincide(compared, earlier, later, 0);
}

bool ThreadAccesses::conflict_in(const Stmt& loop, bool next_only, const ThreadAccess& earlier,
                                 const ThreadAccess& later) const {
  if (!may_conflict(earlier, later)) return false;
  const auto bound = bound_in(loop);
  // The step from one iteration to the next; nothing if the index changes in another way.
  const auto step_of = [&](const ThreadAccess::Axis& axis) -> std::optional<int64_t> {
    int64_t step = 0;
    for (const Sum::Term& term : axis.shared) {
      if (!mentions(term.part, bound)) continue;
      if (!extent_of(loop, term.part)) return std::nullopt;
      step += term.coefficient;
    }
    return step;
  };
  std::vector<Compared> compared;
  for (size_t axis = 0; earlier.buffer == later.buffer && axis < std::min(earlier.axes.size(), later.axes.size());
       ++axis) {
    const auto &a = earlier.axes[axis], &b = later.axes[axis];
    if (!a.known || !b.known) continue;
    if (const auto step = same_terms(a.shared, b.shared) ? step_of(a) : std::nullopt)
      compared.emplace_back(a, b, *step);
    // Whichever iterations the two are of.
    ThreadAccess::Axis of_any = a, of_other = b;
    if (leave(of_any, loop, bound) && leave(of_other, loop, bound) && same_terms(of_any.shared, of_other.shared))
      compared.emplace_back(std::move(of_any), std::move(of_other), 0);
  }
  const auto* n = as<For>(loop);
  const int64_t extent = n && n->extents.size() == 1 ? constant_int(n->extents[0]).value_or(kForever) : kForever;
  const int64_t most = next_only ? std::min<int64_t>(extent - 1, 1) : extent - 1;
  return most > 0 && any_coincide(compared, earlier, later, most);
}

}  // namespace tilepilot::passes
