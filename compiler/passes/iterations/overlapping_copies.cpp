#include "compiler/passes/iterations/overlapping_copies.h"

#include <vector>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"

namespace tilepilot::passes {
namespace {

// By constant places along an axis; of views of one memory nothing is known.
bool are_apart(const ir::Region& a, const ir::Region& b) {
  for (size_t axis = 0; a.buffer == b.buffer && axis < a.start.size(); ++axis) {
    const auto x = ir::constant_int(a.start[axis]), y = ir::constant_int(b.start[axis]);
    if (x && y && (*x + a.extent[axis] <= *y || *y + b.extent[axis] <= *x)) return true;
  }
  return false;
}

class SeparateBoxes : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit SeparateBoxes(std::vector<ir::Buffer>& allocations) : allocations_(allocations) {}

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* copy = ir::as<ir::Copy>(stmt);
    if (!copy) return rewrite_children(stmt);
    const bool within = ir::memory_of(copy->source.buffer) == ir::memory_of(copy->destination.buffer);
    if (!within || copy->mode != ir::CopyMode::complete || copy->peer || are_apart(copy->source, copy->destination))
      return stmt;
    const ir::Region between = tile_like(copy->source);
    const auto copied = [&](const ir::Region& from, const ir::Region& to) {
      return ir::make_stmt(ir::Copy{from, to, {}}, stmt->span);
    };
    return ir::make_stmt(ir::Block{{copied(copy->source, between), copied(between, copy->destination)}}, stmt->span);
  }

 private:
  std::vector<ir::Buffer>& allocations_;

  ir::Region tile_like(const ir::Region& region) {
    ir::BufferData tile{
        region.buffer->name + "_between", region.buffer->type, ir::Scope::fragment, {}, {}, region.span};
    ir::Region all{nullptr, {}, region.extent, region.span};
    for (const int64_t extent : region.extent) {
      tile.shape.push_back(ir::int_imm(extent));
      all.start.push_back(ir::int_imm(0));
    }
    allocations_.push_back(std::make_shared<ir::BufferData>(std::move(tile)));
    all.buffer = allocations_.back();
    return all;
  }
};

}  // namespace

ir::Program overlapping_copies(const ir::Program& program) {
  ir::Program result = program;
  for (ir::Kernel& kernel : result.kernels) kernel.body = SeparateBoxes(kernel.allocations).rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::passes
