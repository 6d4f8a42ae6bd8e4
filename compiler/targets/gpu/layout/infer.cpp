#include "compiler/targets/gpu/layout/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/layout/reshape.h"
#include "compiler/passes/algebra/static_index.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/register_map.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/bank_choice.h"
#include "compiler/targets/gpu/layout/free_layouts.h"
#include "compiler/targets/gpu/layout/layout_conflicts.h"
#include "compiler/targets/gpu/layout/layout_conversions.h"
#include "compiler/targets/gpu/layout/layout_cost.h"
#include "compiler/targets/gpu/layout/requested_layouts.h"
#include "compiler/targets/gpu/layout/shared_axes.h"
#include "compiler/targets/gpu/layout/shared_layouts.h"
#include "compiler/targets/gpu/layout/stmatrix_stores.h"
#include "compiler/targets/gpu/layout/vector_access.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using layout::Fragment;
using layout::Shape;

namespace {

constexpr int64_t kUsualIterations = 8,
                  kMostIterations = 64;  // of a loop whose extent is unknown, of all loops around a place
constexpr size_t kMostExplained = 5;     // layouts that were weighed

class Inferrer {
 public:
  using Tiles = decltype(Inference::tiles);
  Inferrer(const ir::Kernel& kernel, const Machine& machine, const Tiles& tiles)
      : kernel_(kernel),
        machine_(machine),
        threads_(thread_count(kernel)),
        viewed_(ir::sharing_buffers(kernel)),
        tiles_(tiles) {}

  Inference run() {
    result_.machine = machine_;
    collect();
    strict();
    // Where loops are weighed; at last once more, since how they leave their results in tiles says where these lie.
    lay_out_tiles();
    propagate();
    while (choose_freely()) propagate();
    lay_out_tiles();
    avoid_bank_conflicts(kernel_, users_, viewed_, result_);
    if (tiles_.empty()) result_.tiles_to_try = tiles_to_try(kernel_, users_, viewed_, result_);
    if (!tiles_.empty() || !result_.tiles_to_try.empty()) result_.cost = cost_of(kernel_, users_, result_);
    find_conflicts(users_, threads_, result_);
    check_names();
    return std::move(result_);
  }

 private:
  const ir::Kernel& kernel_;
  const Machine& machine_;
  const int64_t threads_;
  const std::unordered_set<const ir::BufferData*> viewed_;
  const Tiles& tiles_;  // layouts of some shared tiles
  Inference result_;
  FragmentUsers users_;
  std::vector<Buffer> fragments_;
  std::unordered_map<const ir::BufferData*, std::vector<Buffer>> names_;  // of fragments that have several shapes
  // What got a layout, in this order: a fragment or a loop.
  struct Given {
    Buffer fragment;
    const ParallelLoop* loop = nullptr;
  };
  std::vector<Given> given_;
  // Found where something is to be weighed.
  std::optional<c::IntegerFacts> facts_;
  std::vector<std::optional<std::vector<MemoryAccess>>> accesses_;

  void collect() {
    for (const Buffer& buffer : kernel_.allocations) {
      if (buffer->scope != Scope::fragment) continue;
      fragments_.push_back(buffer);
      if (!buffer->base) continue;
      std::vector<Buffer>& names = names_[buffer->base.get()];
      if (names.empty()) names.push_back(buffer->base);
      names.push_back(buffer);
    }
    collect(kernel_.body, 1);
    std::unordered_map<const ir::BufferData*, int> accesses;
    const auto count = [&](const Stmt& stmt, int step) {
      ir::each_effect(stmt, [&](const Buffer& buffer, bool) { accesses[ir::memory_of(buffer)] += step; });
    };
    count(kernel_.body, 1);
    // A loop's iterations have for themselves what it alone names (passes/iterations/iteration_variables.h): whoever
    // runs them.
    for (ParallelLoop& loop : users_.loops) {
      count(loop.stmt, -1);
      std::erase_if(loop.uses, [&](const Use& use) {
        return use.buffer->scope == Scope::local && accesses.at(ir::memory_of(use.buffer)) == 0;
      });
      count(loop.stmt, 1);
    }
  }

  void collect(const Stmt& stmt, int64_t times) {
    if (const auto* loop = ir::as<ir::For>(stmt)) {
      if (loop->kind == ir::LoopKind::parallel) {
        if (is_async_gather(stmt)) return;  // whose copies no thread needs to find again
        if (auto parallel = parallel_loop(stmt, times)) users_.loops.push_back(std::move(*parallel));
        return;
      }
      for (const Expr& extent : loop->extents)
        times *= std::clamp<int64_t>(ir::constant_int(extent).value_or(kUsualIterations), 1, kMostIterations / times);
      return collect(loop->body, times);
    }
    if (const auto* block = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : block->body) collect(part, times);
    } else if (const auto* loop_while = ir::as<ir::While>(stmt)) {
      collect(loop_while->body, std::min(times * kUsualIterations, kMostIterations));
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      collect(choice->then, times);
      if (choice->otherwise) collect(choice->otherwise, times);
    } else if (ir::as<ir::Reduce>(stmt) || ir::as<ir::Scan>(stmt)) {
      users_.reductions.push_back({stmt, times});
    } else if (ir::as<ir::Gemm>(stmt)) {
      users_.gemms.push_back(stmt);
    } else if (is_layout_conversion(stmt)) {
      users_.conversions.push_back(stmt);
    } else if (!uses_of(stmt).empty()) {
      users_.others.push_back(stmt);
    }
  }

  const Fragment* known(const Buffer& buffer) const {
    const auto found = result_.fragments.find(buffer.get());
    return found == result_.fragments.end() ? nullptr : &found->second;
  }
  const Fragment* known(const ParallelLoop& loop) const {
    const auto found = result_.loops.find(loop.stmt.get());
    return found == result_.loops.end() ? nullptr : &found->second;
  }
  // Whether that is news.
  bool set(const Buffer& buffer, Fragment fragment) {
    if (buffer->scope != Scope::fragment || known(buffer)) return false;
    if (const auto names = names_.find(ir::memory_of(buffer)); names != names_.end()) {
      for (const Buffer& other : names->second) {
        if (other == buffer || known(other)) continue;
        if (auto reshaped = in_shape(fragment, shape_of(other))) give(other, std::move(*reshaped));
      }
    }
    give(buffer, std::move(fragment));
    return true;
  }
  void give(const Buffer& buffer, Fragment fragment) {
    result_.fragments.emplace(buffer.get(), std::move(fragment));
    given_.push_back({buffer, nullptr});
  }
  void check_names() {
    for (const auto& buffer : fragments_) {
      const Fragment* held = buffer->base ? known(buffer->base) : nullptr;
      if (held == nullptr) continue;
      const auto reshaped = in_shape(*held, shape_of(buffer));
      const Fragment* own = known(buffer);
      if (!reshaped || !own || !(own->threads() == reshaped->threads() && own->registers() == reshaped->registers()))
        result_.unreshaped.push_back(buffer);
    }
  }
  void set(const ParallelLoop& loop, Fragment fragment) {
    result_.loops.emplace(loop.stmt.get(), std::move(fragment));
    given_.push_back({nullptr, &loop});
  }

  // What every thread does for itself, all of it.
  Fragment by_every_thread(const Shape& shape) const {
    const Shape strides = layout::row_major_strides(shape);
    std::vector<layout::Mode> registers;
    for (size_t axis = shape.size(); axis-- > 0;) registers.push_back({shape[axis], strides[axis]});
    return Fragment(shape, layout::Layout{{threads_, 0}}, layout::Layout(std::move(registers)));
  }

  void lay_out_tiles() {
    lay_out_shared_tiles(kernel_, viewed_, result_);
    lay_out_as_requested(kernel_, viewed_, result_);
    for (const auto& [tile, layout] : tiles_) result_.tiles.insert_or_assign(tile, layout);
  }

  void strict() {
    // Each thread has all of a local buffer, and keeps it up to date.
    for (const ParallelLoop& loop : users_.loops) {
      const bool stores = std::any_of(loop.uses.begin(), loop.uses.end(),
                                      [](const Use& use) { return use.changes && use.buffer->scope == Scope::local; });
      if (stores) result_.loops.emplace(loop.stmt.get(), by_every_thread(loop.extents));
    }
    for (const Stmt& stmt : users_.gemms) {
      const auto& gemm = *ir::as<ir::Gemm>(stmt);
      GemmPlan plan = plan_gemm(gemm, threads_, machine_, viewed_);
      if (is_whole(gemm.c)) set(gemm.c.buffer, with_leading(plan.c, gemm.c.extent.size()));
      if (plan.a && is_whole(gemm.a) && !gemm.transpose_a)
        set(gemm.a.buffer, with_leading(*plan.a, gemm.a.extent.size()));
      if (plan.b && is_whole(gemm.b) && !gemm.transpose_b)
        set(gemm.b.buffer, with_leading(*plan.b, gemm.b.extent.size()));
      result_.gemms.emplace(stmt.get(), std::move(plan));
    }
    for (auto& [buffer, fragment] : requested_fragments(kernel_, threads_, result_)) set(buffer, std::move(fragment));
  }

  // The loop's layout, if a fragment that it names by its variables decides it. Axes that the fragment lacks are of one
  // element, or replicas and registers share them: the way that costs the loop the least.
  std::optional<Fragment> from_use(const ParallelLoop& loop, const Use& use) {
    const Fragment* held = known(use.buffer);
    const auto pattern = pattern_of(use, loop.vars);
    if (held == nullptr || !pattern) return std::nullopt;
    std::optional<Fragment> fragment = *held;
    std::vector<size_t> axes, missing;  // of the loop
    for (size_t axis = pattern->size(); axis-- > 0;)
      if (!(*pattern)[axis]) fragment = fragment ? layout::reduced(*fragment, axis) : std::nullopt;
    for (const auto& number : *pattern)
      if (number) axes.push_back(*number);
    if (!fragment) return std::nullopt;
    for (size_t number = 0; number < loop.vars.size(); ++number)
      if (std::find(axes.begin(), axes.end(), number) == axes.end()) missing.push_back(number);
    std::optional<Fragment> best;
    LayoutCost least;
    const auto ways = ways_to_share(*fragment, loop.extents, missing, vector_elements(loop));
    for (const std::vector<SharedAxis>& way : ways) {
      auto other = with_shared_axes(*fragment, loop.extents, axes, way);
      if (ways.size() == 1) return other;
      if (!other) continue;
      const LayoutCost cost = loop_cost(loop, accesses_of(loop), *other);
      if (best && cost.total() >= least.total()) continue;
      least = cost;
      best = std::move(other);
    }
    return best;
  }

  // The loop's layout, if it goes over a part of a fragment, axis by axis. Parts as long lie alike one beside the
  // other.
  std::optional<Fragment> from_part(const ParallelLoop& loop, const Use& use) const {
    const Fragment* held = known(use.buffer);
    if (held == nullptr || use.indices.size() != loop.vars.size()) return std::nullopt;
    std::optional<Fragment> fragment = *held;
    bool is_smaller = false;
    for (size_t axis = 0; axis < loop.vars.size(); ++axis) {
      const int64_t extent = loop.extents[axis];
      const auto place = ir::affine(passes::without_casts(use.indices[axis]));
      const bool is_part = place && place->terms.size() == 1 && place->coefficient(loop.vars[axis]) == 1 &&
                           place->constant % extent == 0 && held->cover()[axis] == held->shape()[axis];
      if (!is_part) return std::nullopt;
      if (held->shape()[axis] == extent) continue;
      is_smaller = true;
      if (fragment) fragment = layout::leading(*fragment, {axis, extent});
    }
    return is_smaller && fragment && fragment->is_complete() ? fragment : std::nullopt;
  }

  // From the use that names most variables. Of two that disagree the one of smaller elements is the cheaper one to
  // move; at equal sizes the first decides.
  bool decide(const ParallelLoop& loop, bool all_variables) {
    if (known(loop)) return false;
    const Use* best = nullptr;
    size_t most = 0;
    size_t needed = 0;
    for (size_t axis = 0; axis < loop.extents.size(); ++axis) needed += loop.extents[axis] > 1 ? 1 : 0;
    for (const Use& use : loop.uses) {
      if (use.buffer->scope != Scope::fragment || !known(use.buffer)) continue;
      const size_t count = variable_count(use, loop);
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
    set(loop, lanes_first(loop, std::move(*fragment)));
    return true;
  }

  bool decide_by_part(const ParallelLoop& loop) {
    for (const Use& use : loop.uses) {
      if (use.buffer->scope != Scope::fragment) continue;
      auto fragment = from_part(loop, use);
      if (!fragment) continue;
      set(loop, std::move(*fragment));
      return true;
    }
    return false;
  }

  // What a fragment without a layout must be for a loop that has one.
  bool project(const ParallelLoop& loop, const Use& use) {
    const Fragment* at = known(loop);
    if (use.buffer->scope != Scope::fragment || known(use.buffer) || at == nullptr || waits(use.buffer)) return false;
    auto fragment = projected(loop, use, *at);
    return fragment && set(use.buffer, std::move(*fragment));
  }

  std::optional<Fragment> reduction_of(const Stmt& stmt) const {
    const Fragment* source = known(source_of(stmt));
    return source ? result_fragment(stmt, *source) : std::nullopt;
  }

  // The result of a reduction follows from its source alone.
  bool waits(const Buffer& buffer) const {
    return std::any_of(users_.reductions.begin(), users_.reductions.end(), [&](const TileReduction& reduction) {
      const auto* reduce = ir::as<ir::Reduce>(reduction.stmt);
      return reduce && reduce->destination.buffer == buffer && !known(reduce->source.buffer);
    });
  }

  void propagate() {
    bool more = true;
    while (more) {
      more = false;
      for (const auto& [stmt, times] : users_.reductions)
        if (!known(destination_of(stmt)))
          if (auto fragment = reduction_of(stmt)) more |= set(destination_of(stmt), std::move(*fragment));
      for (const ParallelLoop& loop : users_.loops) more |= decide(loop, true);
      for (const ParallelLoop& loop : users_.loops)
        for (const Use& use : loop.uses) more |= project(loop, use);
      if (more) continue;
      for (const ParallelLoop& loop : users_.loops) more |= decide(loop, false);
    }
  }

  // See loop_uses.h; of the first loop that moves the fragment between threads and memory.
  int64_t vector_of(const Buffer& fragment) const {
    for (const ParallelLoop& loop : users_.loops) {
      const auto any = [&](auto&& wanted) { return std::any_of(loop.uses.begin(), loop.uses.end(), wanted); };
      if (any([&](const Use& use) { return use.buffer == fragment; }) &&
          any([](const Use& use) { return is_seen_by_others(*use.buffer); }))
        return vector_elements(loop);
    }
    return std::max<int64_t>(1, 128 / std::max<int>(8, fragment->type.bits));
  }

  const std::vector<MemoryAccess>& accesses_of(const ParallelLoop& loop) {
    if (!facts_) facts_.emplace().learn(kernel_);
    accesses_.resize(users_.loops.size());
    auto& accesses = accesses_[static_cast<size_t>(&loop - users_.loops.data())];
    if (!accesses) accesses = memory_accesses(loop, *facts_, result_.tiles, machine_.adds_vectors);
    return *accesses;
  }

  // A thread may hold neighbours along several axes; those come first that let the loop move the most at once. Matrices
  // that warps store as a whole stay whole.
  Fragment lanes_first(const ParallelLoop& loop, Fragment fragment) {
    if (machine_.has_stmatrix &&
        !find_matrix_stores(*ir::as<ir::For>(loop.stmt), fragment, affine_as_written).stores.empty())
      return fragment;
    const auto& modes = fragment.registers().modes();
    const std::vector<int64_t> strides = layout::row_major_strides(fragment.cover());
    LayoutCost least;
    std::optional<Fragment> best;
    for (size_t k = 1; k < modes.size(); ++k) {
      if (modes[k].extent == 1 || std::find(strides.begin(), strides.end(), modes[k].stride) == strides.end()) continue;
      std::vector<layout::Mode> order = modes;
      std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(k),
                  order.begin() + static_cast<ptrdiff_t>(k) + 1);
      Fragment other(fragment.shape(), fragment.threads(), layout::Layout(std::move(order)), fragment.cover());
      if (lanes_of(other).count == 1) continue;
      if (!best) least = loop_cost(loop, accesses_of(loop), fragment);
      const LayoutCost cost = loop_cost(loop, accesses_of(loop), other);
      if (cost.total() >= least.total()) continue;
      least = cost;
      best = std::move(other);
    }
    return best ? std::move(*best) : std::move(fragment);
  }

  // What a free choice costs, with all that follows from it.
  struct Trial {
    LayoutCost cost, least;
    std::vector<Given> given;
  };
  using Give = std::function<void(const Fragment&)>;

  Trial attempt(const Fragment& fragment, const Give& give) {
    const size_t first = given_.size();
    give(fragment);
    Trial trial;
    trial.given.assign(given_.begin() + static_cast<ptrdiff_t>(first), given_.end());
    count(trial);
    for (; given_.size() > first; given_.pop_back()) {
      if (given_.back().loop) result_.loops.erase(given_.back().loop->stmt.get());
      if (given_.back().fragment) result_.fragments.erase(given_.back().fragment.get());
    }
    return trial;
  }

  void count(Trial& trial) {
    const auto is_new = [&](const Buffer& buffer, const ParallelLoop* loop) {
      return std::any_of(trial.given.begin(), trial.given.end(), [&](const Given& given) {
        return (buffer && given.fragment == buffer) || (loop && given.loop == loop);
      });
    };
    const auto add_exchange = [&](const Buffer& buffer, int64_t times) {
      trial.cost += exchange_cost(layout::volume(shape_of(buffer)), threads_) * times;
    };
    for (const ParallelLoop& loop : users_.loops) {
      const Fragment* at = known(loop);
      if (at == nullptr) continue;
      const bool new_loop = is_new(nullptr, &loop);
      if (new_loop) {
        trial.cost += loop_cost(loop, accesses_of(loop), *at) * loop.times;
        trial.least += least_cost(loop, accesses_of(loop), threads_) * loop.times;
      }
      const bool by_one = has_replicas(*at) && needs_one_thread(loop.stmt);
      for (const Use& use : loop.uses) {
        if (use.buffer->scope != Scope::fragment || !known(use.buffer)) continue;
        if (!new_loop && !is_new(use.buffer, nullptr)) continue;
        if (!is_served(loop, use) || (by_one && use.changes)) add_exchange(use.buffer, loop.times);
      }
    }
    for (const auto& [stmt, times] : users_.reductions) {
      const auto* reduce = ir::as<ir::Reduce>(stmt);
      if (!reduce || !is_new(reduce->source.buffer, nullptr)) continue;
      const Fragment& source = *known(reduce->source.buffer);
      const auto wanted = reduction_of(stmt);
      const Fragment* held = known(destination_of(stmt));
      if (!wanted || (held && !layout::equal_functions(*wanted, *held))) add_exchange(reduce->source.buffer, times);
      if (!wanted) continue;
      const LayoutCost cost = reduction_cost(source, static_cast<size_t>(reduce->axis), wanted->register_count());
      trial.cost += cost * times;
      trial.least.steps += layout::volume(source.shape()) / layout::kWarpSize * times;
    }
    int64_t words = 0;
    for (const auto& [buffer, fragment] : result_.fragments)
      if (!buffer->base) words += (fragment.register_count() * std::max<int64_t>(1, buffer->type.bytes()) + 3) / 4;
    trial.cost += register_cost(words, threads_);
  }

  // Whether threads hold what they need of a fragment in a loop, as far as a cheap test shows.
  bool is_served(const ParallelLoop& loop, const Use& use) const {
    const Fragment &at = *known(loop), &held = *known(use.buffer);
    const auto like = projected(loop, use, at);
    if (like && like->cover() == held.cover() && like->threads() == held.threads() &&
        like->registers() == held.registers())
      return true;
    return may_have_register_map(at, loop.vars, use.indices, held);
  }

  // Along which axes of a fragment the loops that follow it walk through memory, and reductions combine.
  void find_wishes(const Buffer& buffer, const Trial& trial, FreeTile& tile) {
    for (const Given& given : trial.given) {
      if (given.loop == nullptr) continue;
      const ParallelLoop& loop = *given.loop;
      const auto named =
          std::find_if(loop.uses.begin(), loop.uses.end(), [&](const Use& use) { return use.buffer == buffer; });
      const auto pattern = named == loop.uses.end() ? std::nullopt : pattern_of(*named, loop.vars);
      for (size_t axis = 0; axis < tile.shape.size(); ++axis) {
        if (pattern && (*pattern)[axis]) find_neighbours(loop, *(*pattern)[axis], axis, tile);
        if (!pattern && loop.extents == tile.shape) find_neighbours(loop, axis, axis, tile);
      }
    }
    for (const auto& [stmt, times] : users_.reductions) {
      const auto* reduce = ir::as<ir::Reduce>(stmt);
      const bool follows = std::any_of(trial.given.begin(), trial.given.end(), [&](const Given& given) {
        return reduce && given.fragment == reduce->source.buffer;
      });
      if (follows && shape_of(reduce->source.buffer) == tile.shape)
        tile.reduced.push_back(static_cast<size_t>(reduce->axis));
    }
  }
  // Of variable `number` of the loop, which is axis `axis` of the tile.
  void find_neighbours(const ParallelLoop& loop, size_t number, size_t axis, FreeTile& tile) {
    const auto& accesses = accesses_of(loop);
    if (loop.extents[number] > 1 && std::any_of(accesses.begin(), accesses.end(), [&](const MemoryAccess& access) {
          return access.distances[number] == 1;
        }))
      tile.neighbours.push_back(axis);
  }

  // The largest fragment without a layout; then loops that name none.
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
      choose(largest);
      return true;
    }
    const auto open =
        std::find_if(users_.loops.begin(), users_.loops.end(), [&](const auto& loop) { return !known(loop); });
    if (open == users_.loops.end()) return false;
    choose(*open);
    return true;
  }

  void choose(const Buffer& buffer) {
    FreeTile tile{shape_of(buffer), threads_, vector_of(buffer), {}, {}};
    const Give give = [&](const Fragment& fragment) {
      set(buffer, fragment);
      propagate();
    };
    const Fragment plain = plain_fragment(tile);
    const Trial trial = attempt(plain, give);
    find_wishes(buffer, trial, tile);
    set(buffer, weigh({buffer->span, "layout of fragment " + buffer->name, {}, {}}, tile, {plain, trial, give}));
  }

  void choose(const ParallelLoop& loop) {
    FreeTile tile{loop.extents, threads_, vector_elements(loop), {}, {}};
    for (size_t axis = 0; axis < loop.extents.size(); ++axis) find_neighbours(loop, axis, axis, tile);
    const Give give = [&](const Fragment& fragment) { set(loop, fragment); };
    const Fragment plain = plain_loop(tile);
    const std::string extents = fmt::format("{}", fmt::join(loop.extents, " x "));
    set(loop,
        weigh({loop.stmt->span, "layout of loop over " + extents, {}, {}}, tile, {plain, attempt(plain, give), give}));
  }

  struct Plain {
    const Fragment& fragment;
    const Trial& trial;
    const Give& give;
  };
  // The plain layout, unless another one costs clearly less.
  Fragment weigh(Decision decision, const FreeTile& tile, const Plain& plain) {
    if (!is_clearly_less(plain.trial.least, plain.trial.cost)) return plain.fragment;
    std::vector<std::pair<LayoutCost, FreeLayout>> others;
    for (FreeLayout& other : other_layouts(tile)) {
      const auto is_same = [&](const Fragment& seen) {
        return seen.cover() == other.fragment.cover() &&
               layout::coalesce(seen.threads()) == layout::coalesce(other.fragment.threads()) &&
               layout::coalesce(seen.registers()) == layout::coalesce(other.fragment.registers());
      };
      if (is_same(plain.fragment) ||
          std::any_of(others.begin(), others.end(), [&](const auto& seen) { return is_same(seen.second.fragment); }))
        continue;
      const Trial trial = attempt(other.fragment, plain.give);
      // What does not follow would be chosen later, and go through shared memory.
      if (trial.given.size() < plain.trial.given.size()) continue;
      others.emplace_back(trial.cost, std::move(other));
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const auto& a, const auto& b) { return a.first.total() < b.first.total(); });
    const bool departs = !others.empty() && is_clearly_less(others[0].first, plain.trial.cost);
    Fragment chosen = departs ? others[0].second.fragment : plain.fragment;
    others.emplace(departs ? others.begin() + 1 : others.begin(), plain.trial.cost,
                   FreeLayout{"plain", plain.fragment});
    for (size_t k = 0; k < std::min<size_t>(others.size(), kMostExplained); ++k) {
      std::string text = fmt::format("{}, {}", others[k].second.name, to_text(others[k].first));
      if (k == 0)
        decision.chosen = std::move(text);
      else
        decision.obstacles.push_back("not " + std::move(text));
    }
    result_.decisions.push_back(std::move(decision));
    return chosen;
  }
};

}  // namespace

Inference infer_layouts(const ir::Kernel& kernel, const Machine& machine) {
  decltype(Inference::tiles) tiles;
  std::vector<Decision> chosen;
  Inference best = Inferrer(kernel, machine, tiles).run();
  for (const Inference::TileChoice& choice : std::vector(best.tiles_to_try)) {
    auto others = tiles;
    others.insert_or_assign(choice.tile.get(), choice.layout);
    Inference other = Inferrer(kernel, machine, others).run();
    if (other.conflicts.size() > best.conflicts.size() || other.unreshaped.size() > best.unreshaped.size()) continue;
    if (10 * other.cost >= 9 * best.cost) continue;
    chosen.push_back({choice.tile->span,
                      "layout of tile " + choice.tile->name,
                      fmt::format("{}, cost {} of all loops", choice.name, other.cost),
                      {fmt::format("not as it was, cost {}", best.cost)}});
    tiles = std::move(others);
    best = std::move(other);
  }
  best.decisions.insert(best.decisions.end(), chosen.begin(), chosen.end());
  return best;
}

}  // namespace tilepilot::targets::gpu
