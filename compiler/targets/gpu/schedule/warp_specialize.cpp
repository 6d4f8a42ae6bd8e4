#include "compiler/targets/gpu/schedule/warp_specialize.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/cluster.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/threads/thread_differences.h"
#include "compiler/targets/gpu/facts/dead_lets.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/machine/tma_rules.h"
#include "compiler/targets/gpu/schedule/gemm_overlap.h"
#include "compiler/targets/gpu/schedule/load_balance.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"
#include "compiler/targets/gpu/schedule/tile_scheduler.h"
#include "compiler/targets/gpu/schedule/tma_pipeline.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

// Registers of a thread, by the number of consumer warpgroups: with those of the producer 64 Ki in all, in
// multiples of 8 (PTX ISA, "setmaxnreg"). Of shares for as many warpgroups the first that is enough is taken: what a
// producer works out for itself, where tiles are, should have registers, too.
struct RegisterShare {
  int64_t groups, consumer, producer;
};
constexpr RegisterShare kRegisterShares[] = {{1, 240, 24}, {2, 232, 40}, {2, 240, 24}, {3, 160, 32}, {4, 112, 32}};

// Null where there is none for as many threads.
const RegisterShare* register_share(const ir::Kernel& kernel, int64_t threads) {
  const int64_t needed = registers_of_fragments(kernel) + kOverheadRegisters;
  const RegisterShare* share = nullptr;
  for (const RegisterShare& one : kRegisterShares)
    if (one.groups * layout::kWarpgroupSize == threads && (share == nullptr || share->consumer < needed)) share = &one;
  return share;
}

// Registers of a thread for the fragments. A warpgroup whose sums fill it has a multiprocessor almost for itself,
// and a producer costs nothing; of smaller ones several blocks run beside each other, and one waits while others work.
// Where far more is held than there are registers, those that a producer has are missed.
constexpr int64_t kFilledByFragments = 160, kSpilledByFragments = kMostRegistersOfThread + kOverheadRegisters;

// Does not stand for all threads once where threads run for themselves, or may wait for blocks that come later: blocks
// that take turns would wait for ever.
bool stays_whole(const Stmt& stmt) {
  const auto* gemm = ir::as<ir::Gemm>(stmt);
  return (gemm && gemm->asynchronous) || ir::as<ir::While>(stmt) || ir::needs_all_threads(*stmt) ||
         ir::as<ir::Barrier>(stmt) || ir::as<ir::Async>(stmt) || ir::as<ir::Roles>(stmt) ||
         ir::as<ir::Concurrent>(stmt) || ir::as<ir::ExternCall>(stmt);
}

// Whether it leaves the loop around it, or goes on with it, and does nothing else.
bool is_jump(const Stmt& stmt) {
  if (ir::as<ir::Break>(stmt) || ir::as<ir::Continue>(stmt)) return true;
  const auto* choice = ir::as<ir::If>(stmt);
  const std::vector<Stmt> body = choice && !choice->otherwise ? ir::statements(choice->then) : std::vector<Stmt>{};
  return body.size() == 1 && is_jump(body[0]);
}

// A value that each thread computes for itself, of what both roles know: `x = T.alloc_var(...); x = table[bx]`.
bool is_own_value(const Stmt& stmt) {
  if (const auto* store = ir::as<ir::Store>(stmt)) return store->buffer->scope == ir::Scope::local;
  if (const auto* list = ir::as<ir::Block>(stmt))
    return std::all_of(list->body.begin(), list->body.end(), is_own_value);
  if (const auto* choice = ir::as<ir::If>(stmt))
    return is_own_value(choice->then) && (!choice->otherwise || is_own_value(choice->otherwise));
  const auto* loop = ir::as<ir::For>(stmt);
  if (loop && (loop->kind == ir::LoopKind::serial || loop->kind == ir::LoopKind::unrolled))
    return is_own_value(loop->body);
  return ir::as<ir::Let>(stmt) != nullptr;
}

// Elements that a block writes once, outside parallel loops.
bool writes_once(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  if (loop && loop->kind == ir::LoopKind::parallel) return false;
  if (const auto* store = ir::as<ir::Store>(stmt)) return store->buffer->scope != ir::Scope::local;
  if (const auto* atomic = ir::as<ir::Atomic>(stmt)) return atomic->element.buffer->scope != ir::Scope::local;
  if (ir::as<ir::Print>(stmt)) return true;
  if (const auto* list = ir::as<ir::Block>(stmt)) return std::any_of(list->body.begin(), list->body.end(), writes_once);
  if (loop) return writes_once(loop->body);
  if (const auto* choice = ir::as<ir::If>(stmt))
    return writes_once(choice->then) || (choice->otherwise && writes_once(choice->otherwise));
  return false;
}

// Whether its blocks fall into whole clusters, whatever it is called with.
bool has_whole_clusters(const ir::Kernel& kernel) {
  for (size_t axis = 0; axis < kernel.cluster.size(); ++axis)
    if (const auto extent = ir::constant_int(kernel.grid[axis]); !extent || *extent % kernel.cluster[axis] != 0)
      return false;
  return true;
}

class Specializer {
 public:
  Specializer(const ir::Kernel& kernel, const Machine& machine, bool preloads)
      : result_{kernel, {}, false},
        threads_(thread_count(kernel)),
        consumers_{threads_ / layout::kWarpSize, ir::make_var("block", ir::kInt32), ir::cluster_size(kernel)},
        machine_(machine),
        loops_(kernel, machine, true),
        preloads_(preloads) {}

  // Why not: `obstacle`.
  std::optional<SpecializedKernel> run() {
    ir::Kernel& kernel = result_.kernel;
    const RegisterShare* share = register_share(kernel, threads_);
    const Stmt& body = kernel.body;
    if (share == nullptr)
      give_up(body, fmt::format("{} threads are no 1 to 4 warpgroups beside it", threads_));
    else if (share->groups == 1 && registers_of_fragments(kernel) < kFilledByFragments)
      give_up(body, "several blocks of one warpgroup run beside each other");
    else if (share->groups == 1 && registers_of_fragments(kernel) > kSpilledByFragments)
      give_up(body, "the fragments of one warpgroup need more registers than there are");
    else if (share->groups == 4 && registers_of_fragments(kernel) + kOverheadRegisters > share->consumer)
      give_up(body, fmt::format("a thread of 4 warpgroups has {} registers then", share->consumer));
    else if (!kernel.thread_vars.empty() || kernel.threads.size() != 1)
      give_up(body, "the program says what each thread does");
    else if (ir::contains(body, stays_whole))
      give_up(first_of(body, stays_whole), "all threads must come here");
    else if (writes_once(body))
      give_up(body, "single elements are written outside of parallel loops");
    else if (!has_whole_clusters(kernel))
      give_up(body, "its blocks may be no whole clusters");
    if (!possible_) return {};
    registers_ = share->consumer;
    Stmts producer, consumer;
    split(kernel.body, consumer, producer);
    if (shares_ && !(even_ && same_ways_)) give_up(body, "blocks of a cluster may go different ways");
    if (!possible_) return {};
    for (const TmaPipeline& tile : pipelines_) consumer = tile.with_tiles(consumer);
    producer = without_dead_values(producer);
    if (!knows_all(producer)) give_up(body, "where its copies start is computed by all threads");
    if (!possible_) return {};
    stand_side_by_side(*share, consumer, producer);
    return std::move(result_);
  }

  Decision obstacle() const {
    return {where_, "warp roles", "none: all threads do the same", {"not a producer warpgroup: " + why_}};
  }

 private:
  using Stmts = std::vector<Stmt>;

  SpecializedKernel result_;
  const int64_t threads_;  // of the consumers
  const TileConsumers consumers_;
  const Machine& machine_;
  const PipelinedLoops loops_;
  const bool preloads_;
  int depth_ = 0;          // of loops and branches around
  int64_t registers_ = 0;  // of a consumer thread
  bool possible_ = true;
  Span where_;              // what makes it impossible
  std::string why_;         // the first reason
  bool even_ = true;        // all blocks have the same work
  bool only_gemms_ = true;  // their loops are GEMMs and nothing else
  bool shares_ = false;     // some loads are for several blocks of the cluster
  bool same_ways_ = true;   // all blocks go the same way to their loops
  std::vector<Phases> full_phases_, empty_phases_;
  std::vector<TmaPipeline> pipelines_;  // tiles that a block needs once

  void give_up(const Stmt& stmt, std::string why) {
    if (possible_) where_ = stmt->span, why_ = std::move(why);
    possible_ = false;
  }
  static Stmt first_of(const Stmt& body, bool (*wanted)(const Stmt&)) {
    Stmt found;
    ir::walk(
        body,
        [&](const Stmt& part) {
          if (!found && wanted(part)) found = part;
        },
        [](const Expr&) {});
    return found;
  }

  TileSchedule tile_schedule() const {
    const ir::BlockOrder& asked = result_.kernel.order;
    const bool by_products = only_gemms_ && result_.kernel.grid.size() == 2;
    const bool by_panels = asked.panel > 0 && result_.kernel.grid.size() > 1;
    const Rasterisation plain = by_panels     ? rasterisation_by_panels(asked)
                                : by_products ? gemm_rasterisation()
                                              : Rasterisation{};
    if (even_) return {true, false, plain};
    std::vector<size_t> axes = axes_of_work(result_.kernel);
    const bool last_first = !work_shrinks(result_.kernel, axes);
    if (by_panels || axes.empty()) return {false, last_first, plain};  // nobody knows which blocks have most
    const int64_t band = band_of_equal_work(result_.kernel, axes, machine_);
    return {false, last_first, rasterisation_by_work(std::move(axes), band)};
  }

  void stand_side_by_side(const RegisterShare& share, const Stmts& consumer, const Stmts& producer) {
    ir::Kernel& kernel = result_.kernel;
    const Span span = kernel.body->span;
    const TileSchedule schedule = tile_schedule();
    const bool is_line = kernel.grid.size() == 1;
    const auto role = [&](const std::string& registers, const std::vector<Phases>& phases, const Stmts& body) {
      Stmts out{call(registers, {}, span)};
      for (const Phases& one : phases)
        out.push_back(ir::make_stmt(ir::Store{one.bits, {ir::int_imm(0)}, ir::int_imm(one.first)}, span));
      for (const Stmt& stmt : scheduled_tiles(kernel, schedule, consumers_.block, body)) out.push_back(stmt);
      return out;
    };
    const auto as_roles = [&](std::vector<int> who, Stmts body) {
      return ir::make_stmt(ir::Roles{std::move(who), ir::make_stmt(ir::Block{std::move(body)}, span)}, span);
    };
    std::vector<int> groups(static_cast<size_t>(share.groups));
    std::iota(groups.begin(), groups.end(), 0);
    Stmts first = role(fmt::format("set_registers_up<{}>", share.consumer), full_phases_, consumer);
    first.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_stores, 0}, span));
    Stmts second = role(fmt::format("set_registers_down<{}>", share.producer), empty_phases_, producer);
    kernel.body = ir::make_stmt(ir::Block{{as_roles(std::move(groups), std::move(first)),
                                           as_roles({static_cast<int>(share.groups)}, std::move(second))}},
                                span);
    kernel.threads = {threads_ + layout::kWarpgroupSize};
    kernel.grid = {block_count(kernel)};
    kernel.block_vars = {consumers_.block};
    if (consumers_.in_cluster > 1) kernel.cluster = {consumers_.in_cluster};
    result_.persistent = schedule.persistent;
    if (kernel.order.panel > 0)
      result_.decisions.push_back(decision_of_panels(kernel.order, is_line ? "the grid has one axis" : ""));
    kernel.order = {};
  }

  // What each role does of a statement.
  void split(const Stmt& stmt, Stmts& consumer, Stmts& producer) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : list->body) split(part, consumer, producer);
    } else if (is_pipelined(stmt)) {
      split_ring(*ir::as<ir::For>(stmt), stmt->span, consumer, producer);
    } else if (ir::as<ir::Let>(stmt) || is_jump(stmt) || is_own_value(stmt)) {
      consumer.push_back(stmt);
      producer.push_back(stmt);
    } else if (passes::may_jump_out(stmt) && !ir::contains(stmt, is_pipelined)) {
      give_up(stmt, "a loop is left where more is done");
    } else if (depth_ == 0 && preloads_ && is_preloaded(stmt)) {
      pipelines_.push_back(add_pipeline({stmt}, 1));
      pipelines_.back().ring().wait_for(ir::int_imm(0), stmt->span, consumer);
      for (const Stmt& part : pipelines_.back().issue(nullptr, ir::int_imm(0))) producer.push_back(part);
    } else if (!ir::contains(stmt, is_pipelined)) {
      if (ir::shares_in_cluster(stmt)) give_up(stmt, "a copy for several blocks is outside of the pipelined loop");
      consumer.push_back(stmt);
    } else if (const auto* loop = ir::as<ir::For>(stmt)) {
      for (const Expr& extent : loop->extents) same_ways_ = same_ways_ && is_same_in_all_blocks(extent);
      Stmts here, there;
      ++depth_;
      split(loop->body, here, there);
      --depth_;
      ir::For consumed = *loop, produced = *loop;
      consumed.body = block(std::move(here), loop->body->span);
      produced.body = block(std::move(there), loop->body->span);
      consumer.push_back(ir::make_stmt(std::move(consumed), stmt->span));
      producer.push_back(ir::make_stmt(std::move(produced), stmt->span));
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      split_choice(*choice, stmt->span, consumer, producer);
    } else {
      give_up(stmt, "a pipelined loop stands in it");
    }
  }

  void split_choice(const ir::If& choice, Span span, Stmts& consumer, Stmts& producer) {
    same_ways_ = same_ways_ && is_same_in_all_blocks(choice.condition);
    Stmts here[2], there[2];
    ++depth_;
    split(choice.then, here[0], there[0]);
    if (choice.otherwise) split(choice.otherwise, here[1], there[1]);
    --depth_;
    const auto chosen = [&](Stmts* parts) {
      const Stmt otherwise = choice.otherwise ? block(std::move(parts[1]), span) : nullptr;
      return ir::make_stmt(ir::If{choice.condition, block(std::move(parts[0]), span), otherwise}, span);
    };
    consumer.push_back(chosen(here));
    producer.push_back(chosen(there));
  }

  // Made of what the program is called with.
  bool is_same_in_all_blocks(const Expr& expr) const {
    ir::Variables own = ir::bound_in(result_.kernel.body);
    for (const Var& var : result_.kernel.block_vars) own.insert(var.get());
    return !ir::mentions(expr, own) && !ir::has_loads(expr);
  }

  // The consumer waits for the tiles of k, starts the wgmma of k, waits for the wgmma of k - 1, and releases its slot.
  // Where there is more to compute than one wgmma, slots are released when all of it is done.
  void split_ring(const ir::For& loop, Span span, Stmts& consumer, Stmts& producer) {
    auto [condition, ahead, rest, decisions] = loops_.parts(loop);
    result_.decisions.insert(result_.decisions.end(), decisions.begin(), decisions.end());
    const bool by_tma =
        std::all_of(ahead.begin(), ahead.end(), [](const Stmt& load) { return tma_obstacle_of_load(load).empty(); });
    const Stmt body_after = block(std::move(rest), loop.body->span);
    const Stmts gemms = condition ? Stmts{} : loops_.async_gemms(ahead, body_after);
    const bool multiplies = loops_.uses_wgmma(body_after);
    const bool shares_more = ir::shares_in_cluster(body_after);
    if (const std::string why = ahead.empty() ? "no copy of the loop may run ahead"
                                : !by_tma     ? "a copy of the loop is none for TMA"
                                : !multiplies ? "the loop has no wgmma"
                                : shares_more || ir::contains(body_after, is_pipelined)
                                    ? "a pipelined loop, or a copy for several blocks, stands in the loop"
                                : passes::may_jump_out(body_after) ? "the loop may be left early"
                                                                   : "";
        !why.empty())
      return give_up(loop.body, why);
    even_ = even_ && is_same_in_all_blocks(loop.extents[0]) && !condition;
    only_gemms_ = only_gemms_ && !gemms.empty();
    const Stmts statements = ir::statements(body_after);
    auto overlap = std::variant<GemmOverlap, std::string>(condition ? "iterations may be left out" : "");
    if (!condition && gemms.empty()) overlap = find_gemm_overlap(loops_, ahead, statements, registers_);
    if (const auto* parts = std::get_if<GemmOverlap>(&overlap))
      return split_overlap(loop, ahead, *parts, consumer, producer);
    if (const auto& why = std::get<std::string>(overlap); !why.empty()) decide_overlap(statements, why);

    const TmaPipeline pipeline = add_pipeline(std::move(ahead), loop.num_stages);
    const Ring& ring = pipeline.ring();
    const Var& var = loop.vars[0];
    const Expr k = ir::var_ref(var, span), &count = loop.extents[0];
    const Expr one = ir::int_imm(1, var->type), before = ir::binary(BinaryOp::sub, k, one, span);
    Stmts body;
    ring.wait_for(k, span, body);
    if (!gemms.empty()) {
      for (const Stmt& gemm : gemms) body.push_back(ring.in_slot(k, gemm));
      body.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, static_cast<int64_t>(gemms.size())}, span));
      const Expr has_before = ir::binary(BinaryOp::ge, k, one, span);
      body.push_back(ir::make_stmt(ir::If{has_before, pipeline.release(before), nullptr}, span));
      consumer.push_back(serial(loop, std::move(body), span));
      consumer.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, 0}, span));
      const Expr last = ir::binary(BinaryOp::sub, count, one, span), any = ir::binary(BinaryOp::ge, count, one, span);
      consumer.push_back(ir::make_stmt(ir::If{any, pipeline.release(last), nullptr}, span));
    } else {
      for (const Stmt& stmt : ir::statements(ring.in_slot(k, body_after))) body.push_back(stmt);
      body.push_back(pipeline.release(k));
      consumer.push_back(serial(loop, only_if(condition, std::move(body), span), span));
    }
    producer.push_back(serial(loop, only_if(condition, pipeline.issue(var, k), span), span));
  }

  // Both roles leave out the same iterations; slots of these are not used.
  static Stmts only_if(const Expr& condition, Stmts body, Span span) {
    if (!condition) return body;
    return {ir::make_stmt(ir::If{condition, block(std::move(body), span), nullptr}, span)};
  }

  bool is_preloaded(const Stmt& stmt) const {
    const auto* copy = ir::as<ir::Copy>(stmt);
    return copy && !ir::reaches_peers(stmt) && loops_.may_be_preloaded(stmt) && tma_obstacle(*copy).empty();
  }

  TmaPipeline add_pipeline(Stmts copies, int64_t stages) {
    TmaPipeline pipeline(std::move(copies), stages, consumers_);
    ir::Kernel& kernel = result_.kernel;
    pipeline.ring().move_requests(kernel);
    for (const auto& [tile, slots] : pipeline.ring().slots) {
      std::erase_if(kernel.allocations, [&, tile = tile](const Buffer& one) { return one.get() == tile; });
      result_.rings.push_back(slots);
    }
    kernel.allocations.insert(kernel.allocations.end(), pipeline.allocations().begin(), pipeline.allocations().end());
    for (Decision& decision : pipeline.decisions()) result_.decisions.push_back(std::move(decision));
    full_phases_.push_back(pipeline.full_phases());
    for (const Phases& one : pipeline.empty_phases()) empty_phases_.push_back(one);
    shares_ = shares_ || pipeline.is_shared();
    return pipeline;
  }

  static Stmt serial(const ir::For& loop, Stmts body, Span span) {
    const Stmt inner = block(std::move(body), loop.body->span);
    return ir::make_stmt(ir::For{ir::LoopKind::serial, loop.vars, loop.extents, 0, inner}, span);
  }

  void decide_overlap(const Stmts& statements, const std::string& obstacle) {
    for (const Stmt& stmt : statements) {
      if (!ir::contains<ir::Gemm>(stmt)) continue;
      const auto* gemm = ir::as<ir::Gemm>(stmt);
      Decision decision{stmt->span, gemm ? "order of gemm into " + gemm->c.buffer->name : "order of GEMMs",
                        "beside the iteration's second GEMM"};
      if (!obstacle.empty())
        decision = {decision.span, decision.what, "within its iteration", {"not ahead: " + obstacle}};
      result_.decisions.push_back(std::move(decision));
      return;
    }
  }

  // The first GEMM of k, and the second one of k - 1, are started together (gemm_overlap.h). Each GEMM's tiles are a
  // ring of their own, which is released as that GEMM is done; others belong to the iteration.
  void split_overlap(const ir::For& loop, const Stmts& ahead, const GemmOverlap& overlap, Stmts& consumer,
                     Stmts& producer) {
    decide_overlap({overlap.first}, "");
    Stmts copies[3];
    for (const Stmt& copy : ahead) {
      const ir::BufferSet tile{ir::as<ir::Copy>(copy)->destination.buffer.get()};
      const auto uses = [&](const Stmts& part) {
        return std::any_of(part.begin(), part.end(), [&](const Stmt& stmt) { return ir::accesses_any(stmt, tile); });
      };
      const bool by_work = uses(overlap.beside) || uses(overlap.after);
      copies[by_work ? 1 : uses({overlap.second}) ? 2 : 0].push_back(copy);
    }
    std::optional<TmaPipeline> pipeline[3];
    const Var& var = loop.vars[0];
    const Expr k = ir::var_ref(var, loop.body->span);
    Stmts issuing;
    for (size_t part = 0; part < 3; ++part) {
      if (copies[part].empty()) continue;
      pipeline[part] = add_pipeline(std::move(copies[part]), loop.num_stages);
      for (const Stmt& stmt : pipeline[part]->issue(var, k)) issuing.push_back(stmt);
    }
    producer.push_back(serial(loop, std::move(issuing), loop.body->span));
    const auto tiles = [&](const std::optional<TmaPipeline>& part) {
      return part ? OverlapTiles{&part->ring(), [&](const Expr& number) { return part->release(number); }}
                  : OverlapTiles{};
    };
    for (const Stmt& stmt :
         overlapped_loop(loop, overlap, {tiles(pipeline[0]), tiles(pipeline[1]), tiles(pipeline[2])}))
      consumer.push_back(stmt);
  }

  // Whether the producer can compute all that it names: nothing that the kernel writes but values of its own, and no
  // variables that others bind.
  bool knows_all(const Stmts& producer) const {
    const ir::BufferSet written = ir::effects_of(result_.kernel.body).writes;
    const Stmt all = ir::make_stmt(ir::Block{producer}, result_.kernel.body->span);
    ir::Variables others = ir::bound_in(result_.kernel.body);
    for (const ir::VarData* own : ir::bound_in(all)) others.erase(own);
    bool known = true;
    ir::walk(
        all, [](const Stmt&) {},
        [&](const Expr& part) {
          if (const auto* ref = ir::as<ir::VarRef>(part)) known &= !others.contains(ref->var.get());
          const auto* load = ir::as<ir::Load>(part);
          if (load == nullptr) return;
          const ir::BufferData* buffer = load->buffer.get();
          const bool phases = std::any_of(empty_phases_.begin(), empty_phases_.end(),
                                          [&](const Phases& one) { return one.bits.get() == buffer; });
          const bool own = buffer->scope == ir::Scope::local &&
                           ir::count_writes(all, buffer) == ir::count_writes(result_.kernel.body, buffer);
          known &= phases || own || (buffer->scope == ir::Scope::global && !written.contains(buffer));
        });
    return known;
  }
};

}  // namespace

std::optional<SpecializedKernel> specialize_warps(const ir::Kernel& kernel, const Machine& machine, bool preloads,
                                                  std::vector<Decision>& obstacles) {
  if (!machine.has_tma || !machine.has_wgmma || !machine.reallocates_registers) return std::nullopt;
  if (!ir::contains(kernel.body, is_pipelined)) return std::nullopt;
  Specializer specializer(kernel, machine, preloads);
  auto specialized = specializer.run();
  if (!specialized) obstacles.push_back(specializer.obstacle());
  return specialized;
}

}  // namespace tilepilot::targets::gpu
