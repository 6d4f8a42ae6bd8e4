// Copies that threads make by pieces of their own: those that run ahead, which each thread issues by cp.async and
// goes on, and those into tiles of other blocks of the cluster.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/search.h"
#include "compiler/passes/element_form.h"
#include "compiler/targets/gpu/layout/free_layouts.h"
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

void lower_pieces(Lowering& lowering, const Stmt& stmt, const Mover& mover, Stmts& out) {
  ir::Copy copy = *ir::as<ir::Copy>(stmt);
  const Span span = stmt->span;
  const auto form = passes::box_form(stmt);
  if (!form || form->vars.empty()) return lowering.fail(span, "this copy cannot be cut into pieces");
  const auto& store = *ir::as<ir::Store>(form->body[0]);
  const auto& load = *ir::as<ir::Load>(store.value);
  const int64_t bytes = copy.source.buffer->type.bytes();
  const layout::Fragment fragment = dealt_out(form->extents, {lowering.threads, 16 / bytes});
  const Indices thread = lowering.thread_digits(fragment.threads(), span, out);
  const auto& modes = fragment.registers().modes();
  std::vector<ir::Var> vars;
  const Indices digits = lowering.register_digits(fragment.registers(), vars);
  const Indices at = coordinates_of(fragment, thread, digits);
  const auto placed = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> result;
    for (const Expr& index : indices)
      result.push_back(ir::cast(ir::substitute(index,
                                               [&](const ir::Var& var) -> Expr {
                                                 const auto found =
                                                     std::find(form->vars.begin(), form->vars.end(), var);
                                                 return found == form->vars.end()
                                                            ? nullptr
                                                            : at[static_cast<size_t>(found - form->vars.begin())];
                                               }),
                                ir::kInt32));
    return result;
  };
  const std::vector<Expr> from = placed(load.indices), to = placed(store.indices);
  const int64_t lanes = modes.empty() || modes[0].stride != 1 ? 1 : modes[0].extent;
  const ir::Var lane = vars.empty() ? ir::make_var("lane", ir::kInt32) : vars[0];
  const Surroundings around{lowering.facts, lowering.inference.tiles};
  const VectorChoice reading = vector_access(around, load.buffer, from, lane, lanes);
  const VectorChoice writing = vector_access(around, store.buffer, to, lane, lanes);
  const auto &read = reading.vector, &write = writing.vector;
  const int64_t elements = read && write ? std::min(read->elements, write->elements) : 1;
  Stmts body;
  const auto move = [&](const std::vector<Expr>& source, const std::vector<Expr>& target) {
    body.push_back(mover.move(load.buffer, source, lowering.address(store.buffer, target, span), elements * bytes));
  };
  const bool vectors = elements > 1 && elements * bytes >= mover.least;
  Decision decision{span, name_of_copy(load.buffer, store.buffer),
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
    const ir::Region target = lowering.address(store.buffer, to, span);
    body.push_back(ir::make_stmt(ir::Store{target.buffer, target.start, ir::load(load.buffer, from, span)}, span));
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
  lower_pieces(lowering, stmt, {4, "cp.async", move}, out);
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
  lower_pieces(lowering, stmt, {1, "into another block's memory, by stores", move}, out);
}

}  // namespace tilepilot::targets::gpu
