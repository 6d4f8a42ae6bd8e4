#include "compiler/targets/gpu/shared/scratch.h"

#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/layout/reduction_modes.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

void allocate_reduction_scratch(ir::Kernel& kernel, Inference& inference) {
  const int64_t threads = thread_count(kernel);
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        const auto* reduce = ir::as<ir::Reduce>(stmt);
        if (reduce == nullptr) return;
        const layout::Fragment& source = inference.fragments.at(reduce->source.buffer.get());
        const ir::Buffer& result = reduce->destination.buffer;
        const SplitModes modes = split_modes(modes_along(source, static_cast<size_t>(reduce->axis)), threads);
        if (modes.warps.empty()) return;
        const ir::DType type = accumulator_type(result->type);
        const int64_t count = inference.fragments.at(result.get()).register_count() *
                              scratch_size(modes, threads, inference.compact_scratch);
        kernel.allocations.push_back(std::make_shared<ir::BufferData>(ir::BufferData{
            result->name + "_scratch", type, ir::Scope::shared, {ir::int_imm(count)}, {}, result->span}));
        const ir::Buffer& scratch = kernel.allocations.back();
        inference.tiles.emplace(scratch.get(), layout::SharedLayout::linear({count}, type.bytes() * 8));
        inference.scratch_buffers.emplace(stmt.get(), scratch);
      },
      [](const Expr&) {});
}

void allocate_split_gemm_scratch(ir::Kernel& kernel, Inference& inference) {
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        const auto found = inference.gemms.find(stmt.get());
        if (found == inference.gemms.end()) return;
        const GemmPlan& plan = found->second;
        if (!plan.splits || !plan.is_wgmma()) return;
        const Buffer& b = ir::as<ir::Gemm>(stmt)->b.buffer;
        const layout::Shape shape{plan.moves_b ? 2 * plan.n : plan.n, plan.k};
        const Buffer scratch =
            std::make_shared<ir::BufferData>(ir::BufferData{b->name + (plan.moves_b ? "_parts" : "_low"),
                                                            ir::kFloat32,
                                                            ir::Scope::shared,
                                                            {ir::int_imm(shape[0]), ir::int_imm(shape[1])},
                                                            {},
                                                            b->span});
        kernel.allocations.push_back(scratch);
        inference.tiles.emplace(scratch.get(), layout::conflict_free_layout(shape, ir::kFloat32.bits));
        inference.scratch_buffers.emplace(stmt.get(), scratch);
      },
      [](const Expr&) {});
}

}  // namespace tilepilot::targets::gpu
