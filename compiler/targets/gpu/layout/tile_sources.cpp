#include "compiler/targets/gpu/layout/tile_sources.h"

#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Scope;
using ir::Stmt;

namespace {

class CopiedSources : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit CopiedSources(std::vector<Buffer>& allocations) : allocations_(allocations) {}

  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* loop = ir::as<ir::For>(stmt); loop && loop->kind == ir::LoopKind::pipelined) {
      ++pipelined_;
      Stmt result = rewrite_children(stmt);
      --pipelined_;
      return result;
    }
    if (const auto* reduce = ir::as<ir::Reduce>(stmt)) return rewrite_reduce(stmt, *reduce);
    if (const auto* scan = ir::as<ir::Scan>(stmt)) return rewrite_scan(stmt, *scan);
    return rewrite_children(stmt);
  }

 private:
  std::vector<Buffer>& allocations_;
  int pipelined_ = 0;

  bool is_pipelined_tile(const Buffer& buffer) const { return pipelined_ > 0 && buffer->scope == Scope::shared; }

  Stmt rewrite_reduce(const Stmt& stmt, const ir::Reduce& reduce) {
    if (!is_pipelined_tile(reduce.source.buffer)) return stmt;
    ir::BufferData held{
        reduce.source.buffer->name + "_held", reduce.source.buffer->type, Scope::fragment, {}, {}, stmt->span};
    for (const int64_t extent : reduce.source.extent) held.shape.push_back(ir::int_imm(extent));
    allocations_.push_back(std::make_shared<ir::BufferData>(std::move(held)));
    const ir::Region source = whole(allocations_.back(), stmt->span);
    ir::Reduce result = reduce;
    result.source = source;
    return copied_first(reduce.source, source, ir::make_stmt(std::move(result), stmt->span));
  }

  Stmt rewrite_scan(const Stmt& stmt, const ir::Scan& scan) const {
    const bool in_place = scan.source.buffer == scan.destination.buffer;
    const bool is_held = scan.destination.buffer->scope == Scope::fragment;
    if (in_place || (!is_held && !is_pipelined_tile(scan.source.buffer))) return stmt;
    ir::Scan result = scan;
    result.source = scan.destination;
    return copied_first(scan.source, scan.destination, ir::make_stmt(std::move(result), stmt->span));
  }

  static Stmt copied_first(const ir::Region& from, const ir::Region& to, const Stmt& then) {
    return ir::make_stmt(ir::Block{{ir::make_stmt(ir::Copy{from, to, {}}, then->span), then}}, then->span);
  }
};

}  // namespace

ir::Kernel with_copied_sources(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = CopiedSources(result.allocations).rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
