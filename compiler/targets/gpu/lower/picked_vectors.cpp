#include "compiler/targets/gpu/lower/picked_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/bounds.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

constexpr int64_t kMostVectors = 8;      // each takes a comparison and a choice a word
constexpr int64_t kMostWrittenOut = 32;  // iterations of a loop that compilers write out
constexpr int64_t kLongestVector = 16;   // bytes

// Whether the places that a kernel names in an array are known once short loops are written out, but for those that
// neighbours read.
class Places {
 public:
  explicit Places(const Buffer& array) : array_(array) {}

  bool are_known(const Stmt& body) {
    visit(body, false);
    return known_;
  }
  bool is_known(const Expr& index) const {
    bool known = true;
    ir::walk(index, [&](const Expr& part) {
      const auto* ref = ir::as<ir::VarRef>(part);
      known &= !ir::as<ir::Load>(part) && (!ref || written_out_.contains(ref->var.get()));
    });
    return known;
  }

 private:
  const Buffer& array_;
  std::unordered_set<const ir::VarData*> written_out_;
  bool known_ = true;

  void visit(const Stmt& stmt, bool side_by_side) {
    if (const auto* block = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : block->body) visit(part, side_by_side);
    } else if (const auto* loop = ir::as<ir::For>(stmt)) {
      for (size_t k = 0; k < loop->vars.size(); ++k)
        if (ir::constant_int(loop->extents[k]).value_or(INT64_MAX) <= kMostWrittenOut)
          written_out_.insert(loop->vars[k].get());
      visit(loop->body, loop->kind == ir::LoopKind::vectorized);
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      check_reads(choice->condition, false);
      visit(choice->then, side_by_side);
      if (choice->otherwise) visit(choice->otherwise, side_by_side);
    } else if (const auto* let = ir::as<ir::Let>(stmt)) {
      if (is_known(let->value)) written_out_.insert(let->var.get());
      check_reads(let->value, side_by_side);
    } else if (const auto* store = ir::as<ir::Store>(stmt)) {
      if (ir::memory_of(store->buffer) == ir::memory_of(array_)) check(store->buffer, store->indices);
      for (const Expr& index : store->indices) check_reads(index, false);
      check_reads(store->value, side_by_side);
    } else {
      ir::each_effect(stmt,
                      [&](const Buffer& buffer, bool) { known_ &= ir::memory_of(buffer) != ir::memory_of(array_); });
    }
  }

  void check(const Buffer& buffer, const std::vector<Expr>& indices) {
    known_ &=
        buffer == array_ && std::all_of(indices.begin(), indices.end(), [&](const Expr& i) { return is_known(i); });
  }
  void check_reads(const Expr& value, bool side_by_side) {
    ir::walk(value, [&](const Expr& part) {
      const auto* load = ir::as<ir::Load>(part);
      if (load && ir::memory_of(load->buffer) == ir::memory_of(array_) && !side_by_side)
        check(load->buffer, load->indices);
    });
  }
};

Expr zero_for(const Expr& expr, const ir::Var& var) {
  return ir::substitute(expr, [&](const ir::Var& other) { return other == var ? ir::int_imm(0, var->type) : nullptr; });
}

}  // namespace

Buffer picked_vector(Lowering& lowering, const ir::Load& load, const ir::Var& lane, int64_t lanes, Span span,
                     Lowering::Stmts& out) {
  const Buffer& array = load.buffer;
  const int64_t bytes = lanes * array->type.bytes();
  if (array->scope != ir::Scope::local || array->base || array->type.bits < 8) return nullptr;
  if (bytes > kLongestVector || (bytes & (bytes - 1)) != 0) return nullptr;
  Expr place = ir::int_imm(0);
  int64_t size = 1;
  for (size_t axis = 0; axis < load.indices.size(); ++axis) {
    const auto extent = ir::constant_int(array->shape[axis]);
    if (!extent) return nullptr;
    place = plus(times(place, *extent), ir::cast(load.indices[axis], ir::kInt32));
    size *= *extent;
  }
  const auto form = lowering.facts.affine(place);
  const Expr first = zero_for(place, lane);
  if (!form || form->coefficient(lane) != 1 || known_factor(first) % lanes != 0) return nullptr;
  if (size % lanes != 0 || size / lanes < 2 || size / lanes > kMostVectors) return nullptr;
  Places places(array);
  if (!places.are_known(lowering.kernel.body) || places.is_known(first)) return nullptr;
  const std::vector<Expr> start(load.indices.size(), ir::int_imm(0));
  Buffer held = lowering.local(array->name + "_v", array->type, lanes);
  out.push_back(call(fmt::format("pick_vector<{}, {}>", bytes, size / lanes),
                     {element(held, {ir::int_imm(0)}, span), element(array, start, span), quotient(first, lanes)},
                     span));
  return held;
}

}  // namespace tilepilot::targets::gpu
