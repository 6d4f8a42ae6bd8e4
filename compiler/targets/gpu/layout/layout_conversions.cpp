#include "compiler/targets/gpu/layout/layout_conversions.h"

#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/layout/layout_cost.h"

namespace tilepilot::targets::gpu {

using layout::Fragment;
using layout::WarpMoves;

namespace {

int64_t word_bits(ir::DType type) { return std::max<int64_t>(32, type.bits); }

}  // namespace

bool is_layout_conversion(const ir::Stmt& stmt) {
  const auto* copy = ir::as<ir::Copy>(stmt);
  return copy && copy->source.buffer->scope == ir::Scope::fragment &&
         copy->destination.buffer->scope == ir::Scope::fragment;
}

std::optional<WarpMoves> conversion_by_shuffles(ir::DType type, const Fragment& from, const Fragment& to) {
  if (type.bits < 8 || from.thread_count() != to.thread_count() || from.thread_count() % layout::kWarpSize != 0)
    return std::nullopt;
  auto moves = layout::warp_moves(from, to, word_bits(type) / type.bits);
  if (!moves) return std::nullopt;
  const int64_t by_shuffles = shuffle_cost(*moves, type.bits, from.thread_count()).total();
  return by_shuffles <= exchange_cost(from, to, type.bits).total() ? moves : std::nullopt;
}

int64_t shuffles_between(const ir::Stmt& stmt, const ir::Buffer& buffer, const Fragment& held, const Fragment& wanted) {
  int64_t count = 0;
  const auto add = [&](const Fragment& from, const Fragment& to) {
    const auto moves = conversion_by_shuffles(buffer->type, from, to);
    if (moves) count += moves->shuffles();
    return moves.has_value();
  };
  if (!overwrites(stmt, buffer) && !add(held, wanted)) return -1;
  if (writes_element(stmt, buffer) && !add(wanted, held)) return -1;
  return count;
}

}  // namespace tilepilot::targets::gpu
