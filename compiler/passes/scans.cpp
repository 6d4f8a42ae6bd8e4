#include "compiler/passes/scans.h"

#include <fmt/format.h>

#include "compiler/ir/visit.h"

namespace tilepilot::passes {
namespace {

// Steps along the axis, each for all other places at once: dst[k] = op(dst[k - 1], src[k]).
ir::Stmt steps_of(const ir::Scan& scan, Span span) {
  const auto axis = static_cast<size_t>(scan.axis);
  const int64_t last = scan.source.extent[axis] - 1;
  ir::For places{ir::LoopKind::parallel, {}, {}, 0, nullptr};
  std::vector<ir::Expr> point(scan.source.extent.size(), ir::int_imm(0));
  for (size_t k = 0; k < point.size(); ++k) {
    if (k == axis || scan.source.extent[k] == 1) continue;
    places.vars.push_back(ir::make_var(fmt::format("s{}", k), ir::kInt32));
    places.extents.push_back(ir::int_imm(scan.source.extent[k]));
    point[k] = ir::var_ref(places.vars.back());
  }
  const auto at = [&](const ir::Region& region, const ir::Expr& step) {
    std::vector<ir::Expr> indices = point;
    indices[axis] = scan.reverse ? ir::binary(ir::BinaryOp::sub, ir::int_imm(last), step) : step;
    for (size_t k = 0; k < indices.size(); ++k) {
      if (ir::constant_int(region.start[k]) == 0) continue;
      indices[k] = ir::binary(ir::BinaryOp::add, region.start[k], ir::cast(indices[k], region.start[k]->type));
    }
    return indices;
  };
  const ir::Buffer &from = scan.source.buffer, &to = scan.destination.buffer;
  const ir::Var var = ir::make_var("k", ir::kInt32);
  const ir::Expr before = ir::var_ref(var), next = ir::binary(ir::BinaryOp::add, before, ir::int_imm(1)),
                 zero = ir::int_imm(0);
  const ir::BinaryOp op = scan.op == ir::ScanOp::sum ? ir::BinaryOp::add : ir::BinaryOp::max;
  const ir::Expr sum =
      ir::binary(op, ir::load(to, at(scan.destination, before)), ir::load(from, at(scan.source, next)));
  const ir::Stmt step = ir::make_stmt(ir::Store{to, at(scan.destination, next), sum}, span);
  const ir::Stmt first =
      ir::make_stmt(ir::Store{to, at(scan.destination, zero), ir::load(from, at(scan.source, zero))}, span);
  const ir::Stmt others = ir::make_stmt(ir::For{ir::LoopKind::serial, {var}, {ir::int_imm(last)}, 0, step}, span);
  const ir::Stmt all = ir::make_stmt(ir::Block{{first, others}}, span);
  if (places.vars.empty()) return all;
  places.body = all;
  return ir::make_stmt(std::move(places), span);
}

class ScanExpander : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* scan = std::get_if<ir::Scan>(&stmt->node);
    return scan != nullptr ? steps_of(*scan, stmt->span) : rewrite_children(stmt);
  }
};

}  // namespace

ir::Kernel expand_scans(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = ScanExpander().rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::passes
