#include "compiler/targets/cpu/lanes.h"

#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/emit.h"
#include "compiler/targets/cpu/loops/cost.h"
#include "compiler/targets/cpu/loops/index_set_splitting.h"
#include "compiler/targets/cpu/loops/load_hoisting.h"
#include "compiler/targets/cpu/loops/transposed_loads.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kUnrolledLoop = 16;   // as TP_UNROLL does
constexpr int64_t kUnrolledCost = 400;  // operations
constexpr int64_t kMostCopied = 1024;   // operations in all copies: compilers take seconds for more

class LaneWriter {
 public:
  LaneWriter(c::Context& context, const LaneFacts& facts, const LanePlan& plan)
      : context_(context), out_(context.body), facts_(facts), plan_(plan) {}

  void run(const ir::Stmt& body) {
    int opened = 0;
    for (const Dimension& dimension : plan_.outer) opened += open_plain(dimension);
    if (plan_.row) row_ = chunked(*plan_.row, plan_.rows, "row", opened);
    lane_ = plan_.ends_with_runs ? open_runs(opened) : chunked(plan_.lane, plan_.width, "lane", opened);
    c::LaneState state;
    state.chunk_size = plan_.chunk_size();
    state.chunk_lane = plan_.row ? fmt::format("{} * {} + {}", row_.name, plan_.width, lane_.name) : lane_.name;
    std::swap(context_.lanes, state);
    name_runs();
    if (!plan_.is_whole && !plan_.ends_with_runs) {
      count_ = context_.names.fresh("count");
      out_.line("const int64_t {} = min_of<int64_t>({}, {} - {});", count_, plan_.width,
                factor(context_, plan_.lane.extent), lane_.base);
    }
    keep_own(body);
    for (; opened > 0; --opened) out_.close();
    context_.lanes = std::move(state);
  }

 private:
  // One variable of the chunk: `name` counts within it, from `base` of the whole on (empty: 0).
  struct Axis {
    std::string name, base;
  };

  // Lanes of a row that take part.
  struct LaneRange {
    std::string first, end;
    bool is_all;
  };

  c::Context& context_;
  c::Writer& out_;
  const LaneFacts& facts_;
  const LanePlan& plan_;
  Axis row_, lane_;
  std::string count_;                  // how many lanes a row has, if not `width`
  std::vector<const ir::If*> guards_;  // around every statement being written
  int loops_ = 0;                      // common loops around it
  int64_t copies_ = 1;                 // of it, by unrolled ones of them

  int open_plain(const Dimension& dimension) {
    out_.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", context_.names.of(dimension.var),
              factor(context_, dimension.extent));
    return 1;
  }

  Axis chunked(const Dimension& dimension, int64_t step, const char* name, int& opened) {
    const std::string var = context_.names.of(dimension.var);
    if (ir::constant_int(dimension.extent) == step) return {var, ""};
    const std::string base = context_.names.fresh(var + "_0");
    out_.open("for (int64_t {0} = 0; {0} < {1}; {0} += {2})", base, factor(context_, dimension.extent), step);
    ++opened;
    return {context_.names.fresh(name), base};
  }

  // Chunks that end with a run at the latest: how many lanes they have is known when the runs are.
  Axis open_runs(int& opened) {
    const std::string base = context_.names.fresh(context_.names.of(plan_.lane.var) + "_0");
    count_ = context_.names.fresh("count");
    out_.open("for (int64_t {0} = 0, {1}; {0} < {2}; {0} += {1})", base, count_, factor(context_, plan_.lane.extent));
    ++opened;
    return {context_.names.fresh("lane"), base};
  }

  // What stands for quotients and remainders, and where the run ends.
  void name_runs() {
    const std::string first = lane_.base.empty() ? "0" : lane_.base;
    if (plan_.ends_with_runs)
      out_.line("{} = min_of<int64_t>({}, {} - {});", count_, plan_.width, factor(context_, plan_.lane.extent), first);
    context_.lanes.lane = plan_.lane.var;
    for (const RunPart& part : plan_.runs.parts()) {
      context_.lanes.values[plan_.lane.var.get()] = first;
      const std::string number = factor(context_, part.number), divisor = factor(context_, part.divisor);
      context_.lanes.values.erase(plan_.lane.var.get());
      std::string text = fmt::format("{} {} {}", number, part.is_quotient ? '/' : '%', divisor);
      if (!part.is_quotient && !lane_.base.empty()) text += " - " + lane_.base;
      if (plan_.ends_with_runs) {
        const std::string name = context_.names.fresh("run");
        out_.line("const int64_t {} = {};", name, text);
        out_.line("{0} = min_of<int64_t>({0}, {1} - {2} % {1});", count_, divisor, number);
        text = name;
      }
      context_.lanes.parts[part.node] = {text, !part.is_quotient};
    }
  }

  // What lanes own
  // -----------------------------------------------------------------------------------------------------------

  void keep_own(const ir::Stmt& body) {
    const auto uses = count_uses(body);
    std::vector<ir::Buffer> before, after;
    for (const ir::Buffer& buffer : plan_.own) {
      const std::string name = context_.names.fresh("own_" + buffer->name);
      out_.line("alignas(64) {} {}[{}];", c::stored_type(buffer->type), name, elements(buffer) * plan_.chunk_size());
      context_.lanes.own[buffer.get()] = {name, plan_.leading_axes(buffer)};
      if (plan_.without_thread.contains(buffer.get())) continue;
      const bool is_fresh = plan_.fresh.contains(buffer.get());
      const bool only_here = context_.uses.at(buffer.get()) == uses.at(buffer.get());
      if (only_here && (is_fresh || context_.loops == 0)) continue;
      if (!is_fresh) before.push_back(buffer);
      after.push_back(buffer);
    }
    for (const ir::Buffer& buffer : before) move(buffer, true);
    write(flattened(body));
    for (const ir::Buffer& buffer : after) move(buffer, false);
  }

  // That each lane has of a buffer.
  int64_t elements(const ir::Buffer& buffer) const {
    const std::vector<int64_t> shape = c::extents(buffer);
    int64_t count = 1;
    for (size_t axis = 0; axis < plan_.leading_axes(buffer); ++axis) count *= shape[axis];
    return count;
  }

  // Between a buffer and the array that stands for it.
  void move(const ir::Buffer& buffer, bool in) {
    const std::vector<int64_t> shape = c::extents(buffer);
    const size_t leading = shape.size() - plan_.thread.size();
    int64_t step = 1;
    std::string at;
    for (size_t axis = shape.size(); axis-- > leading; step *= shape[axis]) {
      const std::string& var = context_.names.of(plan_.thread[axis - leading].var);
      at = step == 1 ? var : fmt::format("{} * {} + {}", var, step, at);
    }
    int opened = 0;
    std::string inside = context_.lanes.chunk_lane;
    if (elements(buffer) > 1) {
      const std::string each = context_.names.fresh("e");
      out_.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", each, elements(buffer));
      ++opened;
      at = fmt::format("{} * {} + {}", each, step, at);
      inside = fmt::format("{} * {} + {}", each, plan_.chunk_size(), inside);
    }
    opened += open_rows(false);
    opened += open_lanes(true, false);
    inside = fmt::format("{}[{}]", context_.lanes.own.at(buffer.get()).name, inside);
    at = fmt::format("{}[{}]", context_.names.of(buffer), at);
    out_.line("{} = {};", in ? inside : at, in ? at : inside);
    for (; opened > 0; --opened) out_.close();
  }

  // Loops over the lanes of a chunk
  // ------------------------------------------------------------------------------------------

  int open_rows(bool unrolled) {
    if (!plan_.row) return 0;
    if (unrolled) out_.line("TP_UNROLL");
    out_.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", row_.name, plan_.rows);
    name_thread(*plan_.row, row_, row_.name);
    return 1;
  }

  void name_thread(const Dimension& dimension, const Axis& axis, const std::string& offset) {
    if (!axis.base.empty())
      out_.line("const int64_t {} = {} + {};", context_.names.of(dimension.var), axis.base, offset);
  }

  int open_lanes(bool is_vector, bool unrolled) {
    const bool in_vectors = unrolled && count_.empty() && plan_.width % kVectorLanes == 0 && plan_.width > kVectorLanes;
    const std::string first = in_vectors ? context_.names.fresh("v") : "";
    const std::string inner = in_vectors ? context_.names.fresh("l") : lane_.name;
    if (in_vectors) {
      out_.line("TP_UNROLL");
      out_.open("for (int64_t {0} = 0; {0} < {1}; {0} += {2})", first, plan_.width, kVectorLanes);
    }
    if (is_vector) out_.line("#pragma omp simd");
    const std::string end = !count_.empty() ? count_ : fmt::format("{}", in_vectors ? kVectorLanes : plan_.width);
    out_.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", inner, end);
    if (in_vectors) out_.line("const int64_t {} = {} + {};", lane_.name, first, inner);
    name_thread(plan_.lane, lane_, lane_.name);
    return in_vectors ? 2 : 1;
  }

  // Statements
  // ---------------------------------------------------------------------------------------------------------------

  // A group of statements that each lane does in one go; or one of the other kinds.
  void write(const std::vector<ir::Stmt>& body) {
    for (size_t first = 0; first < body.size();) {
      size_t end = first;
      while (end < body.size() && is_straight(body[end]) && !range_of(body[end])) ++end;
      if (end == first && !write_alone(body[first])) ++end;
      if (end == first) {
        ++first;
        continue;
      }
      write_group({body.begin() + static_cast<std::ptrdiff_t>(first), body.begin() + static_cast<std::ptrdiff_t>(end)},
                  {body.begin() + static_cast<std::ptrdiff_t>(end), body.end()});
      first = end;
    }
  }

  bool is_straight(const ir::Stmt& stmt) const {
    const auto* let = std::get_if<ir::Let>(&stmt->node);
    return !contains_loop(stmt) && !(let != nullptr && is_shared(*let));
  }
  // Done once for all lanes; behind a guard it might read what it must not.
  bool is_shared(const ir::Let& let) const {
    return facts_.is_uniform(let.value) && (guards_.empty() || !ir::has_loads(let.value));
  }

  // What stands outside the loops over lanes. False if it does not.
  bool write_alone(const ir::Stmt& stmt) {
    if (std::holds_alternative<ir::Let>(stmt->node)) {
      emit(context_, stmt);
      return true;
    }
    if (const auto* loop = std::get_if<ir::For>(&stmt->node)) return write_loop(*loop);
    const auto* branch = std::get_if<ir::If>(&stmt->node);
    if (branch == nullptr) return false;
    if (context_.proven.contains(branch)) {
      const size_t assumed = context_.facts.assume(branch->condition);
      write(flattened(branch->then));
      context_.facts.forget(assumed);
      return true;
    }
    if (const auto range = range_of(stmt)) return write_in_range(*branch, *range);
    if (guards_.empty() && facts_.is_uniform(branch->condition)) return write_branch(*branch);
    if (!facts_.is_guard(*branch) || !facts_.has_common_loop(branch->then)) return false;
    guards_.push_back(branch);
    write(flattened(branch->then));
    guards_.pop_back();
    return true;
  }

  // Of the lanes for which a guard holds, where these are neighbours.
  std::optional<SplitIndexSet> range_of(const ir::Stmt& stmt) const {
    const auto* branch = std::get_if<ir::If>(&stmt->node);
    const bool is_plain = branch != nullptr && branch->otherwise == nullptr && guards_.empty() && loops_ > 0;
    if (!is_plain || contains_loop(stmt) || context_.proven.contains(branch) || !plan_.runs.parts().empty())
      return std::nullopt;
    return split_index_set(context_, branch->condition, plan_.lane.var, [&](const ir::Var& var) {
      return facts_.is_varying(var) && !(plan_.row && var == plan_.row->var) && !is_outer(var);
    });
  }

  bool is_outer(const ir::Var& var) const {
    return std::any_of(plan_.outer.begin(), plan_.outer.end(), [&](const Dimension& d) { return d.var == var; });
  }

  bool write_in_range(const ir::If& branch, const SplitIndexSet& range) {
    int opened = open_rows(false);
    const std::string extent = count_.empty() ? fmt::format("{}", plan_.width) : count_;
    const auto [first, end] = write_range(context_, range, {extent, lane_.base});
    out_.line("#pragma omp simd");
    out_.open("for (int64_t {0} = {1}; {0} < {2}; ++{0})", lane_.name, first, end);
    ++opened;
    name_thread(plan_.lane, lane_, lane_.name);
    const size_t assumed = context_.facts.assume(branch.condition);
    for (const ir::Stmt& stmt : flattened(branch.then)) write_statement(stmt);
    context_.facts.forget(assumed);
    for (; opened > 0; --opened) out_.close();
    return true;
  }

  bool write_loop(const ir::For& loop) {
    if (!facts_.is_common(loop) || !(guards_.empty() || is_plain(loop.extents[0]))) return false;
    const auto extent = ir::constant_int(loop.extents[0]);
    const int64_t copies = extent.value_or(kUnrolledCost) * copies_;
    const bool is_small = copies <= 64 && copies * cost(flattened(loop.body)) <= kMostCopied;
    const bool unrolled = is_unrolled(loop) || (extent && *extent <= kUnrolledLoop && is_small && places_own(loop));
    context_.wide.insert(loop.vars[0].get());
    const size_t assumed =
        context_.facts.assume(ir::binary(ir::BinaryOp::lt, ir::var_ref(loop.vars[0]), loop.extents[0]));
    if (unrolled || !write_blocks_of_steps(loop)) {
      if (unrolled) out_.line("TP_UNROLL");
      open_plain({loop.vars[0], loop.extents[0]});
      const int64_t outside = std::exchange(copies_, unrolled ? copies : copies_);
      write_body(loop);
      copies_ = outside;
    }
    context_.facts.forget(assumed);
    return true;
  }

  void write_body(const ir::For& loop) {
    ++loops_;
    write(flattened(loop.body));
    --loops_;
    out_.close();
  }

  // Where lanes walk along rows (see transposed_loads.h). The last block begins early enough to be whole; a loop of
  // fewer steps than that is done step by step.
  bool write_blocks_of_steps(const ir::For& loop) {
    const auto extent = ir::constant_int(loop.extents[0]);
    if (extent ? *extent < kRowSteps : contains_loop(loop.body)) return false;
    const auto range = range_of_guards();
    if (!range) return false;
    size_t assumed = 0;
    for (const ir::If* guard : guards_) assumed += context_.facts.assume(guard->condition);
    const TransposedAccesses rows = find_transposed_accesses(context_, facts_, plan_, loop);
    const bool has_rows = !rows.loads.empty() || !rows.stores.empty();
    if (has_rows) {
      const std::string end = factor(context_, loop.extents[0]);
      if (!extent) out_.open("if ({} >= {})", end, kRowSteps);
      write_blocks_of_lanes(loop, rows, *range);
      if (!extent) out_.reopen("else");
    }
    context_.facts.forget(assumed);
    if (!has_rows || extent) return has_rows;
    open_plain({loop.vars[0], loop.extents[0]});
    write_body(loop);
    out_.close();
    return true;
  }

  // Guards that all lanes pass are left out.
  void write_blocks_of_lanes(const ir::For& loop, const TransposedAccesses& rows, const SplitIndexSet& range) {
    const std::string count = count_.empty() ? fmt::format("{}", plan_.width) : count_;
    if (guards_.empty()) return write_blocks(loop, rows, {"0", count, count_.empty()});
    const auto [first, end] = write_range(context_, range, {count, lane_.base});
    if (!contains_loop(loop.body)) {
      out_.open("if ({}{} == {})", first == "0" ? "" : first + " == 0 && ", end, count);
      const std::vector<const ir::If*> guards = std::exchange(guards_, {});
      write_blocks(loop, rows, {first, end, count_.empty()});
      guards_ = guards;
      out_.reopen(fmt::format("else if ({} < {})", first, end));
    } else {
      out_.open("if ({} < {})", first, end);
    }
    write_blocks(loop, rows, {first, end, false});
    out_.close();
  }

  void write_blocks(const ir::For& loop, const TransposedAccesses& rows, const LaneRange& lanes) {
    const std::string var = context_.names.of(loop.vars[0]), end = factor(context_, loop.extents[0]);
    const std::string first = context_.names.fresh(var + "_0"), step = context_.names.fresh("step");
    out_.open("for (int64_t {0} = 0; {0} < {1}; {0} += {2})", first, end, kRowSteps);
    TransposedBlock block{.var = loop.vars[0],
                          .start = first,
                          .step = step,
                          .done = "0",
                          .row = row_.name,
                          .lane = lane_.name,
                          .base = lane_.base.empty() ? "0" : lane_.base,
                          .first = lanes.first,
                          .end = lanes.end,
                          .all_lanes = lanes.is_all,
                          .open_rows = [this] { return open_rows(false); }};
    if (ir::constant_int(loop.extents[0]).value_or(1) % kRowSteps != 0) {
      block.start = context_.names.fresh(var + "_start");
      block.done = first + " - " + block.start;
      out_.line("const int64_t {} = min_of<int64_t>({}, {} - {});", block.start, first, end, kRowSteps);
    }
    for (const TransposedLoad& load : rows.loads) write_transposed_load(context_, plan_, load, block);
    std::vector<std::string> stored;
    for (const TransposedStore& store : rows.stores)
      stored.push_back(declare_transposed_store(context_, plan_, store, block));
    out_.open("for (int64_t {0} = {1}; {0} < {2}; ++{0})", step, block.done, kRowSteps);
    out_.line("const int64_t {} = {} + {};", var, block.start, step);
    write_body(loop);
    for (size_t k = 0; k < stored.size(); ++k)
      write_transposed_store(context_, plan_, rows.stores[k], block, stored[k]);
    out_.close();
    for (const TransposedLoad& load : rows.loads)
      for (const ir::ExprNode* node : load.nodes) context_.lanes.loads.erase(node);
    for (const TransposedStore& store : rows.stores) context_.lanes.stores.erase(store.stmt.get());
  }

  // The lanes that all guards let pass, where these are neighbours.
  std::optional<SplitIndexSet> range_of_guards() const {
    SplitIndexSet all;
    if (!guards_.empty() && !plan_.runs.parts().empty()) return std::nullopt;
    for (const ir::If* guard : guards_) {
      const auto range = split_index_set(context_, guard->condition, plan_.lane.var,
                                         [&](const ir::Var& var) { return facts_.is_varying(var) && !is_outer(var); });
      if (!range) return std::nullopt;
      all.conditions.insert(all.conditions.end(), range->conditions.begin(), range->conditions.end());
      all.first.insert(all.first.end(), range->first.begin(), range->first.end());
      all.end.insert(all.end.end(), range->end.begin(), range->end.end());
    }
    return all;
  }

  // Has a value whatever a guard says.
  static bool is_plain(const ir::Expr& expr) {
    bool plain = true;
    ir::walk(expr, [&](const ir::Expr& part) {
      const auto* node = std::get_if<ir::Binary>(&part->node);
      plain = plain && !std::holds_alternative<ir::Load>(part->node) &&
              !(node && (node->op == ir::BinaryOp::floor_div || node->op == ir::BinaryOp::floor_mod));
    });
    return plain;
  }

  // Whether the loop's variable chooses between registers.
  bool places_own(const ir::For& loop) const {
    const std::vector<Access> all = accesses(context_.facts, loop.body);
    return std::any_of(all.begin(), all.end(), [&](const Access& access) {
      return context_.lanes.own.contains(access.buffer.get()) && mentions(access.indices, loop.vars[0]);
    });
  }

  bool write_branch(const ir::If& branch) {
    out_.open("if ({})", value(context_, branch.condition));
    const size_t assumed = context_.facts.assume(branch.condition);
    write(flattened(branch.then));
    context_.facts.forget(assumed);
    if (branch.otherwise) {
      out_.reopen("else");
      write(flattened(branch.otherwise));
    }
    out_.close();
    return true;
  }

  // Groups
  // -----------------------------------------------------------------------------------------------------------------

  void write_group(const std::vector<ir::Stmt>& group, const std::vector<ir::Stmt>& later) {
    for (const ir::Stmt& stmt : group) keep_let(stmt, later);
    const bool is_straight = std::none_of(group.begin(), group.end(), contains_loop);
    const bool unrolled = is_straight && loops_ > 0 && uses_own(group) &&
                          cost(group) * copies_ * plan_.chunk_size() <= kUnrolledCost * kVectorLanes;
    std::vector<HoistedLoad> early;
    if (is_straight && loops_ > 0 && guards_.empty() && plan_.is_whole)
      early = find_hoisted_loads(context_, facts_, plan_, group);
    for (const HoistedLoad& load : early)
      if (load.for_all_rows) write_early(load);
    int opened = open_rows(unrolled);
    for (const HoistedLoad& load : early)
      if (!load.for_all_rows) write_early(load);
    opened += open_lanes(is_straight, unrolled);
    write_guarded(group);
    for (; opened > 0; --opened) out_.close();
    for (const HoistedLoad& load : early)
      for (const ir::ExprNode* node : load.nodes) context_.lanes.loads.erase(node);
  }

  bool uses_own(const std::vector<ir::Stmt>& group) const {
    return std::any_of(group.begin(), group.end(), [&](const ir::Stmt& stmt) {
      const std::vector<Access> all = accesses(context_.facts, stmt);
      return std::any_of(all.begin(), all.end(),
                         [&](const Access& access) { return context_.lanes.own.contains(access.buffer.get()); });
    });
  }

  void write_early(const HoistedLoad& early) {
    const auto& load = std::get<ir::Load>(early.load->node);
    const std::string name = context_.names.fresh(load.buffer->name + "_");
    std::string text = name;
    if (early.for_all_lanes) {
      out_.line("const float {} = widen({});", name, place(context_, load.buffer, load.indices));
    } else {
      const std::string first = lane_.base.empty() ? "0" : lane_.base;
      const std::vector<ir::Expr> indices = load.indices;
      out_.line("alignas(64) float {}[{}];", name, plan_.width);
      context_.lanes.values[plan_.lane.var.get()] = first;
      out_.line("widen<{}>({}, {});", plan_.width, name, address(context_, load.buffer, indices));
      context_.lanes.values.erase(plan_.lane.var.get());
      text = fmt::format("{}[{}]", name, lane_.name);
    }
    for (const ir::ExprNode* node : early.nodes) context_.lanes.loads[node] = text;
  }

  // A let that later statements use is kept for each lane.
  void keep_let(const ir::Stmt& stmt, const std::vector<ir::Stmt>& later) {
    const auto* let = std::get_if<ir::Let>(&stmt->node);
    if (let == nullptr) return;
    const bool used =
        std::any_of(later.begin(), later.end(), [&](const ir::Stmt& other) { return mentions(other, let->var); });
    if (!used) return;
    const std::string name = context_.names.fresh(let->var->name);
    const std::string type = c::is_index_arithmetic(let->value) ? "int64_t" : c::computed_type(let->var->type);
    out_.line("alignas(64) {} {}[{}];", type, name, plan_.chunk_size());
    context_.lanes.values[let->var.get()] = fmt::format("{}[{}]", name, context_.lanes.chunk_lane);
  }

  void write_guarded(const std::vector<ir::Stmt>& group) {
    size_t assumed = 0;
    for (const ir::If* guard : guards_) {
      out_.open("if ({})", value(context_, guard->condition));
      assumed += context_.facts.assume(guard->condition);
    }
    for (const ir::Stmt& stmt : group) write_statement(stmt);
    context_.facts.forget(assumed);
    for (size_t k = 0; k < guards_.size(); ++k) out_.close();
  }

  void write_statement(const ir::Stmt& stmt) {
    const auto* let = std::get_if<ir::Let>(&stmt->node);
    const auto kept = let != nullptr ? context_.lanes.values.find(let->var.get()) : context_.lanes.values.end();
    if (kept == context_.lanes.values.end()) return emit(context_, stmt);
    const bool is_index = c::is_index_arithmetic(let->value);
    if (is_index) context_.wide.insert(let->var.get());
    out_.line("{} = {};", kept->second, is_index ? index(context_, let->value) : value(context_, let->value));
  }
};

// Such stores have a form of their own.
bool stores_streams(const c::Context& context, const ir::Stmt& body) {
  const std::vector<Access> all = accesses(context.facts, body);
  return std::any_of(all.begin(), all.end(),
                     [](const Access& access) { return access.is_store && c::is_streamed(access.buffer); });
}

}  // namespace

std::optional<Lanes> choose_lanes(const c::Context& context, const std::vector<Dimension>& dimensions,
                                  const ir::Stmt& body) {
  if (dimensions.empty() || !stores_are_private(context.facts, dimensions, body, context.iteration_private))
    return std::nullopt;
  LaneFacts facts(dimensions, body);
  std::optional<LanePlan> plan = plan_lanes(context, facts, dimensions, body);
  if (!plan) return std::nullopt;
  if (plan->runs.parts().empty()) {
    if (!facts.has_common_loop(body)) return std::nullopt;
    if (plan->own.empty() && stores_streams(context, body)) return std::nullopt;
  }
  return Lanes{std::move(facts), *std::move(plan)};
}

void emit_lanes(c::Context& context, const Lanes& lanes, const ir::Stmt& body) {
  LaneWriter(context, lanes.facts, lanes.plan).run(body);
}

}  // namespace tilepilot::targets::cpu
