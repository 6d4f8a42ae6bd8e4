#include "compiler/targets/cuda/statements.h"

namespace tilepilot::targets::cuda {

using ir::Buffer;
using ir::Expr;
using ir::Region;
using ir::Stmt;
using Stmts = std::vector<Stmt>;

Stmt call(std::string function, CallArguments arguments, Span span) {
  return ir::make_stmt(ir::ExternCall{std::move(function), std::move(arguments), nullptr}, span);
}

Region element(const Buffer& buffer, std::vector<Expr> indices, Span span) {
  std::vector<int64_t> ones(indices.size(), 1);
  return {buffer, std::move(indices), std::move(ones), span};
}

Stmt block(Stmts body, Span span) {
  return body.size() == 1 ? body[0] : ir::make_stmt(ir::Block{std::move(body)}, span);
}

Stmt unrolled(const ir::Var& var, int64_t count, Stmts body, Span span) {
  return ir::make_stmt(
      ir::For{ir::LoopKind::unrolled, {var}, {ir::int_imm(count)}, 0, ir::make_stmt(ir::Block{std::move(body)}, span)},
      span);
}

Region whole(const Buffer& buffer, Span span) {
  Region region{buffer, {}, {}, span};
  for (const Expr& extent : buffer->shape) {
    region.start.push_back(ir::int_imm(0));
    region.extent.push_back(ir::constant_int(extent).value_or(1));
  }
  return region;
}

bool is_whole(const Region& region) {
  for (size_t axis = 0; axis < region.extent.size(); ++axis)
    if (ir::constant_int(region.buffer->shape[axis]) != region.extent[axis]) return false;
  return true;
}

}  // namespace tilepilot::targets::cuda
