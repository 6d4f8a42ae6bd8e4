#include "compiler/targets/gpu/lower/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/targets/gpu/facts/let_values.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Scope;

Expr bounds_condition(const Lowering& lowering, const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr condition;
  if (buffer->scope != Scope::global && buffer->scope != Scope::shared) return condition;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const Expr &at = indices[axis], &extent = buffer->shape[axis];
    if (lowering.facts.in_bounds(at, extent)) continue;
    if (!lowering.facts.is_never_negative(at))
      condition = both(condition, ir::binary(BinaryOp::ge, at, ir::int_imm(0, at->type), at->span));
    const ir::DType type = ir::promote(at->type, extent->type);
    condition = both(condition, ir::binary(BinaryOp::lt, ir::cast(at, type), ir::cast(extent, type), at->span));
  }
  return condition;
}

MatrixStores matrix_stores(const Lowering& lowering, const ir::For& loop, const layout::Fragment& fragment) {
  MatrixStores result = find_matrix_stores(
      loop, fragment, [&](const Expr& index) { return lowering.facts.affine(ir::cast(index, ir::kInt32)); });
  for (const ir::Stmt& stmt : ir::statements(loop.body)) {
    const auto* store = ir::as<ir::Store>(stmt);
    if (store == nullptr || !result.stores.contains(stmt.get())) continue;
    const layout::SharedLayout& memory = lowering.inference.tiles.at(store->buffer.get());
    if (rows_are_aligned(memory)) continue;
    result.stores.erase(stmt.get());
    result.obstacle =
        fmt::format("rows of `{}` have {} elements, no multiple of 8", store->buffer->name, memory.shape().back());
  }
  if (!lowering.inference.machine.has_stmatrix) {
    result.obstacle = result.stores.empty() ? "" : lowering.inference.machine.target + " has none";
    result.stores.clear();
  }
  if (result.stores.empty()) result.matrices.reset();
  return result;
}

namespace {

// One vector of a move, in memory and in registers.
struct Piece {
  ir::Region memory, held;
  ir::Expr condition;  // that it is in bounds; null if that need not be checked
  int64_t bytes;
};
// `is_checked`: what is loaded may lie outside where nothing asks for it, also of tiles.
Piece piece_of(const Lowering& lowering, const VectorMove& move, int64_t first, bool is_checked, Span span) {
  std::vector<Expr> start = move.vector.start;
  start.back() = plus(start.back(), ir::int_imm(first));
  const Buffer& buffer = move.vector.buffer;
  const bool is_tile = buffer->scope == Scope::shared;
  return {is_tile ? lowering.address(buffer, start, span) : element(buffer, start, span),
          element(move.registers, {plus(move.place, ir::int_imm(first))}, span),
          is_checked || !is_tile ? bounds_condition(lowering, buffer, start) : nullptr,
          move.vector.elements * buffer->type.bytes()};
}

}  // namespace

void load_vector(const Lowering& lowering, const VectorMove& move, int64_t first, Span span, Lowering::Stmts& out) {
  const Piece piece = piece_of(lowering, move, first, true, span);
  const ir::Stmt copy = call(fmt::format("copy_vector<{}>", piece.bytes), {piece.held, piece.memory}, span);
  if (!piece.condition) return out.push_back(copy);
  const ir::Stmt zero = call(fmt::format("zero_vector<{}>", piece.bytes), {piece.held}, span);
  out.push_back(ir::make_stmt(ir::If{piece.condition, copy, zero}, span));
}

namespace {

void write_vector(const char* way, const Lowering& lowering, const VectorMove& move, int64_t first, const Expr& by,
                  Span span, Lowering::Stmts& out) {
  const Piece piece = piece_of(lowering, move, first, false, span);
  const ir::Stmt write = call(fmt::format("{}_vector<{}>", way, piece.bytes), {piece.memory, piece.held}, span);
  const Expr condition = by ? both(by, piece.condition) : piece.condition;
  out.push_back(condition ? ir::make_stmt(ir::If{condition, write, nullptr}, span) : write);
}

}  // namespace

void store_vector(const Lowering& lowering, const VectorMove& move, int64_t first, const Expr& by, Span span,
                  Lowering::Stmts& out) {
  write_vector("copy", lowering, move, first, by, span, out);
}

void add_vector(const Lowering& lowering, const VectorMove& move, int64_t first, const Expr& by, Span span,
                Lowering::Stmts& out) {
  write_vector("add", lowering, move, first, by, span, out);
}

namespace {

class NamedLoads : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  NamedLoads(const ir::Var& lane, Span span, Lowering::Stmts& out) : lane_(lane), span_(span), out_(out) {}

  Expr rewrite(const Expr& expr) override {
    if (const auto* node = ir::as<ir::Binary>(expr); node && !makes_sums(node->op))
      return ir::binary(node->op, operand(node->left), operand(node->right), expr->span);
    if (!ir::as<ir::Load>(expr) || ir::mentions(expr, lane_)) return rewrite_children(expr);
    const auto [found, is_new] = names_.emplace(ir::to_text(expr), nullptr);
    if (is_new) {
      const ir::Var read = ir::make_var("at", expr->type);
      out_.push_back(ir::make_stmt(ir::Let{read, expr}, span_));
      found->second = ir::var_ref(read, expr->span);
    }
    return found->second;
  }

 private:
  const ir::Var& lane_;
  const Span span_;
  Lowering::Stmts& out_;
  std::map<std::string, Expr> names_;

  // Of a quotient, a remainder or a comparison: what is computed of an element wraps, of a name it would not.
  Expr operand(const Expr& expr) {
    const bool is_logic = expr->type == ir::kBool;
    return is_logic || is_no_arithmetic(expr) || !ir::has_loads(expr) ? rewrite(expr) : expr;
  }
};

}  // namespace

std::vector<Expr> with_named_loads(const std::vector<Expr>& indices, const ir::Var& lane, Span span,
                                   Lowering::Stmts& out) {
  NamedLoads named(lane, span, out);
  std::vector<Expr> result;
  for (const Expr& index : indices) result.push_back(named.rewrite(index));
  return result;
}

}  // namespace tilepilot::targets::gpu
