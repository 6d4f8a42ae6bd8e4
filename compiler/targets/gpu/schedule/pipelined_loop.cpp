#include "compiler/targets/gpu/schedule/pipelined_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/dead_lets.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/let_values.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/machine/tma_rules.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;

namespace {

// Puts a ring in the place of a tile, at slot `slot`.
class InRing : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  InRing(const RingSlots& rings, Expr slot) : rings_(rings), slot_(std::move(slot)) {}

  Expr rewrite(const Expr& expr) override {
    const Expr inner = rewrite_children(expr);
    const auto* load = ir::as<ir::Load>(inner);
    const auto ring = load ? rings_.find(load->buffer.get()) : rings_.end();
    if (ring == rings_.end()) return inner;
    std::vector<Expr> indices{slot_};
    indices.insert(indices.end(), load->indices.begin(), load->indices.end());
    return ir::load(ring->second, std::move(indices), expr->span);
  }

 protected:
  ir::Region rewrite_region(const ir::Region& region) override {
    ir::Region result = Rewriter::rewrite_region(region);
    const auto ring = rings_.find(region.buffer.get());
    if (ring == rings_.end()) return result;
    result.buffer = ring->second;
    result.start.insert(result.start.begin(), slot_);
    result.extent.insert(result.extent.begin(), 1);
    return result;
  }

 private:
  const RingSlots& rings_;
  Expr slot_;
};

bool covers(const ir::Region& region) {
  return is_whole(region) && std::all_of(region.start.begin(), region.start.end(),
                                         [](const Expr& start) { return ir::constant_int(start) == 0; });
}

// Whether a statement before it names its tile: that would see the iteration before.
bool read_before(const std::vector<Stmt>& body, const Stmt& load) {
  const ir::BufferData* tile = tile_of_load(load).get();
  for (const Stmt& stmt : body) {
    if (stmt == load) return false;
    if (ir::count_accesses(stmt, tile) > 0) return true;
  }
  return false;
}

// A parallel loop that copies from a tensor to shared memory; else null.
const ir::For* as_gather(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  if (loop == nullptr || loop->kind != ir::LoopKind::parallel) return nullptr;
  const auto copy = element_copy(*loop);
  const bool loads = copy && copy->source->scope == ir::Scope::global && copy->destination->scope == ir::Scope::shared;
  return loads ? loop : nullptr;
}

// What an iteration computes first and others may compute for it: values of steady memory (`unsteady`) and of what is
// known before the iteration.
class ValuesAhead {
 public:
  ValuesAhead(const Stmt& body, const c::IntegerFacts& facts, std::function<bool(const Expr&)> is_steady)
      : unknown_(ir::bound_in(body)), is_steady_(std::move(is_steady)), values_(facts) {}

  void see(const ir::Let& let) {
    const Expr value = named(let.value);
    if (ir::mentions(value, unknown_) || !is_steady_(value)) return;
    values_.add(let);
  }
  Expr named(const Expr& expr) const { return values_.named(expr); }
  Stmt named(const Stmt& stmt) const { return values_.named(stmt); }
  // Whether it names what is known within the iteration alone.
  bool is_late(const Stmt& load) const {
    ir::Variables unknown = unknown_;
    for (const ir::VarData* own : ir::bound_in(load)) unknown.erase(own);
    return ir::mentions(load, unknown);
  }
  bool is_late(const Expr& expr) const { return ir::mentions(expr, unknown_); }

 private:
  const ir::Variables unknown_;  // names that the iteration binds: values stand in their place where they may
  std::function<bool(const Expr&)> is_steady_;
  LetValues values_;
};

}  // namespace

bool is_pipelined(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  return loop && loop->kind == ir::LoopKind::pipelined;
}

PipelinedLoops::PipelinedLoops(const ir::Kernel& kernel, const Machine& machine, bool shares)
    : machine_(machine),
      threads_(thread_count(kernel)),
      shares_(shares),
      sharing_(ir::sharing_buffers(kernel)),
      facts_(facts_of(kernel)),
      whole_(kernel.body) {}

Buffer tile_of_load(const Stmt& load) {
  const auto* copy = ir::as<ir::Copy>(load);
  return copy ? copy->destination.buffer : element_copy(*ir::as<ir::For>(load))->destination;
}

Buffer tensor_of_load(const Stmt& load) {
  const auto* copy = ir::as<ir::Copy>(load);
  return copy ? copy->source.buffer : element_copy(*ir::as<ir::For>(load))->source;
}

std::string tma_obstacle_of_load(const Stmt& load) {
  const auto* copy = ir::as<ir::Copy>(load);
  return copy ? tma_obstacle(*copy) : "elements are gathered one by one";
}

// Loads that may run ahead: of tensors that the loop does not write, into whole tiles that only this load writes and
// only this loop names, from places known before the iteration. Why another one may not; "" if it may.
std::string PipelinedLoops::not_ahead(const Stmt& load, const Stmt& body) const {
  const auto* copy = ir::as<ir::Copy>(load);
  std::string why = copy ? not_ahead(*copy) : not_ahead(*ir::as<ir::For>(load), body);
  if (!why.empty()) return why;
  const Buffer from = tensor_of_load(load), to = tile_of_load(load);
  if (sharing_.contains(to.get())) return fmt::format("`{}` is seen as another type or shape", to->name);
  if (from->address) return fmt::format("`{}` is named by its address", from->name);
  if (copy) why = unsteady(copy->source.start, body);
  if (!why.empty()) return why;
  if (ir::memory_effects_of(body).writes.contains(ir::memory_of(from)))
    return fmt::format("the loop writes `{}`", from->name);
  if (ir::count_accesses(whole_, to.get()) != ir::count_accesses(body, to.get()))
    return fmt::format("`{}` is used outside the loop", to->name);
  if (ir::count_accesses(body, to.get()) < 2) return fmt::format("the loop does not use `{}`", to->name);
  if (ir::count_writes(body, to.get()) != 1) return fmt::format("the loop writes `{}` elsewhere, too", to->name);
  return "";
}

std::string PipelinedLoops::not_ahead(const ir::Copy& copy) const {
  const Buffer &from = copy.source.buffer, &to = copy.destination.buffer;
  if (copy.mode != ir::CopyMode::complete) return "the program waits for it itself";
  if (copy.multicast != 0 && !shares_) return "it is for several blocks of the cluster";
  if (from->scope != ir::Scope::global || to->scope != ir::Scope::shared)
    return "it does not go from a tensor to shared memory";
  if (from->type != to->type || from->type.is_nibble()) return "its elements change on the way";
  return covers(copy.destination) ? "" : fmt::format("it fills a part of `{}` alone", to->name);
}

std::string PipelinedLoops::not_ahead(const ir::For& gather, const Stmt& body) const {
  const ElementCopy copy = *element_copy(gather);
  const Buffer& to = copy.destination;
  if (copy.source->type != to->type || to->type.is_nibble()) return "its elements change on the way";
  if (copy.condition && copy.from.size() < 2) return "elements of a row are left out one by one";
  for (size_t axis = 0; axis < copy.to.size(); ++axis) {
    const auto* ref = ir::as<ir::VarRef>(copy.to[axis]);
    if (copy.to.size() != gather.vars.size() || !ref || ref->var != gather.vars[axis] ||
        !ir::constant_int(gather.extents[axis]) ||
        ir::constant_int(gather.extents[axis]) != ir::constant_int(to->shape[axis]))
      return fmt::format("it does not fill `{}` in the order of its axes", to->name);
  }
  std::vector<Expr> where = copy.from;
  if (copy.condition) where.push_back(copy.condition);
  return unsteady(where, body);
}

// What is read from tensors that the kernel does not write, or from the block's own memory that the loop does not
// write, is the same some iterations earlier. "" if all is.
std::string PipelinedLoops::unsteady(const std::vector<Expr>& indices, const Stmt& body) const {
  std::string why;
  for (const Expr& index : indices)
    ir::each_effect(index, [&](const Buffer& buffer, bool) {
      const ir::BufferData* memory = ir::memory_of(buffer);
      const auto writes = [&](const Stmt& stmt) { return ir::memory_effects_of(stmt).writes.contains(memory); };
      if (memory->scope == ir::Scope::fragment)
        why = fmt::format("where it starts is in the fragment `{}`", buffer->name);
      else if (writes(memory->scope == ir::Scope::global ? whole_ : body))
        why = fmt::format("where it starts is read from `{}`, which is written meanwhile", buffer->name);
    });
  return why;
}

PipelinedLoops::Parts PipelinedLoops::parts(const ir::For& loop) const {
  std::vector<Stmt> body = ir::statements(loop.body);
  ValuesAhead values(loop.body, facts_, [&](const Expr& value) { return unsteady({value}, loop.body).empty(); });
  Parts result;
  if (const auto* choice = body.empty() ? nullptr : ir::as<ir::If>(body.back()); choice && !choice->otherwise) {
    const bool is_all =
        std::all_of(body.begin(), body.end() - 1, [](const Stmt& stmt) { return ir::as<ir::Let>(stmt); });
    for (size_t k = 0; is_all && k + 1 < body.size(); ++k) values.see(*ir::as<ir::Let>(body[k]));
    const Expr condition = values.named(choice->condition);
    if (is_all && !values.is_late(condition) && unsteady({condition}, loop.body).empty()) {
      result.condition = condition;
      body.pop_back();
      for (const Stmt& stmt : ir::statements(choice->then)) body.push_back(stmt);
    }
  }
  for (const Stmt& stmt : body) {
    if (const auto* let = ir::as<ir::Let>(stmt)) values.see(*let);
    if (!ir::as<ir::Copy>(stmt) && !as_gather(stmt)) {
      result.rest.push_back(stmt);
      continue;
    }
    const Stmt load = values.named(stmt);
    std::string why = not_ahead(load, loop.body);
    if (why.empty() && read_before(body, stmt)) why = fmt::format("`{}` is read before it", tile_of_load(load)->name);
    if (why.empty() && values.is_late(load)) why = "the iteration computes first where it starts";
    if (why.empty() && loop.num_stages < 2 && !(loop.num_stages == 1 && !result.condition && may_refill(load)))
      why = "the loop has one stage";
    if (why.empty()) {
      result.ahead.push_back(load);
      continue;
    }
    result.rest.push_back(stmt);
    const auto* copy = ir::as<ir::Copy>(stmt);
    result.decisions.push_back({stmt->span,
                                copy ? name_of_copy(copy->source.buffer, copy->destination.buffer)
                                     : name_of_copy(tensor_of_load(stmt), tile_of_load(stmt)),
                                "within its iteration",
                                {"not ahead: " + why}});
  }
  if (!result.ahead.empty()) {
    result.rest = without_dead_lets(result.rest);
  } else if (result.condition) {  // as it was
    result.condition = nullptr;
    result.rest = ir::statements(loop.body);
  }
  return result;
}

// Whether one tile is enough to run ahead: it is filled again once it has been read. That is not for producers, which
// would wait for each tile.
bool PipelinedLoops::may_refill(const Stmt& load) const {
  return machine_.has_tma && !shares_ && tma_obstacle_of_load(load).empty();
}

bool PipelinedLoops::may_be_preloaded(const Stmt& copy) const {
  return not_ahead(copy, whole_).empty() && !read_before(ir::statements(whole_), copy);
}

std::vector<Stmt> PipelinedLoops::async_gemms(const std::vector<Stmt>& ahead, const Stmt& rest) const {
  // Beside loads element by element a wgmma would have to wait for registers.
  const bool lean =
      std::all_of(ahead.begin(), ahead.end(), [](const Stmt& load) { return has_known_rows(*tensor_of_load(load)); });
  if (!lean) return {};
  std::vector<Stmt> all = ir::statements(rest);
  ir::BufferSet sums;
  for (Stmt& stmt : all) {
    const auto* gemm = ir::as<ir::Gemm>(stmt);
    if (gemm == nullptr || gemm->clear_accumulator || !sums.insert(gemm->c.buffer.get()).second) return {};
    if (!may_be_async(stmt) || gemm->a.buffer->scope != ir::Scope::shared) return {};
    stmt = asynchronous(stmt);
  }
  return all;
}

bool PipelinedLoops::may_be_async(const Stmt& stmt) const {
  const auto* gemm = ir::as<ir::Gemm>(stmt);
  if (gemm == nullptr || gemm->c.buffer->scope != ir::Scope::fragment) return false;
  const GemmPlan plan = plan_gemm(*gemm, threads_, machine_, sharing_);
  return plan.is_wgmma() && !plan.splits;
}

std::array<int64_t, 4> PipelinedLoops::sums_layout(const Stmt& gemm) const {
  const GemmPlan plan = plan_gemm(*ir::as<ir::Gemm>(gemm), threads_, machine_, sharing_);
  return {plan.atom->m, plan.atom->n, plan.warps_m, plan.warps_n};
}

bool PipelinedLoops::uses_wgmma(const Stmt& body) const {
  return ir::contains(body, [&](const Stmt& part) {
    const auto* gemm = ir::as<ir::Gemm>(part);
    return gemm != nullptr && plan_gemm(*gemm, threads_, machine_, sharing_).is_wgmma();
  });
}

Stmt asynchronous(const Stmt& gemm) {
  ir::Gemm running = *ir::as<ir::Gemm>(gemm);
  running.asynchronous = true;
  return ir::make_stmt(std::move(running), gemm->span);
}

int64_t registers_of_fragment(const ir::BufferData& fragment, int64_t threads) {
  int64_t bits = fragment.type.bits;
  for (const Expr& extent : fragment.shape) bits *= ir::constant_int(extent).value_or(1);
  return (bits + 32 * threads - 1) / (32 * threads);
}

int64_t registers_of_fragments(const ir::Kernel& kernel) {
  int64_t bits = 0;
  for (const Buffer& buffer : kernel.allocations) {
    if (buffer->scope != ir::Scope::fragment || buffer->base) continue;
    int64_t own = buffer->type.bits;
    for (const Expr& extent : buffer->shape) own *= ir::constant_int(extent).value_or(1);
    bits += own;
  }
  return bits / 32 / std::max<int64_t>(1, thread_count(kernel));
}

Ring::Ring(std::vector<Stmt> ahead, int64_t num_stages) : copies(std::move(ahead)), stages(num_stages) {
  for (const Stmt& stmt : copies) {
    const Buffer tile = tile_of_load(stmt);
    ir::BufferData ring = *tile;
    ring.shape.insert(ring.shape.begin(), ir::int_imm(stages));
    slots.emplace(tile.get(), std::make_shared<ir::BufferData>(std::move(ring)));
  }
}

void Ring::move_requests(ir::Kernel& kernel) const {
  for (ir::RequestedLayout& request : kernel.layouts)
    if (const auto found = slots.find(request.buffer.get()); found != slots.end()) request.buffer = found->second;
}

std::vector<Decision> Ring::decisions(const std::string& by, const std::string& obstacle) const {
  std::vector<Decision> all;
  for (const Stmt& stmt : copies) {
    const std::string how_far =
        stages > 1 ? fmt::format(", {} iteration{} ahead", stages - 1, stages > 2 ? "s" : "") : "";
    all.push_back({stmt->span, name_of_copy(tensor_of_load(stmt), tile_of_load(stmt)), by + how_far});
    if (!obstacle.empty()) all.back().obstacles.push_back(obstacle);
  }
  return all;
}

Expr Ring::slot_of(const Expr& k) const {
  const auto slot = ir::constant_int(k);
  return slot ? ir::int_imm(*slot % stages, k->type)
              : ir::binary(BinaryOp::floor_mod, k, ir::int_imm(stages, k->type), k->span);
}

Stmt Ring::in_slot(const Expr& k, const Stmt& stmt) const { return InRing(slots, slot_of(k)).rewrite(stmt); }

std::vector<Stmt> Ring::copies_of(const ir::Var& var, const Expr& k) const {
  std::vector<Stmt> out;
  std::optional<ir::Region> barrier;
  if (full) {
    barrier = element(full, {slot_of(k)}, k->span);
    int64_t bytes = 0;
    for (const Stmt& stmt : copies) bytes += bytes_of_copy(*ir::as<ir::Copy>(stmt));
    out.push_back(ir::make_stmt(ir::Barrier{ir::BarrierOp::arrive_expect, *barrier, ir::int_imm(bytes), 1}, k->span));
  }
  for (const Stmt& stmt : copies) {
    const Stmt at = ir::substitute(stmt, [&](const ir::Var& other) { return other == var ? k : nullptr; });
    if (!ir::as<ir::Copy>(stmt)) {
      out.push_back(again({in_slot(k, as_async(at))})[0]);
      continue;
    }
    ir::Copy copy = *ir::as<ir::Copy>(in_slot(k, at));
    copy.mode = full ? ir::CopyMode::bulk_load : ir::CopyMode::group;
    copy.barrier = barrier;
    out.push_back(ir::make_stmt(std::move(copy), stmt->span));
  }
  return out;
}

void Ring::wait_for(const Expr& k, Span span, std::vector<Stmt>& out) const {
  if (!full) {
    out.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_copies, stages - 2}, span));
    return;
  }
  if (phases) return wait_for_phase(full, phases, slot_of(k), span, out);
  const Expr slot = ir::cast(slot_of(k), ir::kInt32);
  const Expr phase = ir::binary(BinaryOp::floor_div, k, ir::int_imm(stages, k->type), span);
  out.push_back(
      ir::make_stmt(ir::Barrier{ir::BarrierOp::wait, element(full, {slot}, span), ir::cast(phase, ir::kInt32)}, span));
}

Buffer slot_barriers(const std::string& name, int64_t slots, int64_t arrivals, Span span) {
  ir::BufferData data{name, ir::kUInt64, ir::Scope::barrier, {ir::int_imm(slots)}, {}, span};
  data.arrivals.assign(static_cast<size_t>(slots), arrivals);
  return std::make_shared<ir::BufferData>(std::move(data));
}

Buffer slot_phases(const std::string& name, Span span) {
  return std::make_shared<ir::BufferData>(
      ir::BufferData{name, ir::kInt32, ir::Scope::local, {ir::int_imm(1)}, {}, span});
}

void wait_for_phase(const Buffer& barriers, const Buffer& phases, const Expr& number, Span span,
                    std::vector<Stmt>& out) {
  const Expr slot = ir::cast(number, ir::kInt32), zero = ir::int_imm(0), bits = ir::load(phases, {zero}, span);
  const Expr parity = ir::binary(BinaryOp::shr, bits, slot, span);
  out.push_back(ir::make_stmt(ir::Barrier{ir::BarrierOp::wait, element(barriers, {slot}, span), parity}, span));
  const Expr changed = ir::binary(BinaryOp::bit_xor, bits, ir::binary(BinaryOp::shl, ir::int_imm(1), slot, span), span);
  out.push_back(ir::make_stmt(ir::Store{phases, {zero}, changed}, span));
}

}  // namespace tilepilot::targets::gpu
