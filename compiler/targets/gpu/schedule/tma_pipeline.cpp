#include "compiler/targets/gpu/schedule/tma_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/ir/effects.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using ir::Var;
using Stmts = TmaPipeline::Stmts;

namespace {

int64_t blocks_of(const Stmt& copy) { return ir::as<ir::Copy>(copy)->multicast; }

// Whether no wgmma that it has started is outstanding after it.
bool has_waited(const Stmt& stmt, bool waited) {
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

}  // namespace

Expr TileConsumers::rank(Span span) const {
  return ir::binary(BinaryOp::floor_mod, ir::var_ref(block, span), ir::int_imm(in_cluster), span);
}

int64_t TmaPipeline::Shared::first() const { return std::countr_zero(static_cast<uint64_t>(mask)); }

TmaPipeline::TmaPipeline(Stmts copies, int64_t stages, TileConsumers consumers)
    : consumers_(std::move(consumers)), ring_(std::move(copies), stages) {
  const Span span = ring_.copies[0]->span;
  for (const auto& [tile, slots] : ring_.slots) allocated(slots);
  ring_.full = allocated(slot_barriers("full", stages, 1, span));
  ring_.phases = allocated(slot_phases("full_phases", span));
  empty_ = allocated(slot_barriers("empty", stages, consumers_.warps, span));
  empty_phases_ = allocated(slot_phases("empty_phases", span));
  for (const Stmt& copy : ring_.copies) add_shared(blocks_of(copy), span);
}

Buffer TmaPipeline::allocated(Buffer buffer) {
  allocations_.push_back(buffer);
  return buffer;
}

void TmaPipeline::add_shared(int64_t mask, Span span) {
  const int64_t others = std::popcount(static_cast<uint64_t>(mask)) - 1;
  const bool known = std::any_of(shared_.begin(), shared_.end(), [&](const Shared& one) { return one.mask == mask; });
  if (others < 1 || known) return;
  const Buffer barriers = allocated(slot_barriers("others", ring_.stages, others * consumers_.warps, span));
  shared_.push_back({mask, barriers, allocated(slot_phases("others_phases", span))});
}

std::vector<Phases> TmaPipeline::empty_phases() const {
  std::vector<Phases> all{{empty_phases_, all_slots()}};
  for (const Shared& one : shared_) all.push_back({one.phases, all_slots()});
  return all;
}

std::vector<Decision> TmaPipeline::decisions() const {
  std::vector<Decision> all = ring_.decisions("by TMA, issued by a producer warpgroup", "");
  for (size_t k = 0; k < all.size(); ++k)
    if (const int64_t mask = blocks_of(ring_.copies[k]); mask != 0)
      all[k].chosen += fmt::format(", once for the blocks of mask {}", mask);
  return all;
}

Stmt TmaPipeline::release(const Expr& number) const {
  const Span span = number->span;
  const Expr slot = ring_.slot_of(number);
  Stmts told{ir::make_stmt(ir::Barrier{ir::BarrierOp::arrive, element(empty_, {slot}, span), nullptr, consumers_.warps},
                           span)};
  tell_first(slot, span, told);
  return block(std::move(told), span);
}

// To the blocks that issue loads of tiles of this one.
void TmaPipeline::tell_first(const Expr& slot, Span span, Stmts& out) const {
  for (const Shared& one : shared_) {
    const Expr others = ir::int_imm(one.mask & (one.mask - 1));
    const Expr bit = ir::binary(BinaryOp::bit_and, ir::binary(BinaryOp::shr, others, consumers_.rank(span), span),
                                ir::int_imm(1), span);
    const Stmt told = ir::make_stmt(ir::Barrier{ir::BarrierOp::arrive, element(one.others, {slot}, span), nullptr,
                                                consumers_.warps, ir::int_imm(one.first()), true},
                                    span);
    out.push_back(ir::make_stmt(ir::If{ir::binary(BinaryOp::eq, bit, ir::int_imm(1), span), told, nullptr}, span));
  }
}

void TmaPipeline::wait_for_others(const Expr& slot, Span span, Stmts& out) const {
  for (const Shared& one : shared_) {
    Stmts waiting;
    wait_for_phase(one.others, one.phases, slot, span, waiting);
    const Expr is_issuer = ir::binary(BinaryOp::eq, consumers_.rank(span), ir::int_imm(one.first()), span);
    out.push_back(ir::make_stmt(ir::If{is_issuer, block(std::move(waiting), span), nullptr}, span));
  }
}

Stmts TmaPipeline::issue(const Var& var, const Expr& k) const {
  Stmts out;
  wait_for_phase(empty_, empty_phases_, ring_.slot_of(k), k->span, out);
  wait_for_others(ring_.slot_of(k), k->span, out);
  for (const Stmt& stmt : ring_.copies_of(var, k)) out.push_back(stmt);
  return out;
}

Stmts TmaPipeline::with_tiles(const Stmts& consumer) const {
  const Expr slot = ir::int_imm(0);
  ir::BufferSet tiles;
  for (const auto& [tile, slots] : ring_.slots) tiles.insert(tile);
  size_t last = 0;
  for (size_t k = 0; k < consumer.size(); ++k)
    if (ir::accesses_any(consumer[k], tiles)) last = k;
  Stmts out;
  bool held = true, waited = true;
  for (size_t k = 0; k < consumer.size(); ++k) {
    out.push_back(ring_.in_slot(slot, consumer[k]));
    waited = has_waited(consumer[k], waited);
    if (!held || k < last || !(waited || k + 1 == consumer.size())) continue;
    out.push_back(release(slot));
    held = false;
  }
  return out;
}

}  // namespace tilepilot::targets::gpu
