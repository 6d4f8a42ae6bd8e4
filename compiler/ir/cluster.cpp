#include "compiler/ir/cluster.h"

#include "compiler/ir/search.h"

namespace tilepilot::ir {

int64_t cluster_size(const Kernel& kernel) {
  int64_t blocks = 1;
  for (const int64_t extent : kernel.cluster) blocks *= extent;
  return blocks;
}

Expr rank_in_cluster(const Kernel& kernel, Span span) {
  Expr rank = int_imm(0, kInt32, span);
  int64_t weight = 1;
  for (size_t axis = 0; axis < kernel.cluster.size(); ++axis) {
    const int64_t extent = kernel.cluster[axis];
    if (extent == 1) continue;
    const Expr block = cast(var_ref(kernel.block_vars[axis], span), kInt32, span);
    Expr part = binary(BinaryOp::floor_mod, block, int_imm(extent, kInt32, span), span);
    if (weight > 1) part = binary(BinaryOp::mul, part, int_imm(weight, kInt32, span), span);
    rank = weight > 1 ? binary(BinaryOp::add, rank, part, span) : part;
    weight *= extent;
  }
  return rank;
}

bool reaches_peers(const Stmt& stmt) {
  const auto* copy = as<Copy>(stmt);
  const auto* barrier = as<Barrier>(stmt);
  return (copy && (copy->multicast != 0 || copy->peer)) || (barrier && barrier->peer);
}

bool shares_in_cluster(const Stmt& body) { return contains(body, reaches_peers); }

}  // namespace tilepilot::ir
