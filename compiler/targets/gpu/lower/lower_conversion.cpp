// Conversions: what lanes of each warp hand over to each other, word by word.
#include <algorithm>
#include <utility>

#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using layout::LaneFunction;
using layout::WarpMoves;
using Stmts = Lowering::Stmts;

namespace {

// Registers as words of `unit` elements. Narrow floats are words, too: as numbers they would become wider ones.
Buffer as_words(Lowering& lowering, const Buffer& registers, int64_t unit) {
  const int64_t bits = registers->type.bits * unit;
  if (unit == 1 && (bits >= 32 || registers->type.is_int())) return registers;
  const int64_t count = *ir::constant_int(registers->shape[0]) / unit;
  const ir::DType type = bits == 8 ? ir::kUInt8 : bits == 16 ? ir::kUInt16 : ir::kUInt32;
  lowering.allocations.push_back(std::make_shared<ir::BufferData>(ir::BufferData{
      registers->name + "_words", type, ir::Scope::local, {ir::int_imm(count)}, {}, registers->span, registers}));
  return lowering.allocations.back();
}

class ConversionLowering {
 public:
  ConversionLowering(Lowering& lowering, const Stmt& stmt, Stmts& out)
      : lowering_(lowering), moves_(lowering.inference.conversions.at(stmt.get())), span_(stmt->span), out_(out) {}

  void run(const ir::Copy& copy) {
    const Buffer from = as_words(lowering_, lowering_.places.at(copy.source.buffer.get()), moves_.unit);
    const Buffer to = as_words(lowering_, lowering_.places.at(copy.destination.buffer.get()), moves_.unit);
    for (size_t word = 0; word < moves_.words.size(); ++word) {
      const Expr value = moved(from, moves_.words[word]);
      out_.push_back(ir::make_stmt(ir::Store{to, {ir::int_imm(static_cast<int64_t>(word))}, value}, span_));
    }
  }

 private:
  Lowering& lowering_;
  const WarpMoves& moves_;
  const Span span_;
  Stmts& out_;
  std::vector<std::pair<LaneFunction, Expr>> known_;

  Expr moved(const Buffer& from, const layout::WordMove& move) {
    const bool stays = move.lane.is_identity();
    const Expr lane = stays ? nullptr : value_of(move.lane, "lane", layout::kWarpSize);
    Expr result;
    for (const int64_t word : move.words) {
      Expr value = ir::load(from, {ir::int_imm(word)}, span_);
      if (!stays) {
        const ir::Var other = ir::make_var("other", from->type);
        out_.push_back(ir::make_stmt(ir::Shuffle{ir::ShuffleOp::from, value, lane, layout::kWarpSize, other}, span_));
        value = ir::var_ref(other);
      }
      if (!result) {
        result = value;
        continue;
      }
      const int64_t last = *std::max_element(move.words.begin(), move.words.end());
      const Expr which = value_of(move.word, "word", last + 1);
      result = ir::select(ir::binary(ir::BinaryOp::eq, which, ir::int_imm(word), span_), value, result, span_);
    }
    return result;
  }

  Expr value_of(const LaneFunction& function, const char* name, int64_t extent) {
    const auto found =
        std::find_if(known_.begin(), known_.end(), [&](const auto& known) { return known.first == function; });
    if (found != known_.end()) return found->second;
    known_.emplace_back(function,
                        lowering_.let(name, lane_value(function, lowering_.thread_number()), extent, span_, out_));
    return known_.back().second;
  }
};

}  // namespace

void lower_conversion(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  ConversionLowering(lowering, stmt, out).run(*ir::as<ir::Copy>(stmt));
}

}  // namespace tilepilot::targets::gpu
