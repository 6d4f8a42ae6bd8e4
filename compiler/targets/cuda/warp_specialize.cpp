#include "compiler/targets/cuda/warp_specialize.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "compiler/ir/cluster.h"
#include "compiler/ir/search.h"
#include "compiler/ir/touches.h"
#include "compiler/targets/cuda/block_order.h"
#include "compiler/targets/cuda/copy_engine.h"
#include "compiler/targets/cuda/infer.h"
#include "compiler/targets/cuda/pipelined_loop.h"
#include "compiler/targets/cuda/product_chain.h"
#include "compiler/targets/cuda/statements.h"
#include "compiler/targets/cuda/uneven_blocks.h"
#include "compiler/targets/cuda/unused_lets.h"

namespace tilepilot::targets::cuda {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

// Registers of a thread, by the number of warp groups that compute: with those of the loading one 64 Ki in all, in
// multiples of 8 (PTX ISA, "setmaxnreg").
struct RegisterShare {
  int64_t groups, computing, loading;
};
constexpr RegisterShare kRegisterShares[] = {{2, 232, 40}, {3, 160, 32}};

// Does not stand for all threads once where threads run for themselves, or may not be repeated or skipped.
bool stays_whole(const Stmt& stmt) {
  const auto* gemm = ir::as<ir::Gemm>(stmt);
  return (gemm && gemm->asynchronous) || ir::as<ir::While>(stmt) || ir::as<ir::Sync>(stmt) ||
         ir::as<ir::Atomic>(stmt) || ir::as<ir::AllReduce>(stmt) || ir::as<ir::Shuffle>(stmt) ||
         ir::as<ir::Barrier>(stmt) || ir::as<ir::Async>(stmt) || ir::as<ir::Roles>(stmt) ||
         ir::as<ir::Concurrent>(stmt) || ir::as<ir::Check>(stmt) || ir::as<ir::Print>(stmt) ||
         ir::as<ir::ExternCall>(stmt) || ir::as<ir::Break>(stmt) || ir::as<ir::Continue>(stmt);
}

// Elements that a block writes once, outside parallel loops.
bool writes_once(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  if (loop && loop->kind == ir::LoopKind::parallel) return false;
  if (const auto* store = ir::as<ir::Store>(stmt)) return store->buffer->scope != ir::Scope::local;
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
  Specializer(const ir::Kernel& kernel, Architecture architecture, bool feeds_early)
      : result_{kernel, {}, false},
        threads_(thread_count(kernel)),
        in_cluster_(ir::cluster_size(kernel)),
        loops_(kernel, architecture, true),
        feeds_early_(feeds_early) {}

  std::optional<SpecializedKernel> run() {
    ir::Kernel& kernel = result_.kernel;
    const auto* share =
        std::find_if(std::begin(kRegisterShares), std::end(kRegisterShares),
                     [&](const RegisterShare& one) { return one.groups * layout::kWarpGroupSize == threads_; });
    if (share == std::end(kRegisterShares) || !kernel.thread_vars.empty() || kernel.threads.size() != 1) return {};
    if (!ir::contains(kernel.body, is_pipelined) || ir::contains(kernel.body, stays_whole)) return {};
    if (writes_once(kernel.body) || !has_whole_clusters(kernel)) return {};
    registers_ = share->computing;
    Stmts loading, computing;
    split(kernel.body, computing, loading);
    if (!possible_ || (shares_ && !(even_ && same_ways_))) return {};
    for (const Fed& tile : fed_) computing = with_fed(tile, computing);
    loading = without_unused_lets(loading);
    if (!knows_all(loading)) return {};
    axes_of_work_ = axes_of_work(kernel);
    result_.persistent = even_ || !axes_of_work_.empty();
    const Span span = kernel.body->span;
    const auto groups = static_cast<int>(share->groups);
    std::vector<int> first(static_cast<size_t>(groups));
    for (int group = 0; group < groups; ++group) first[static_cast<size_t>(group)] = group;
    computing = role(fmt::format("set_registers_up<{}>", share->computing), full_phases_, std::move(computing));
    computing.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_stores, 0}, span));
    loading = role(fmt::format("set_registers_down<{}>", share->loading), empty_phases_, std::move(loading));
    const auto as_roles = [&](std::vector<int> who, Stmts body) {
      return ir::make_stmt(ir::Roles{std::move(who), ir::make_stmt(ir::Block{std::move(body)}, span)}, span);
    };
    kernel.body = ir::make_stmt(
        ir::Block{{as_roles(std::move(first), std::move(computing)), as_roles({groups}, std::move(loading))}}, span);
    kernel.threads = {threads_ + layout::kWarpGroupSize};
    kernel.block_vars = {block_};
    kernel.grid = {total_};
    if (in_cluster_ > 1) kernel.cluster = {in_cluster_};
    return std::move(result_);
  }

 private:
  using Stmts = std::vector<Stmt>;
  // Of a ring's phases: what they begin with, which is what they are in when nothing has arrived.
  struct Phases {
    Buffer bits;
    int64_t first;
  };

  SpecializedKernel result_;
  const int64_t threads_, in_cluster_;
  const PipelinedLoops loops_;
  const bool feeds_early_;
  int depth_ = 0;          // of loops and branches around
  int64_t registers_ = 0;  // of a thread that computes
  bool possible_ = true;
  bool even_ = true;                  // all blocks have the same work
  std::vector<size_t> axes_of_work_;  // of the grid, where blocks have other work than others
  bool products_alone_ = true;        // their loops are products and nothing else
  bool shares_ = false;               // some loads are for several blocks of the cluster
  bool same_ways_ = true;             // all blocks go the same way to their loops
  std::vector<Phases> full_phases_, empty_phases_;
  Var block_ = ir::make_var("block", ir::kInt32);
  Expr total_;

  Buffer allocated(Buffer buffer) {
    result_.kernel.allocations.push_back(buffer);
    return buffer;
  }

  // What each side does of a statement.
  void split(const Stmt& stmt, Stmts& computing, Stmts& loading) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : list->body) split(part, computing, loading);
    } else if (is_pipelined(stmt)) {
      split_ring(*ir::as<ir::For>(stmt), stmt->span, computing, loading);
    } else if (ir::as<ir::Let>(stmt)) {
      computing.push_back(stmt);
      loading.push_back(stmt);
    } else if (depth_ == 0 && feeds_early_ && is_fed(stmt)) {
      fed_.push_back(feed({stmt}, 1));
      fed_.back().ring.wait_for(ir::int_imm(0), stmt->span, computing);
      for (const Stmt& part : asked(fed_.back(), nullptr, ir::int_imm(0))) loading.push_back(part);
    } else if (!ir::contains(stmt, is_pipelined)) {
      possible_ = possible_ && !ir::shares_in_cluster(stmt);
      computing.push_back(stmt);
    } else if (const auto* loop = ir::as<ir::For>(stmt)) {
      for (const Expr& extent : loop->extents) same_ways_ = same_ways_ && is_same_in_all_blocks(extent);
      Stmts here, there;
      ++depth_;
      split(loop->body, here, there);
      --depth_;
      ir::For computed = *loop, loaded = *loop;
      computed.body = block(std::move(here), loop->body->span);
      loaded.body = block(std::move(there), loop->body->span);
      computing.push_back(ir::make_stmt(std::move(computed), stmt->span));
      loading.push_back(ir::make_stmt(std::move(loaded), stmt->span));
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      split_choice(*choice, stmt->span, computing, loading);
    } else {
      possible_ = false;
    }
  }

  void split_choice(const ir::If& choice, Span span, Stmts& computing, Stmts& loading) {
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
    computing.push_back(chosen(here));
    loading.push_back(chosen(there));
  }

  // Made of what the program is called with.
  bool is_same_in_all_blocks(const Expr& expr) const {
    ir::Variables own = ir::bound_in(result_.kernel.body);
    for (const Var& var : result_.kernel.block_vars) own.insert(var.get());
    return !ir::mentions(expr, own) && !ir::has_loads(expr);
  }

  Expr rank(Span span) const {
    return ir::binary(BinaryOp::floor_mod, ir::var_ref(block_, span), ir::int_imm(in_cluster_), span);
  }

  // Loads for the blocks of a mask: the first of them asks for all, as soon as the others have given the slot back,
  // too.
  struct SharedLoads {
    int64_t mask;
    Buffer others, turns;
    int64_t first() const { return std::countr_zero(static_cast<uint64_t>(mask)); }
  };

  std::vector<SharedLoads> shared_loads(const Ring& ring, Span span) {
    std::vector<SharedLoads> result;
    for (const Stmt& stmt : ring.copies) {
      const int64_t mask = ir::as<ir::Copy>(stmt)->multicast;
      const int64_t others = std::popcount(static_cast<uint64_t>(mask)) - 1;
      const bool known = std::any_of(result.begin(), result.end(), [&](const auto& one) { return one.mask == mask; });
      if (others < 1 || known) continue;
      shares_ = true;
      result.push_back({mask,
                        allocated(slot_barriers("others", ring.stages, others * threads_ / layout::kWarpSize, span)),
                        allocated(slot_phases("others_phases", span))});
      empty_phases_.push_back({result.back().turns, (int64_t{1} << ring.stages) - 1});
    }
    return result;
  }

  // To the blocks that ask for tiles of this one.
  void tell_first(const std::vector<SharedLoads>& shared, const Expr& slot, Span span, Stmts& out) const {
    for (const SharedLoads& one : shared) {
      const Expr others = ir::int_imm(one.mask & (one.mask - 1));
      const Expr bit =
          ir::binary(BinaryOp::bit_and, ir::binary(BinaryOp::shr, others, rank(span), span), ir::int_imm(1), span);
      const Stmt told = ir::make_stmt(ir::Barrier{ir::BarrierOp::arrive, element(one.others, {slot}, span), nullptr,
                                                  threads_ / layout::kWarpSize, ir::int_imm(one.first())},
                                      span);
      out.push_back(ir::make_stmt(ir::If{ir::binary(BinaryOp::eq, bit, ir::int_imm(1), span), told, nullptr}, span));
    }
  }

  void wait_for_others(const std::vector<SharedLoads>& shared, const Expr& slot, Span span, Stmts& out) const {
    for (const SharedLoads& one : shared) {
      Stmts waiting;
      wait_in_turn(one.others, one.turns, slot, span, waiting);
      const Expr asks = ir::binary(BinaryOp::eq, rank(span), ir::int_imm(one.first()), span);
      out.push_back(ir::make_stmt(ir::If{asks, block(std::move(waiting), span), nullptr}, span));
    }
  }

  void decide(const Ring& ring) {
    std::vector<Decision> all = ring.decisions("by the copy engine (TMA), which threads of their own ask", "");
    for (size_t k = 0; k < all.size(); ++k) {
      const int64_t mask = ir::as<ir::Copy>(ring.copies[k])->multicast;
      if (mask != 0) all[k].chosen += fmt::format(", once for the blocks of mask {}", mask);
      result_.decisions.push_back(std::move(all[k]));
    }
  }

  // Computing: wait for the tiles of k; start the product of k; wait for the product of k - 1, and give its slot back.
  // Where there is more to compute than one product, slots are given back when all of it is done.
  void split_ring(const ir::For& loop, Span span, Stmts& computing, Stmts& loading) {
    auto [ahead, rest, decisions] = loops_.parts(loop);
    result_.decisions.insert(result_.decisions.end(), decisions.begin(), decisions.end());
    const bool by_engine = std::all_of(ahead.begin(), ahead.end(),
                                       [](const Stmt& stmt) { return not_by_engine(*ir::as<ir::Copy>(stmt)).empty(); });
    const Stmt body_after = block(std::move(rest), loop.body->span);
    const Stmt product = loops_.running_product(ahead, body_after);
    const bool multiplies = loops_.multiplies_by_groups(body_after);
    const bool shares_more = ir::shares_in_cluster(body_after);
    if (ahead.empty() || !by_engine || !multiplies || shares_more || ir::contains(body_after, is_pipelined)) {
      possible_ = false;
      return;
    }
    even_ = even_ && is_same_in_all_blocks(loop.extents[0]);
    products_alone_ = products_alone_ && product;
    const Stmts statements = ir::statements(body_after);
    auto chain = product_chain(loops_, ahead, statements, registers_);
    if (const auto* parts = std::get_if<ProductChain>(&chain))
      return split_chain(loop, ahead, *parts, computing, loading);
    if (const auto& why = std::get<std::string>(chain); !why.empty()) decide_chain(statements, why);

    const Fed fed = feed(std::move(ahead), loop.num_stages);
    const Ring& ring = fed.ring;
    const Var& var = loop.vars[0];
    const Expr k = ir::var_ref(var, span), &count = loop.extents[0];
    const Expr one = ir::int_imm(1, var->type), before = ir::binary(BinaryOp::sub, k, one, span);
    Stmts body;
    ring.wait_for(k, span, body);
    if (product) {
      body.push_back(ring.in_slot(k, product));
      body.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, 1}, span));
      const Expr has_before = ir::binary(BinaryOp::ge, k, one, span);
      body.push_back(ir::make_stmt(ir::If{has_before, give_back(fed, before), nullptr}, span));
      computing.push_back(serial(loop, std::move(body), span));
      computing.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, 0}, span));
      const Expr last = ir::binary(BinaryOp::sub, count, one, span), any = ir::binary(BinaryOp::ge, count, one, span);
      computing.push_back(ir::make_stmt(ir::If{any, give_back(fed, last), nullptr}, span));
    } else {
      for (const Stmt& stmt : ir::statements(ring.in_slot(k, body_after))) body.push_back(stmt);
      body.push_back(give_back(fed, k));
      computing.push_back(serial(loop, std::move(body), span));
    }
    loading.push_back(serial(loop, asked(fed, var, k), span));
  }

  // Tiles in a ring, with the barriers that both sides wait at.
  struct Fed {
    Ring ring;
    Buffer empty, turns;
    std::vector<SharedLoads> shared;
  };

  std::vector<Fed> fed_;  // tiles that a block needs once

  bool is_fed(const Stmt& stmt) const {
    const auto* copy = ir::as<ir::Copy>(stmt);
    return copy && !ir::reaches_peers(stmt) && loops_.may_be_fed(stmt) && not_by_engine(*copy).empty();
  }

  // Whether no product runs on behind it that it has started.
  static bool has_waited(const Stmt& stmt, bool waited) {
    ir::walk(
        stmt,
        [&](const Stmt& part) {
          const auto* gemm = ir::as<ir::Gemm>(part);
          const auto* async = ir::as<ir::Async>(part);
          if (gemm && gemm->asynchronous) waited = false;
          if (async && async->op == ir::AsyncOp::wait_gemms) waited = async->count == 0;
        },
        [](const Expr&) {});
    return waited;
  }

  // The tile is given back when all that used it is done.
  Stmts with_fed(const Fed& tile, const Stmts& computing) const {
    const std::unordered_set<const ir::BufferData*> name{tile.ring.slots.begin()->first};
    const Expr slot = ir::int_imm(0);
    size_t last = 0;
    for (size_t k = 0; k < computing.size(); ++k)
      if (ir::touches_any(computing[k], name)) last = k;
    Stmts out;
    bool held = true, waited = true;
    for (size_t k = 0; k < computing.size(); ++k) {
      out.push_back(tile.ring.in_slot(slot, computing[k]));
      waited = has_waited(computing[k], waited);
      if (!held || k < last || !(waited || k + 1 == computing.size())) continue;
      out.push_back(give_back(tile, slot));
      held = false;
    }
    return out;
  }

  Fed feed(Stmts copies, int64_t stages) {
    const Span span = copies[0]->span;
    Ring ring(std::move(copies), stages);
    for (const auto& [tile, slots] : ring.slots) {
      std::erase_if(result_.kernel.allocations, [&, tile = tile](const Buffer& one) { return one.get() == tile; });
      result_.kernel.allocations.push_back(slots);
      result_.rings.push_back(slots);
    }
    decide(ring);
    ring.full = allocated(slot_barriers("full", ring.stages, 1, span));
    ring.phases = allocated(slot_phases("full_phases", span));
    full_phases_.push_back({ring.phases, 0});
    const Buffer empty = allocated(slot_barriers("empty", ring.stages, threads_ / layout::kWarpSize, span));
    const Buffer turns = allocated(slot_phases("empty_phases", span));
    empty_phases_.push_back({turns, (int64_t{1} << ring.stages) - 1});
    std::vector<SharedLoads> shared = shared_loads(ring, span);
    return {std::move(ring), empty, turns, std::move(shared)};
  }

  static Stmt serial(const ir::For& loop, Stmts body, Span span) {
    const Stmt inner = block(std::move(body), loop.body->span);
    return ir::make_stmt(ir::For{ir::LoopKind::serial, loop.vars, loop.extents, 0, inner}, span);
  }

  Stmt give_back(const Fed& fed, const Expr& number) const {
    const Span span = number->span;
    const Expr slot = fed.ring.slot_of(number);
    Stmts told{ir::make_stmt(
        ir::Barrier{ir::BarrierOp::arrive, element(fed.empty, {slot}, span), nullptr, threads_ / layout::kWarpSize},
        span)};
    tell_first(fed.shared, slot, span, told);
    return block(std::move(told), span);
  }

  // What the loading side does for iteration `k`.
  Stmts asked(const Fed& fed, const Var& var, const Expr& k) const {
    Stmts out;
    wait_in_turn(fed.empty, fed.turns, fed.ring.slot_of(k), k->span, out);
    wait_for_others(fed.shared, fed.ring.slot_of(k), k->span, out);
    for (const Stmt& stmt : fed.ring.copies_of(var, k)) out.push_back(stmt);
    return out;
  }

  void decide_chain(const Stmts& statements, const std::string& obstacle) {
    for (const Stmt& stmt : statements) {
      if (!ir::contains<ir::Gemm>(stmt)) continue;
      const auto* gemm = ir::as<ir::Gemm>(stmt);
      Decision decision{stmt->span, gemm ? "order of gemm into " + gemm->c.buffer->name : "order of products",
                        "beside the iteration's second product"};
      if (!obstacle.empty())
        decision = {decision.span, decision.what, "within its iteration", {"not ahead: " + obstacle}};
      result_.decisions.push_back(std::move(decision));
      return;
    }
  }

  // The first product of k, and the second one of k - 1, are started together (product_chain.h). Each product's tiles
  // are a ring of their own, which is given back as that product is done; others belong to the iteration.
  void split_chain(const ir::For& loop, const Stmts& ahead, const ProductChain& chain, Stmts& computing,
                   Stmts& loading) {
    decide_chain({chain.first}, "");
    Stmts copies[3];
    for (const Stmt& copy : ahead) {
      const std::unordered_set<const ir::BufferData*> tile{ir::as<ir::Copy>(copy)->destination.buffer.get()};
      const auto uses = [&](const Stmts& part) {
        return std::any_of(part.begin(), part.end(), [&](const Stmt& stmt) { return ir::touches_any(stmt, tile); });
      };
      const bool by_work = uses(chain.beside) || uses(chain.after);
      copies[by_work ? 1 : uses({chain.second}) ? 2 : 0].push_back(copy);
    }
    std::optional<Fed> fed[3];
    const Var& var = loop.vars[0];
    const Expr k = ir::var_ref(var, loop.body->span);
    Stmts asking;
    for (size_t part = 0; part < 3; ++part) {
      if (copies[part].empty()) continue;
      fed[part] = feed(std::move(copies[part]), loop.num_stages);
      for (const Stmt& stmt : asked(*fed[part], var, k)) asking.push_back(stmt);
    }
    loading.push_back(serial(loop, std::move(asking), loop.body->span));
    const auto tiles = [&](const std::optional<Fed>& part) {
      return part ? ChainTiles{&part->ring, [&](const Expr& number) { return give_back(*part, number); }}
                  : ChainTiles{};
    };
    for (const Stmt& stmt : chain_loop(loop, chain, {tiles(fed[0]), tiles(fed[1]), tiles(fed[2])}))
      computing.push_back(stmt);
  }

  // Whether the loading side can compute all that it names: nothing that the kernel writes.
  bool knows_all(const Stmts& loading) const {
    const ir::BufferSet written = ir::touched_buffers(result_.kernel.body).writes;
    bool known = true;
    for (const Stmt& stmt : loading)
      ir::walk(
          stmt, [](const Stmt&) {},
          [&](const Expr& part) {
            const auto* load = ir::as<ir::Load>(part);
            if (load == nullptr) return;
            const bool own = std::any_of(empty_phases_.begin(), empty_phases_.end(),
                                         [&](const Phases& one) { return one.bits == load->buffer; });
            known &= own || (load->buffer->scope == ir::Scope::global && !written.contains(load->buffer.get()));
          });
    return known;
  }

  // One side's body, for one block of the program's grid after the other.
  Stmts role(const std::string& registers, const std::vector<Phases>& phases, Stmts body) {
    const ir::Kernel& kernel = result_.kernel;
    const Span span = kernel.body->span;
    const auto number = [](int64_t value) { return ir::int_imm(value); };
    const auto op = [&](BinaryOp which, const Expr& a, const Expr& b) { return ir::binary(which, a, b, span); };
    Stmts out{call(registers, {}, span)};
    for (const Phases& one : phases)
      out.push_back(ir::make_stmt(ir::Store{one.bits, {number(0)}, number(one.first)}, span));
    total_ = number(1);
    for (const Expr& extent : kernel.grid) total_ = times_of(total_, ir::cast(extent, ir::kInt32));
    // Tiles are those of one block, or of all blocks of a cluster.
    const Var tile = ir::make_var("tile", ir::kInt32);
    const auto clusters = [&](const Expr& count) {
      return in_cluster_ == 1 ? count : op(BinaryOp::floor_div, count, number(in_cluster_));
    };
    const Expr at = clusters(ir::var_ref(block_)), tiles = clusters(total_), last = op(BinaryOp::sub, tiles, number(1));
    if (!result_.persistent) {
      // The machine hands blocks out as others end. Where later ones have more to do they come first.
      out.push_back(ir::make_stmt(ir::Let{tile, op(BinaryOp::sub, last, at)}, span));
      name_tile(ir::var_ref(tile), out);
      out.insert(out.end(), body.begin(), body.end());
      return out;
    }
    const Var given = ir::make_var("blocks_given", ir::kInt32), blocks = ir::make_var("blocks", ir::kInt32),
              turn = ir::make_var("turn", ir::kInt32);
    out.push_back(ir::make_stmt(ir::ExternCall{"grid_blocks", {}, given}, span));
    out.push_back(ir::make_stmt(ir::Let{blocks, op(BinaryOp::max, clusters(ir::var_ref(given)), number(1))}, span));
    const Expr step = ir::var_ref(blocks);
    // Who had the most to do in one round has the least in the next one.
    const auto place = [&](const Expr& round) {
      const Expr is_odd = op(BinaryOp::eq, op(BinaryOp::floor_mod, round, number(2)), number(1));
      const Expr back = op(BinaryOp::sub, op(BinaryOp::sub, step, number(1)), at);
      return even_ ? at : ir::select(is_odd, back, at, span);
    };
    const Expr whole = op(BinaryOp::floor_div, tiles, step);
    const Expr one_more = op(BinaryOp::lt, place(whole), op(BinaryOp::floor_mod, tiles, step));
    const Expr rounds =
        even_ ? op(BinaryOp::floor_div,
                   op(BinaryOp::add, op(BinaryOp::sub, tiles, at), op(BinaryOp::sub, step, number(1))), step)
              : op(BinaryOp::add, whole, ir::cast(one_more, ir::kInt32));
    const Expr taken = op(BinaryOp::add, place(ir::var_ref(turn)), op(BinaryOp::mul, ir::var_ref(turn), step));
    Stmts inside{ir::make_stmt(ir::Let{tile, even_ ? taken : op(BinaryOp::sub, last, taken)}, span)};
    name_tile(ir::var_ref(tile), inside);
    inside.insert(inside.end(), body.begin(), body.end());
    out.push_back(
        ir::make_stmt(ir::For{ir::LoopKind::serial, {turn}, {rounds}, 0, block(std::move(inside), span)}, span));
    return out;
  }

  static Expr times_of(const Expr& a, const Expr& b) {
    return ir::constant_int(a) == 1 ? b : ir::binary(BinaryOp::mul, a, b, b->span);
  }

  // The program's block variables.
  void name_tile(const Expr& tile, Stmts& out) const {
    const ir::Kernel& kernel = result_.kernel;
    const bool by_work = !even_ && !axes_of_work_.empty(), by_products = products_alone_ && kernel.grid.size() == 2;
    const BlockOrder order = by_work ? order_by_work(axes_of_work_) : by_products ? order_of_products() : BlockOrder{};
    const Stmts names = in_cluster_ == 1 ? name_blocks(kernel, order, tile)
                                         : name_blocks_of_cluster(kernel, order, tile, rank(kernel.body->span));
    out.insert(out.end(), names.begin(), names.end());
  }
};

}  // namespace

std::optional<SpecializedKernel> specialize_warps(const ir::Kernel& kernel, Architecture architecture,
                                                  bool feeds_early) {
  if (architecture != Architecture::sm_90a) return std::nullopt;
  return Specializer(kernel, architecture, feeds_early).run();
}

}  // namespace tilepilot::targets::cuda
