#include "compiler/targets/cuda/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/layout/print.h"
#include "compiler/layout/svg.h"
#include "compiler/passes/algebra/assumptions.h"
#include "compiler/targets/cuda/target_lowering.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "compiler/targets/gpu/lower/lower.h"
#include "compiler/targets/gpu/lower/warp_roles.h"
#include "compiler/targets/gpu/schedule/pipeline.h"

namespace tilepilot::targets::cuda {

using namespace gpu;

namespace {

std::string kernel_layouts(const PlannedKernel& planned) {
  std::string text;
  for (const ir::Buffer& buffer : planned.kernel.allocations) {
    if (const auto held = planned.inference.fragments.find(buffer.get()); held != planned.inference.fragments.end())
      text += fmt::format("fragment {}: {}\n{}\n", buffer->name, layout::to_text(held->second),
                          layout::table(held->second));
    if (const auto tile = planned.inference.tiles.find(buffer.get()); tile != planned.inference.tiles.end())
      text +=
          fmt::format("shared {}: {}\n{}\n", buffer->name, layout::to_text(tile->second), layout::table(tile->second));
  }
  ir::walk(
      planned.kernel.body,
      [&](const ir::Stmt& stmt) {
        const auto found = planned.inference.gemms.find(stmt.get());
        if (found == planned.inference.gemms.end()) return;
        const GemmPlan& plan = found->second;
        const std::string& c = ir::as<ir::Gemm>(stmt)->c.buffer->name;
        if (plan.is_wgmma())
          text += fmt::format("gemm into {}: {} {} of {} columns, warpgroups {} x {}\n", c, plan.atom->instruction,
                              plan.atom->operands, plan.atom->n, plan.warps_m, plan.warps_n);
        else if (plan.atom)
          text += fmt::format("gemm into {}: {} {}, warps {} x {}{}\n", c, plan.atom->instruction, plan.atom->operands,
                              plan.warps_m, plan.warps_n,
                              plan.wgmma_obstacle.empty() ? "" : ", not wgmma: " + plan.wgmma_obstacle);
        else
          text += fmt::format("gemm into {}: multiply-adds, {}\n", c, plan.reason);
      },
      [](const ir::Expr&) {});
  for (const auto& [span, note] : planned.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace

Result<std::string> layouts_text(const ir::Program& program, Architecture architecture) {
  std::string text;
  const ir::Program prepared = TRY(prepare(program));
  for (const ir::Kernel& kernel : prepared.kernels)
    for (const PlannedKernel& role : TRY(plan_roles(kernel, machine_of(architecture), kLowering)))
      text += kernel_layouts(role);
  return text;
}

Result<std::vector<KernelPlan>> plans_of(const ir::Program& program, Architecture architecture) {
  std::vector<KernelPlan> plans;
  for (const ir::Kernel& kernel : TRY(prepare(program)).kernels)
    plans.push_back({kernel, TRY(plan_roles(kernel, machine_of(architecture), kLowering))});
  return plans;
}

Result<std::vector<Drawing>> layout_drawings(const ir::Program& program, Architecture architecture) {
  std::vector<Drawing> drawings;
  const auto add = [&](std::string name, std::string svg) {
    const auto same = [&](const Drawing& other) { return other.name == name; };
    const std::string first = name;
    for (int number = 2; std::any_of(drawings.begin(), drawings.end(), same); ++number)
      name = fmt::format("{}_{}", first, number);
    drawings.push_back({std::move(name), std::move(svg)});
  };
  const ir::Program prepared = TRY(prepare(program));
  for (size_t k = 0; k < prepared.kernels.size(); ++k) {
    for (const PlannedKernel& role : TRY(plan_roles(prepared.kernels[k], machine_of(architecture), kLowering))) {
      for (const ir::Buffer& buffer : role.kernel.allocations) {
        const std::string name = fmt::format("{}_{}_{}", program.name, k, buffer->name);
        const auto held = role.inference.fragments.find(buffer.get());
        if (held != role.inference.fragments.end()) add(name, layout::svg(held->second));
        const auto tile = role.inference.tiles.find(buffer.get());
        if (tile != role.inference.tiles.end()) add(name, layout::svg(tile->second));
      }
    }
  }
  return drawings;
}

Result<std::vector<std::vector<Decision>>> decisions_of(const ir::Program& program, Architecture architecture) {
  std::vector<std::vector<Decision>> all;
  for (const ir::Kernel& kernel : TRY(prepare(program)).kernels)
    all.push_back(in_order(TRY(lower_roles(kernel, machine_of(architecture), kLowering)).decisions));
  return all;
}

Result<std::string> explanation(const ir::Program& program, Architecture architecture, const SourceMap& sources) {
  std::vector<Decision> decisions;
  for (std::vector<Decision>& of_kernel : TRY(decisions_of(program, architecture)))
    for (Decision& decision : of_kernel) decisions.push_back(std::move(decision));
  for (const passes::DroppedAssumption& dropped : passes::dropped_assumptions(program))
    decisions.push_back({dropped.span, "assumption", "proves nothing: " + dropped.why});
  std::string text = fmt::format("{}:\n", program.name);
  if (const auto sentences = reliances(program); !sentences.empty())
    text += fmt::format("this version is for launches where {}; others get versions of their own\n",
                        fmt::join(sentences, "; "));
  for (const Decision& decision : in_order(std::move(decisions))) {
    if (decision.span.valid()) {
      const Position at = sources.position(decision.span.file, decision.span.begin);
      text += fmt::format("{}:{}:{}: ", sources.name(decision.span.file), at.line, at.column);
    }
    text += fmt::format("{}: {}\n", decision.what, decision.chosen);
    for (const std::string& obstacle : decision.obstacles) text += fmt::format("    {}\n", obstacle);
  }
  return text;
}

Result<std::string> ir_text(const ir::Program& program, Architecture architecture, bool lowered) {
  ir::Program result = TRY(prepare(program));
  for (ir::Kernel& kernel : result.kernels) {
    kernel = lowered ? TRY(lower_roles(kernel, machine_of(architecture), kLowering)).kernel
                     : TRY(plan_kernel(kernel, machine_of(architecture))).kernel;
  }
  return ir::to_text(result);
}

}  // namespace tilepilot::targets::cuda
