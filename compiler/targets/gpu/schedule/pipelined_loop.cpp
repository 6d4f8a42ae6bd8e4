#include "compiler/targets/gpu/schedule/pipelined_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
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
bool read_before(const std::vector<Stmt>& body, const Stmt& copy) {
  const ir::BufferData* tile = ir::as<ir::Copy>(copy)->destination.buffer.get();
  for (const Stmt& stmt : body) {
    if (stmt == copy) return false;
    if (ir::count_accesses(stmt, tile) > 0) return true;
  }
  return false;
}

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
      whole_(kernel.body) {}

// Copies that may run ahead: tensors that the loop does not write, whole tiles that only this copy writes and only
// this loop names, start indices known before the iteration. Why another one may not; "" if it may.
std::string PipelinedLoops::not_ahead(const ir::Copy& copy, const Stmt& body) const {
  const Buffer &from = copy.source.buffer, &to = copy.destination.buffer;
  if (copy.mode != ir::CopyMode::complete) return "the program waits for it itself";
  if (copy.multicast != 0 && !shares_) return "it is for several blocks of the cluster";
  if (from->scope != ir::Scope::global || to->scope != ir::Scope::shared)
    return "it does not go from a tensor to shared memory";
  if (from->type != to->type || from->type.is_nibble()) return "its elements change on the way";
  if (!covers(copy.destination)) return fmt::format("it fills a part of `{}` alone", to->name);
  if (sharing_.contains(to.get())) return fmt::format("`{}` is seen as another type or shape", to->name);
  if (from->base || from->address) return fmt::format("`{}` is named by its address", from->name);
  for (const Expr& start : copy.source.start)
    if (ir::has_loads(start)) return "where it starts is read from memory";
  if (ir::count_writes(body, from.get()) > 0) return fmt::format("the loop writes `{}`", from->name);
  if (ir::count_accesses(whole_, to.get()) != ir::count_accesses(body, to.get()))
    return fmt::format("`{}` is used outside the loop", to->name);
  if (ir::count_accesses(body, to.get()) < 2) return fmt::format("the loop does not use `{}`", to->name);
  if (ir::count_writes(body, to.get()) != 1) return fmt::format("the loop writes `{}` elsewhere, too", to->name);
  return "";
}

PipelinedLoops::Parts PipelinedLoops::parts(const ir::For& loop) const {
  const std::vector<Stmt> body = ir::statements(loop.body);
  Parts result;
  bool leading = loop.num_stages > 1;  // values that the iteration computes first are not known ahead
  for (const Stmt& stmt : body) {
    const auto* copy = ir::as<ir::Copy>(stmt);
    if (ir::as<ir::Let>(stmt)) leading = false;
    if (copy == nullptr) {
      result.rest.push_back(stmt);
      continue;
    }
    std::string why = not_ahead(*copy, loop.body);
    if (why.empty() && read_before(body, stmt))
      why = fmt::format("`{}` is read before it", copy->destination.buffer->name);
    if (why.empty() && !leading)
      why = loop.num_stages > 1 ? "the iteration computes values before it" : "the loop has one stage";
    (why.empty() ? result.ahead : result.rest).push_back(stmt);
    if (!why.empty())
      result.decisions.push_back({stmt->span,
                                  name_of_copy(copy->source.buffer, copy->destination.buffer),
                                  "within its iteration",
                                  {"not ahead: " + why}});
  }
  return result;
}

bool PipelinedLoops::may_be_preloaded(const Stmt& copy) const {
  return not_ahead(*ir::as<ir::Copy>(copy), whole_).empty() && !read_before(ir::statements(whole_), copy);
}

Stmt PipelinedLoops::async_gemm(const std::vector<Stmt>& ahead, const Stmt& rest) const {
  // Beside loads element by element a wgmma would have to wait for registers.
  const bool lean = std::all_of(ahead.begin(), ahead.end(), [](const Stmt& stmt) {
    return has_known_rows(*ir::as<ir::Copy>(stmt)->source.buffer);
  });
  if (!lean) return nullptr;
  const std::vector<Stmt> all = ir::statements(rest);
  const auto* gemm = all.size() == 1 ? ir::as<ir::Gemm>(all[0]) : nullptr;
  if (gemm == nullptr || gemm->clear_accumulator) return nullptr;
  if (!may_be_async(all[0]) || gemm->a.buffer->scope != ir::Scope::shared) return nullptr;
  ir::Gemm running = *gemm;
  running.asynchronous = true;
  return ir::make_stmt(std::move(running), all[0]->span);
}

bool PipelinedLoops::may_be_async(const Stmt& stmt) const {
  const auto* gemm = ir::as<ir::Gemm>(stmt);
  if (gemm == nullptr || gemm->c.buffer->scope != ir::Scope::fragment) return false;
  const GemmPlan plan = plan_gemm(*gemm, threads_, machine_, sharing_);
  return plan.is_wgmma() && !plan.splits;
}

bool PipelinedLoops::uses_wgmma(const Stmt& body) const {
  return ir::contains(body, [&](const Stmt& part) {
    const auto* gemm = ir::as<ir::Gemm>(part);
    return gemm != nullptr && plan_gemm(*gemm, threads_, machine_, sharing_).is_wgmma();
  });
}

Ring::Ring(std::vector<Stmt> ahead, int64_t num_stages) : copies(std::move(ahead)), stages(num_stages) {
  for (const Stmt& stmt : copies) {
    const Buffer& tile = ir::as<ir::Copy>(stmt)->destination.buffer;
    ir::BufferData ring = *tile;
    ring.shape.insert(ring.shape.begin(), ir::int_imm(stages));
    slots.emplace(tile.get(), std::make_shared<ir::BufferData>(std::move(ring)));
  }
}

std::vector<Decision> Ring::decisions(const std::string& by, const std::string& obstacle) const {
  std::vector<Decision> all;
  for (const Stmt& stmt : copies) {
    const auto& copy = *ir::as<ir::Copy>(stmt);
    const std::string how_far =
        stages > 1 ? fmt::format(", {} iteration{} ahead", stages - 1, stages > 2 ? "s" : "") : "";
    all.push_back({stmt->span, name_of_copy(copy.source.buffer, copy.destination.buffer), by + how_far});
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
