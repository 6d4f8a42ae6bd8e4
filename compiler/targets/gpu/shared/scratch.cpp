#include "compiler/targets/gpu/shared/scratch.h"

#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/layout/reduction_modes.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

void give_boards(ir::Kernel& kernel, Inference& inference) {
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
                              board_size(modes, threads, inference.compact_boards);
        kernel.allocations.push_back(std::make_shared<ir::BufferData>(
            ir::BufferData{result->name + "_board", type, ir::Scope::shared, {ir::int_imm(count)}, {}, result->span}));
        const ir::Buffer& board = kernel.allocations.back();
        inference.tiles.emplace(board.get(), layout::SharedLayout::linear({count}, type.bytes() * 8));
        inference.boards.emplace(stmt.get(), board);
      },
      [](const Expr&) {});
}

void give_boards_for_parts(ir::Kernel& kernel, Inference& inference) {
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        const auto found = inference.gemms.find(stmt.get());
        if (found == inference.gemms.end()) return;
        const GemmPlan& plan = found->second;
        if (!plan.splits || !plan.is_wgmma()) return;
        const Buffer& b = ir::as<ir::Gemm>(stmt)->b.buffer;
        const layout::Shape shape{plan.moves_b ? 2 * plan.n : plan.n, plan.k};
        const Buffer board =
            std::make_shared<ir::BufferData>(ir::BufferData{b->name + (plan.moves_b ? "_parts" : "_low"),
                                                            ir::kFloat32,
                                                            ir::Scope::shared,
                                                            {ir::int_imm(shape[0]), ir::int_imm(shape[1])},
                                                            {},
                                                            b->span});
        kernel.allocations.push_back(board);
        inference.tiles.emplace(board.get(), layout::conflict_free_layout(shape, ir::kFloat32.bits));
        inference.boards.emplace(stmt.get(), board);
      },
      [](const Expr&) {});
}

}  // namespace tilepilot::targets::gpu
