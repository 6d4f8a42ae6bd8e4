#include "compiler/targets/cuda/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/ir/search.h"
#include "compiler/layout/partition.h"
#include "compiler/layout/reshape.h"
#include "compiler/targets/cuda/conversions.h"
#include "compiler/targets/cuda/coordinates.h"
#include "compiler/targets/cuda/replicas.h"
#include "compiler/targets/cuda/statements.h"
#include "compiler/targets/cuda/static_index.h"
#include "compiler/targets/cuda/tile_places.h"

namespace tilepilot::targets::cuda {

using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using ir::Var;
using layout::Fragment;
using layout::Shape;

namespace {

Shape shape_of(const Buffer& buffer) {
  Shape shape;
  for (const Expr& extent : buffer->shape) shape.push_back(ir::constant_int(extent).value_or(1));
  return shape;
}

// One use of a fragment or tensor by element.
struct Use {
  Buffer buffer;
  std::vector<Expr> indices;
};

std::vector<Use> uses_of(const Stmt& stmt) {
  std::vector<Use> uses;
  ir::walk(
      stmt,
      [&](const Stmt& part) {
        if (const auto* store = ir::as<ir::Store>(part)) uses.push_back({store->buffer, store->indices});
        if (const auto* atomic = ir::as<ir::Atomic>(part))
          uses.push_back({atomic->element.buffer, atomic->element.start});
      },
      [&](const Expr& part) {
        if (const auto* load = ir::as<ir::Load>(part)) uses.push_back({load->buffer, load->indices});
      });
  return uses;
}

// Which loop variable is the index of each axis of a buffer; none where the axis has one element.
using Pattern = std::vector<std::optional<size_t>>;
std::optional<Pattern> pattern_of(const Use& use, const std::vector<Var>& vars) {
  Pattern pattern;
  std::vector<bool> seen(vars.size(), false);
  const Shape shape = shape_of(use.buffer);
  for (size_t axis = 0; axis < use.indices.size(); ++axis) {
    const auto* ref = ir::as<ir::VarRef>(without_casts(use.indices[axis]));
    const auto found = ref == nullptr ? vars.end() : std::find(vars.begin(), vars.end(), ref->var);
    if (found == vars.end()) {
      if (shape[axis] != 1) return std::nullopt;
      pattern.emplace_back();
      continue;
    }
    const auto number = static_cast<size_t>(found - vars.begin());
    if (seen[number]) return std::nullopt;
    seen[number] = true;
    pattern.emplace_back(number);
  }
  return pattern;
}

class Inferrer {
 public:
  Inferrer(const ir::Kernel& kernel, Architecture architecture)
      : kernel_(kernel),
        architecture_(architecture),
        threads_(thread_count(kernel)),
        viewed_(ir::sharing_buffers(kernel)) {}

  Inference run() {
    result_.architecture = architecture_;
    collect();
    strict();
    spread();
    while (choose_freely()) spread();
    find_conflicts();
    place_tiles(kernel_, viewed_, result_);
    return std::move(result_);
  }

 private:
  struct Loop {
    Stmt stmt;
    std::vector<Var> vars;
    Shape extents;
    std::vector<Use> uses;
  };

  const ir::Kernel& kernel_;
  const Architecture architecture_;
  const int64_t threads_;
  const std::unordered_set<const ir::BufferData*> viewed_;
  Inference result_;
  std::vector<Loop> loops_;
  std::vector<Stmt> reductions_, gemms_, conversions_;
  std::vector<Stmt> others_;  // leaves that name fragments outside parallel loops
  std::vector<Buffer> fragments_;

  void collect() {
    for (const Buffer& buffer : kernel_.allocations)
      if (buffer->scope == Scope::fragment) fragments_.push_back(buffer);
    collect(kernel_.body);
  }

  void collect(const Stmt& stmt) {
    if (const auto* loop = ir::as<ir::For>(stmt)) {
      if (loop->kind == ir::LoopKind::parallel) return collect_loop(stmt, *loop);
      return collect(loop->body);
    }
    if (const auto* block = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : block->body) collect(part);
    } else if (const auto* loop_while = ir::as<ir::While>(stmt)) {
      collect(loop_while->body);
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      collect(choice->then);
      if (choice->otherwise) collect(choice->otherwise);
    } else if (ir::as<ir::Reduce>(stmt) || ir::as<ir::Scan>(stmt)) {
      reductions_.push_back(stmt);
    } else if (ir::as<ir::Gemm>(stmt)) {
      gemms_.push_back(stmt);
    } else if (is_conversion(stmt)) {
      conversions_.push_back(stmt);
    } else if (!uses_of(stmt).empty()) {
      others_.push_back(stmt);
    }
  }

  void collect_loop(const Stmt& stmt, const ir::For& loop) {
    Loop entry{stmt, loop.vars, {}, uses_of(stmt)};
    for (const Expr& extent : loop.extents) {
      const auto size = ir::constant_int(extent);
      if (!size || *size < 1) return;
      entry.extents.push_back(*size);
    }
    loops_.push_back(std::move(entry));
  }

  const Fragment* known(const Buffer& buffer) const {
    const auto found = result_.fragments.find(buffer.get());
    return found == result_.fragments.end() ? nullptr : &found->second;
  }
  const Fragment* known(const Loop& loop) const {
    const auto found = result_.loops.find(loop.stmt.get());
    return found == result_.loops.end() ? nullptr : &found->second;
  }
  // Whether that is news.
  bool set(const Buffer& buffer, Fragment fragment) {
    if (buffer->scope != Scope::fragment || known(buffer)) return false;
    result_.fragments.emplace(buffer.get(), std::move(fragment));
    return true;
  }

  // A matrix of a fragment with leading axes of one element.
  static Fragment with_leading(Fragment fragment, size_t rank) {
    while (fragment.shape().size() < rank) fragment = *layout::expanded(fragment, {.at = 0, .extent = 1});
    return fragment;
  }

  // What every thread does for itself, all of it.
  Fragment by_every_thread(const Shape& shape) const {
    const Shape strides = layout::row_major_strides(shape);
    std::vector<layout::Mode> registers;
    for (size_t axis = shape.size(); axis-- > 0;) registers.push_back({shape[axis], strides[axis]});
    return Fragment(shape, layout::Layout{{threads_, 0}}, layout::Layout(std::move(registers)));
  }

  void strict() {
    // Each thread has all of a local buffer, and keeps it up to date.
    for (const Loop& loop : loops_) {
      const bool stores = ir::contains(loop.stmt, [](const Stmt& part) {
        const auto* store = ir::as<ir::Store>(part);
        const auto* atomic = ir::as<ir::Atomic>(part);
        return (store && store->buffer->scope == Scope::local) ||
               (atomic && atomic->element.buffer->scope == Scope::local);
      });
      if (stores) result_.loops.emplace(loop.stmt.get(), by_every_thread(loop.extents));
    }
    for (const Stmt& stmt : gemms_) {
      const auto& gemm = *ir::as<ir::Gemm>(stmt);
      GemmPlan plan = plan_gemm(gemm, threads_, architecture_, viewed_);
      if (is_whole(gemm.c)) set(gemm.c.buffer, with_leading(plan.c, gemm.c.extent.size()));
      if (plan.a && is_whole(gemm.a) && !gemm.transpose_a)
        set(gemm.a.buffer, with_leading(*plan.a, gemm.a.extent.size()));
      if (plan.b && is_whole(gemm.b) && !gemm.transpose_b)
        set(gemm.b.buffer, with_leading(*plan.b, gemm.b.extent.size()));
      result_.gemms.emplace(stmt.get(), std::move(plan));
    }
  }

  // The loop's layout, if a fragment that it names by all its variables decides it.
  std::optional<Fragment> from_use(const Loop& loop, const Use& use) const {
    const Fragment* held = known(use.buffer);
    const auto pattern = pattern_of(use, loop.vars);
    if (held == nullptr || !pattern) return std::nullopt;
    std::optional<Fragment> fragment = *held;
    std::vector<size_t> axes;  // of the loop, one an axis that is left
    for (size_t axis = pattern->size(); axis-- > 0;)
      if (!(*pattern)[axis]) fragment = fragment ? layout::reduced(*fragment, axis) : std::nullopt;
    for (const auto& number : *pattern)
      if (number) axes.push_back(*number);
    if (!fragment) return std::nullopt;
    // Axes of the loop that the buffer lacks: of one element, or replicas and registers share them.
    std::vector<size_t> order(loop.vars.size());
    for (size_t number = 0; number < loop.vars.size(); ++number) {
      if (std::find(axes.begin(), axes.end(), number) != axes.end()) continue;
      fragment = layout::expanded(*fragment, {.at = axes.size(), .extent = loop.extents[number]});
      if (!fragment) return std::nullopt;
      axes.push_back(number);
    }
    for (size_t axis = 0; axis < axes.size(); ++axis) order[axes[axis]] = axis;
    fragment = layout::permuted(*fragment, order);
    if (!fragment) return std::nullopt;
    for (size_t axis = 0; axis < loop.extents.size(); ++axis)
      if (loop.extents[axis] > fragment->cover()[axis]) return std::nullopt;
    return Fragment(loop.extents, fragment->threads(), fragment->registers(), fragment->cover());
  }

  // The loop's layout, if it goes over a part of a fragment, axis by axis. Parts as long lie alike one beside the
  // other.
  std::optional<Fragment> from_part(const Loop& loop, const Use& use) const {
    const Fragment* held = known(use.buffer);
    if (held == nullptr || use.indices.size() != loop.vars.size()) return std::nullopt;
    std::optional<Fragment> fragment = *held;
    bool is_smaller = false;
    for (size_t axis = 0; axis < loop.vars.size(); ++axis) {
      const int64_t extent = loop.extents[axis];
      const auto place = ir::affine(without_casts(use.indices[axis]));
      const bool is_part = place && place->terms.size() == 1 && place->coefficient(loop.vars[axis]) == 1 &&
                           place->constant % extent == 0 && held->cover()[axis] == held->shape()[axis];
      if (!is_part) return std::nullopt;
      if (held->shape()[axis] == extent) continue;
      is_smaller = true;
      if (fragment) fragment = layout::leading(*fragment, {axis, extent});
    }
    return is_smaller && fragment && fragment->is_complete() ? fragment : std::nullopt;
  }

  static size_t variables(const Use& use, const Loop& loop) {
    const auto pattern = pattern_of(use, loop.vars);
    if (!pattern) return 0;
    return static_cast<size_t>(
        std::count_if(pattern->begin(), pattern->end(), [](const auto& v) { return v.has_value(); }));
  }

  // From the use that names most variables; at equal numbers the first.
  bool decide(const Loop& loop, bool all_variables) {
    if (known(loop)) return false;
    const Use* best = nullptr;
    size_t most = 0;
    size_t needed = 0;
    for (size_t axis = 0; axis < loop.extents.size(); ++axis) needed += loop.extents[axis] > 1 ? 1 : 0;
    for (const Use& use : loop.uses) {
      if (use.buffer->scope != Scope::fragment || !known(use.buffer)) continue;
      const size_t count = variables(use, loop);
      // Of two that disagree the one of smaller elements is the cheaper one to move.
      const bool is_better = count > most || (count == most && best && use.buffer->type.bits > best->buffer->type.bits);
      if (best != nullptr && !is_better) continue;
      if (count == 0 && !writes_element(loop.stmt, use.buffer)) continue;  // one value for all iterations
      best = &use;
      most = count;
    }
    if (best == nullptr) return decide_by_part(loop);
    if (all_variables && most < needed) return false;
    auto fragment = from_part(loop, *best);
    if (!fragment) fragment = from_use(loop, *best);
    if (!fragment) return false;
    result_.loops.emplace(loop.stmt.get(), std::move(*fragment));
    return true;
  }

  bool decide_by_part(const Loop& loop) {
    for (const Use& use : loop.uses) {
      if (use.buffer->scope != Scope::fragment) continue;
      auto fragment = from_part(loop, use);
      if (!fragment) continue;
      result_.loops.emplace(loop.stmt.get(), std::move(*fragment));
      return true;
    }
    return false;
  }

  bool project(const Loop& loop, const Use& use) {
    if (use.buffer->scope != Scope::fragment || known(use.buffer) || waits(use.buffer)) return false;
    auto fragment = projected(loop, use);
    return fragment && set(use.buffer, std::move(*fragment));
  }

  // What a fragment must be for a loop that has a layout, so that each thread holds what it names.
  std::optional<Fragment> projected(const Loop& loop, const Use& use) const {
    const Fragment* at = known(loop);
    const auto pattern = pattern_of(use, loop.vars);
    if (at == nullptr || !pattern) return std::nullopt;
    const Shape shape = shape_of(use.buffer);
    std::optional<Fragment> fragment = *at;
    std::vector<size_t> axes(loop.vars.size());
    for (size_t number = 0; number < axes.size(); ++number) axes[number] = number;
    for (size_t number = loop.vars.size(); number-- > 0;) {
      if (std::find(pattern->begin(), pattern->end(), std::optional(number)) != pattern->end()) continue;
      if (fragment) fragment = layout::reduced(*fragment, number);
      axes.erase(axes.begin() + static_cast<ptrdiff_t>(number));
    }
    if (!fragment) return std::nullopt;
    std::vector<size_t> order;
    for (const auto& number : *pattern)
      if (number) order.push_back(static_cast<size_t>(std::find(axes.begin(), axes.end(), *number) - axes.begin()));
    fragment = layout::permuted(*fragment, order);
    for (size_t axis = 0; axis < pattern->size() && fragment; ++axis)
      if (!(*pattern)[axis]) fragment = layout::expanded(*fragment, {.at = axis, .extent = 1});
    return fragment && fragment->shape() == shape ? fragment : std::nullopt;
  }

  std::optional<Fragment> reduction_of(const Stmt& stmt) const {
    const auto* reduce = ir::as<ir::Reduce>(stmt);
    const Fragment* source = known(reduce ? reduce->source.buffer : ir::as<ir::Scan>(stmt)->source.buffer);
    if (source == nullptr) return std::nullopt;
    if (reduce == nullptr) return *source;
    const auto axis = static_cast<size_t>(reduce->axis);
    auto fragment = layout::reduced(*source, axis);
    if (fragment && reduce->destination.buffer->rank() == reduce->source.buffer->rank())
      fragment = layout::expanded(*fragment, {.at = axis, .extent = 1});
    return fragment;
  }
  static Buffer destination_of(const Stmt& stmt) {
    const auto* reduce = ir::as<ir::Reduce>(stmt);
    return reduce ? reduce->destination.buffer : ir::as<ir::Scan>(stmt)->destination.buffer;
  }

  // The result of a reduction follows from its source alone.
  bool waits(const Buffer& buffer) const {
    return std::any_of(reductions_.begin(), reductions_.end(), [&](const Stmt& stmt) {
      const auto* reduce = ir::as<ir::Reduce>(stmt);
      return reduce && reduce->destination.buffer == buffer && !known(reduce->source.buffer);
    });
  }

  void spread() {
    bool more = true;
    while (more) {
      more = false;
      for (const Stmt& stmt : reductions_)
        if (!known(destination_of(stmt)))
          if (auto fragment = reduction_of(stmt)) more |= set(destination_of(stmt), std::move(*fragment));
      for (const Loop& loop : loops_) more |= decide(loop, true);
      for (const Loop& loop : loops_)
        for (const Use& use : loop.uses) more |= project(loop, use);
      if (more) continue;
      for (const Loop& loop : loops_) more |= decide(loop, false);
    }
  }

  // Elements of 16 bytes of the widest tensor that the loop walks.
  int64_t vector_of(const Loop& loop) const {
    int bits = 0;
    for (const Use& use : loop.uses)
      if (use.buffer->scope != Scope::local)
        bits = std::max(bits, use.buffer->scope == Scope::fragment ? 0 : int{use.buffer->type.bits});
    if (bits == 0) bits = loop.uses.empty() ? 32 : int{loop.uses.front().buffer->type.bits};
    return std::max(1, 128 / std::max(8, bits));
  }

  Fragment free_partition(const Shape& shape, int64_t vector) const {
    // As many vectors as there are threads, at least: a longer vector would leave threads idle.
    while (vector > 1 && layout::volume(shape) / vector < threads_) vector /= 2;
    const layout::Workers workers{threads_, vector};
    const Fragment fragment =
        split_by_axes(shape.size() >= 2 ? layout::partition_rows(shape, workers) : layout::partition(shape, workers));
    return is_separable(fragment) ? fragment : axis_partition(shape, vector);
  }

  // Powers of two along each axis, the last one first; threads that are left hold the same again. It can be reduced
  // along any axis.
  Fragment axis_partition(const Shape& shape, int64_t vector) const {
    Shape cover = shape;
    std::vector<int64_t> across(shape.size(), 1);
    int64_t left = threads_ & -threads_;
    vector = std::gcd(vector, shape.back());
    for (size_t axis = shape.size(); axis-- > 0;) {
      const int64_t unit = axis + 1 == shape.size() ? vector : 1;
      while (left > 1 && across[axis] * unit < shape[axis]) across[axis] *= 2, left /= 2;
      const int64_t once = across[axis] * unit;
      cover[axis] = (shape[axis] + once - 1) / once * once;
    }
    const std::vector<int64_t> strides = layout::row_major_strides(cover);
    std::vector<layout::Mode> threads, registers{{vector, 1}};
    for (size_t axis = shape.size(); axis-- > 0;) {
      const int64_t unit = axis + 1 == shape.size() ? vector : 1;
      threads.push_back({across[axis], unit * strides[axis]});
      registers.push_back({cover[axis] / (across[axis] * unit), across[axis] * unit * strides[axis]});
    }
    int64_t used = 1;
    for (const int64_t count : across) used *= count;
    if (threads_ > used) threads.push_back({threads_ / used, 0});
    return Fragment(shape, layout::Layout(std::move(threads)), layout::Layout(std::move(registers)), cover);
  }

  // The largest fragment without a layout, by the first loop that names it; then loops that name none.
  bool choose_freely() {
    Buffer largest;
    for (const bool waiting : {false, true}) {
      if (largest) break;
      for (const Buffer& buffer : fragments_) {
        if (known(buffer) || waits(buffer) != waiting) continue;
        if (!largest || layout::volume(shape_of(buffer)) > layout::volume(shape_of(largest))) largest = buffer;
      }
    }
    if (largest) {
      int64_t vector = std::max<int64_t>(1, 128 / std::max<int>(8, largest->type.bits));
      for (const Loop& loop : loops_) {
        const bool names =
            std::any_of(loop.uses.begin(), loop.uses.end(), [&](const Use& use) { return use.buffer == largest; });
        const bool moves = std::any_of(loop.uses.begin(), loop.uses.end(), [&](const Use& use) {
          return use.buffer->scope == Scope::global || use.buffer->scope == Scope::shared;
        });
        if (!names || !moves) continue;
        vector = vector_of(loop);
        break;
      }
      return set(largest, free_partition(shape_of(largest), vector));
    }
    for (const Loop& loop : loops_) {
      if (known(loop)) continue;
      result_.loops.emplace(loop.stmt.get(), split_by_axes(layout::partition(loop.extents, loop_workers(loop))));
      return true;
    }
    return false;
  }

  layout::Workers loop_workers(const Loop& loop) const {
    int64_t vector = vector_of(loop);
    while (vector > 1 && layout::volume(loop.extents) / vector < threads_) vector /= 2;
    return {threads_, vector};
  }

  // `wanted`: a layout of the buffer that the statement would do with.
  void conflict(const Stmt& stmt, const Buffer& buffer, std::string why, const std::optional<Fragment>& wanted = {}) {
    for (const Inference::Conflict& other : result_.conflicts)
      if (other.stmt == stmt && other.buffer == buffer) return;
    const int64_t shuffles = wanted ? shuffles_between(stmt, buffer, *known(buffer), *wanted) : -1;
    result_.conflicts.push_back({stmt, buffer, std::move(why), shuffles});
  }

  void find_conflicts() {
    for (const Loop& loop : loops_)
      for (const Use& use : loop.uses) {
        if (use.buffer->scope != Scope::fragment) continue;
        if (!register_map(*known(loop), loop.vars, use.indices, *known(use.buffer)))
          conflict(loop.stmt, use.buffer, "other threads hold the elements that a thread needs here",
                   projected(loop, use));
      }
    for (const Loop& loop : loops_) {
      // Once the loop writes memory alone, one of the threads that do the same does it.
      if (!has_replicas(*known(loop)) || !needs_one_thread(loop.stmt)) continue;
      for (const Use& use : loop.uses)
        if (!is_seen_by_others(*use.buffer) && writes_element(loop.stmt, use.buffer))
          conflict(loop.stmt, use.buffer, "one of the threads that do the same does it for all");
    }
    for (const Stmt& stmt : reductions_) {
      const auto wanted = reduction_of(stmt);
      if (!wanted)
        conflict(stmt, ir::as<ir::Reduce>(stmt)->source.buffer, "no thread could hold the result of this reduction");
      else if (!layout::equal_functions(*wanted, *known(destination_of(stmt))))
        conflict(stmt, destination_of(stmt), "the result of this reduction is held by other threads", wanted);
    }
    for (const Stmt& stmt : gemms_) check_gemm(stmt, *ir::as<ir::Gemm>(stmt));
    for (const Stmt& stmt : others_) check_element(stmt);
    for (const Stmt& stmt : conversions_) check_conversion(stmt, *ir::as<ir::Copy>(stmt));
  }

  void check_conversion(const Stmt& stmt, const ir::Copy& copy) {
    const Buffer &from = copy.source.buffer, &to = copy.destination.buffer;
    if (auto moves = conversion_by_shuffles(from->type, *known(from), *known(to)))
      result_.conversions.emplace(stmt.get(), std::move(*moves));
    else
      conflict(stmt, from, "its elements cross warps");
  }

  void check_gemm(const Stmt& stmt, const ir::Gemm& gemm) {
    const GemmPlan& plan = result_.gemms.at(stmt.get());
    const auto check = [&](const ir::Region& region, const std::optional<Fragment>& wanted, bool is_transposed) {
      if (region.buffer->scope != Scope::fragment) return;
      const bool fits = wanted && !is_transposed && is_whole(region);
      const std::optional<Fragment> there =
          fits ? std::optional(with_leading(*wanted, region.extent.size())) : std::nullopt;
      if (!fits || !layout::equal_functions(*there, *known(region.buffer)))
        conflict(stmt, region.buffer, "the matrix product needs its operand otherwise", there);
    };
    check(gemm.c, plan.c, false);
    check(gemm.a, plan.a, gemm.transpose_a);
    check(gemm.b, plan.b, gemm.transpose_b);
  }

  // Elements that all threads read, or write, outside parallel loops: each must hold them itself.
  void check_element(const Stmt& stmt) {
    for (const Use& use : uses_of(stmt)) {
      if (use.buffer->scope != Scope::fragment) continue;
      const Fragment every({1}, layout::Layout{{threads_, 0}}, layout::Layout{});
      if (!register_map(every, {}, use.indices, *known(use.buffer)))
        conflict(stmt, use.buffer, "not every thread holds the element that is read here");
    }
  }
};

}  // namespace

Inference infer_layouts(const ir::Kernel& kernel, Architecture architecture) {
  return Inferrer(kernel, architecture).run();
}

int64_t thread_count(const ir::Kernel& kernel) {
  int64_t count = 1;
  for (const int64_t extent : kernel.threads) count *= extent;
  return count;
}

std::optional<std::vector<int64_t>> register_map(const Fragment& loop, const std::vector<Var>& vars,
                                                 const std::vector<Expr>& indices, const Fragment& held) {
  std::vector<StaticIndex> evaluators;
  for (const Expr& index : indices) {
    auto evaluator = StaticIndex::of(index, vars);
    if (!evaluator) return std::nullopt;
    evaluators.push_back(std::move(*evaluator));
  }
  // The element of the tile that register `reg` of the thread needs; -1: no iteration, -2: outside the tile.
  const auto element = [&](int64_t thread, int64_t reg) -> int64_t {
    const auto at = loop.element({thread, reg});
    if (!at) return -1;
    const auto values = layout::coordinates(loop.shape(), *at);
    layout::Coordinates place;
    for (size_t axis = 0; axis < evaluators.size(); ++axis) {
      place.push_back(evaluators[axis](values));
      if (place.back() < 0 || place.back() >= held.shape()[axis]) return -2;
    }
    return layout::row_major_index(held.shape(), place);
  };
  std::vector<int64_t> map(static_cast<size_t>(loop.register_count()), -1);
  if (held.thread_count() < loop.thread_count()) return std::nullopt;
  std::map<int64_t, int64_t> of_thread;  // element -> register of one thread
  int64_t thread_of_map = -1;
  for (int64_t reg = 0; reg < loop.register_count(); ++reg) {
    for (int64_t thread = 0; thread < loop.thread_count(); ++thread) {
      const int64_t wanted = element(thread, reg);
      if (wanted == -1) continue;
      if (wanted == -2) return std::nullopt;
      int64_t& place = map[static_cast<size_t>(reg)];
      if (place < 0) {
        if (thread_of_map != thread) {
          of_thread.clear();
          for (int64_t r = held.register_count(); r-- > 0;)
            if (const auto e = held.element({thread, r})) of_thread[*e] = r;
          thread_of_map = thread;
        }
        const auto found = of_thread.find(wanted);
        if (found == of_thread.end()) return std::nullopt;
        place = found->second;
      } else if (held.element({thread, place}) != wanted) {
        return std::nullopt;
      }
    }
  }
  return map;
}

}  // namespace tilepilot::targets::cuda
