// Copies that threads make by pieces of their own: those that run ahead, which each thread issues by cp.async and
// goes on, and those into tiles of other blocks of the cluster.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/search.h"
#include "compiler/passes/element_form.h"
#include "compiler/targets/gpu/layout/free_layouts.h"
#include "compiler/targets/gpu/layout/layout_cost.h"
#include "compiler/targets/gpu/lower/vectors.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {

// What moves one piece of a box.
struct Mover {
  int64_t least;  // bytes that it moves; smaller elements are loaded and stored
  std::string name;
  // Puts elements of `bytes` in all, from there on, to their place.
  std::function<Stmt(const Buffer& from, const std::vector<Expr>& source, const ir::Region& target, int64_t bytes)>
      move;
};

// What is copied: for each value of the variables the element of a tensor to that of a tile.
struct Elements {
  std::vector<ir::Var> vars;
  std::vector<int64_t> extents;
  ir::Region from, to;  // extents 1
};

std::optional<Elements> elements_of(const Stmt& stmt) {
  if (const auto* loop = ir::as<ir::For>(stmt)) {
    const auto* copy = ir::as<ir::Copy>(ir::statements(loop->body)[0]);
    Elements elements{loop->vars, {}, copy->source, copy->destination};
    for (const Expr& extent : loop->extents) elements.extents.push_back(*ir::constant_int(extent));
    return elements;
  }
  const auto form = passes::box_form(stmt);
  if (!form || form->vars.empty()) return std::nullopt;
  const auto& store = *ir::as<ir::Store>(form->body[0]);
  const auto& load = *ir::as<ir::Load>(store.value);
  return Elements{form->vars, form->extents, element(load.buffer, load.indices, stmt->span),
                  element(store.buffer, store.indices, stmt->span)};
}

ir::Stmt as_loop(const Elements& elements, Span span) {
  std::vector<Expr> extents;
  for (const int64_t extent : elements.extents) extents.push_back(ir::int_imm(extent));
  const Expr value = ir::load(elements.from.buffer, elements.from.start, span);
  const Stmt store = ir::make_stmt(ir::Store{elements.to.buffer, elements.to.start, value}, span);
  return ir::make_stmt(ir::For{ir::LoopKind::parallel, elements.vars, std::move(extents), 0, store}, span);
}

// Pieces of so many elements to threads. Where these are single ones, as lanes find most of them side by side: rows of
// a gather need not be what lies together in the tensor.
layout::Fragment dealt_pieces(const Lowering& lowering, const Elements& elements, int64_t together, Span span) {
  layout::Fragment plain = dealt_out(elements.extents, {lowering.threads, together});
  const auto loop = together == 1 ? parallel_loop(as_loop(elements, span), 1) : std::nullopt;
  if (!loop) return plain;
  const auto accesses = memory_accesses(*loop, lowering.facts, lowering.inference.tiles, false);
  FreeTile tile{elements.extents, lowering.threads, 1, {}, {}};
  for (size_t axis = 0; axis < tile.shape.size(); ++axis) tile.neighbours.push_back(axis);
  LayoutCost least = loop_cost(*loop, accesses, plain);
  for (FreeLayout& other : other_layouts(tile)) {
    const LayoutCost cost = loop_cost(*loop, accesses, other.fragment);
    if (!is_clearly_less(cost, least)) continue;
    least = cost;
    plain = std::move(other.fragment);
  }
  return plain;
}

// `most`: bytes side by side that a thread has. Where its pieces are smaller, the box is dealt out again, so that
// neighbours are the pieces of neighbouring threads.
void lower_pieces(Lowering& lowering, const Stmt& stmt, const Mover& mover, int64_t most, Stmts& out) {
  const Span span = stmt->span;
  const auto form = elements_of(stmt);
  if (!form) return lowering.fail(span, "this copy cannot be cut into pieces");
  const Buffer &tensor = form->from.buffer, &tile = form->to.buffer;
  const int64_t bytes = tensor->type.bytes();
  const layout::Fragment fragment = dealt_pieces(lowering, *form, std::max<int64_t>(1, most / bytes), span);
  Stmts digits_of_thread;
  const Indices thread = lowering.thread_digits(fragment.threads(), span, digits_of_thread);
  const auto& modes = fragment.registers().modes();
  std::vector<ir::Var> vars;
  const Indices digits = lowering.register_digits(fragment.registers(), vars);
  const Indices at = coordinates_of(fragment, thread, digits);
  Stmts body;
  const auto placed = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> result;
    for (const Expr& given : indices) {
      const Expr index = ir::has_loads(given) ? in_places(lowering, given, nullptr) : given;
      result.push_back(ir::cast(ir::substitute(index,
                                               [&](const ir::Var& var) -> Expr {
                                                 const auto found =
                                                     std::find(form->vars.begin(), form->vars.end(), var);
                                                 return found == form->vars.end()
                                                            ? nullptr
                                                            : at[static_cast<size_t>(found - form->vars.begin())];
                                               }),
                                ir::kInt32));
    }
    return result;
  };
  const int64_t lanes = modes.empty() || modes[0].stride != 1 ? 1 : modes[0].extent;
  const ir::Var lane = vars.empty() ? ir::make_var("lane", ir::kInt32) : vars[0];
  const std::vector<Expr> from = with_named_loads(placed(form->from.start), lane, span, body),
                          to = placed(form->to.start);
  const Surroundings around{lowering.facts, lowering.inference.tiles};
  const VectorChoice reading = vector_access(around, tensor, from, lane, lanes);
  const VectorChoice writing = vector_access(around, tile, to, lane, lanes);
  const auto &read = reading.vector, &write = writing.vector;
  const int64_t elements = read && write ? std::min(read->elements, write->elements) : 1;
  const auto move = [&](const std::vector<Expr>& source, const std::vector<Expr>& target) {
    body.push_back(mover.move(tensor, source, lowering.address(tile, target, span), elements * bytes));
  };
  const bool vectors = elements > 1 && elements * bytes >= mover.least;
  if (const int64_t together = vectors ? elements : 1; together < lanes && together * bytes < most)
    return lower_pieces(lowering, stmt, mover, together * bytes, out);
  Decision decision{span, name_of_copy(tensor, tile),
                    elements * bytes < mover.least ? "element by element"
                                                   : fmt::format("{} of {} bytes", mover.name, elements * bytes)};
  for (const std::string& obstacle : {reading.obstacle, writing.obstacle})
    if (!obstacle.empty()) decision.obstacles.push_back("no wider: " + obstacle);
  lowering.decisions.push_back(std::move(decision));
  if (vectors) {
    for (int64_t first = 0; first < lanes; first += elements) {
      std::vector<Expr> source = read->start, target = write->start;
      source.back() = plus(source.back(), ir::int_imm(first));
      target.back() = plus(target.back(), ir::int_imm(first));
      move(source, target);
    }
  } else if (bytes >= mover.least) {  // one by one
    move(from, to);
  } else {
    const ir::Region target = lowering.address(tile, to, span);
    body.push_back(ir::make_stmt(ir::Store{target.buffer, target.start, ir::load(tensor, from, span)}, span));
  }
  Indices first_lane = digits;
  if (vectors) first_lane[0] = ir::int_imm(0);  // vectors lie in the tile as a whole, or not at all
  const Expr condition = both(is_in_tile(fragment, coordinates_of(fragment, thread, first_lane), span),
                              is_first_replica(fragment, thread, span));
  if (condition)
    body = {ir::make_stmt(ir::If{condition, ir::make_stmt(ir::Block{std::move(body)}, span), nullptr}, span)};
  if (!vectors && lanes > 1) body = {unrolled(lane, lanes, std::move(body), span)};
  for (size_t k = 0; k < modes.size(); ++k) {
    if (modes[k].extent == 1 || (k == 0 && lanes > 1)) continue;
    body = {unrolled(vars[k], modes[k].extent, std::move(body), span)};
  }
  out.insert(out.end(), digits_of_thread.begin(), digits_of_thread.end());
  out.insert(out.end(), body.begin(), body.end());
}

}  // namespace

// cp.async moves 4, 8 or 16 bytes; what is narrower, or may not be aligned, is moved as it is.
void lower_async_copy(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  const auto move = [&](const Buffer& from, const std::vector<Expr>& source, const ir::Region& target, int64_t bytes) {
    CallArguments arguments{target, element(from, source, stmt->span)};
    if (const Expr inside = bounds_condition(lowering, from, source)) arguments.emplace_back(inside);
    return call(fmt::format("async_copy<{}>", bytes), std::move(arguments), stmt->span);
  };
  lower_pieces(lowering, stmt, {4, "cp.async", move}, kAccessBytes, out);
}

void lower_remote_copy(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  const Expr& block_of_cluster = ir::as<ir::Copy>(stmt)->peer;
  const auto move = [&](const Buffer& from, const std::vector<Expr>& source, const ir::Region& target, int64_t bytes) {
    return call(fmt::format("copy_remote<{}>", bytes),
                {target, block_of_cluster, lowering.address(from, source, stmt->span)}, stmt->span);
  };
  const auto form = passes::box_form(stmt);
  if (form && form->vars.empty()) {  // one element
    const auto& store = *ir::as<ir::Store>(form->body[0]);
    const auto& load = *ir::as<ir::Load>(store.value);
    const Stmt moved = move(load.buffer, load.indices, lowering.address(store.buffer, store.indices, stmt->span),
                            load.buffer->type.bytes());
    return lowering.add_by_first_thread({moved}, stmt->span, out);
  }
  lower_pieces(lowering, stmt, {1, "into another block's memory, by stores", move}, kAccessBytes, out);
}

}  // namespace tilepilot::targets::gpu
