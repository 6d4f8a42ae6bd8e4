#include "compiler/targets/cuda/conversions.h"

#include <algorithm>

#include "compiler/layout/access.h"
#include "compiler/targets/cuda/replicas.h"

namespace tilepilot::targets::cuda {

using layout::Fragment;
using layout::WarpMoves;

namespace {

// What the two barriers of a way through shared memory cost, in instructions of a thread: all wait for the slowest.
constexpr int64_t kBarriers = 32;
// Words of less than 32 bits are taken out of registers and put back. On an H200 64 shuffles of 16 bits took longer
// than a way through shared memory, by 50 ns in a product of int8 and by 960 ns in one of float8.
constexpr int64_t kNarrowWord = 3;

int64_t word_bits(ir::DType type) { return std::max<int64_t>(32, type.bits); }

// Stores or loads of a thread that move its registers to or from a tile in shared memory.
int64_t accesses(const Fragment& fragment, int64_t bits) {
  const auto tile = layout::SharedLayout::linear(fragment.shape(), bits);
  return fragment.register_count() / layout::vector_length(fragment, tile);
}

// A shuffle moves 32 bits; where lanes ask for several words each chooses among what comes.
int64_t instructions(const WarpMoves& moves, int64_t bits) {
  const int64_t each = bits < 32 ? kNarrowWord : bits / 32;
  int64_t choices = 0;
  for (const layout::WordMove& move : moves.words) choices += static_cast<int64_t>(move.words.size()) - 1;
  return moves.shuffles() * each + choices;
}

}  // namespace

bool is_conversion(const ir::Stmt& stmt) {
  const auto* copy = ir::as<ir::Copy>(stmt);
  return copy && copy->source.buffer->scope == ir::Scope::fragment &&
         copy->destination.buffer->scope == ir::Scope::fragment;
}

std::optional<WarpMoves> conversion_by_shuffles(ir::DType type, const Fragment& from, const Fragment& to) {
  if (type.bits < 8 || from.thread_count() != to.thread_count() || from.thread_count() % layout::kWarpSize != 0)
    return std::nullopt;
  auto moves = layout::warp_moves(from, to, word_bits(type) / type.bits);
  if (!moves) return std::nullopt;
  const int64_t through_memory = accesses(from, type.bits) + accesses(to, type.bits) + kBarriers;
  return instructions(*moves, type.bits * moves->unit) <= through_memory ? moves : std::nullopt;
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

}  // namespace tilepilot::targets::cuda
