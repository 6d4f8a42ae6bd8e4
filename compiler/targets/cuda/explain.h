// What becomes of a program on this target, for people: layouts as tables and drawings, IR between the steps, and for
// each statement what was chosen and why nothing faster.
#pragma once

#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/schedule/pipeline.h"

namespace tilepilot::targets::cuda {

// For each kernel: layouts of fragments and shared tiles as tables, and how GEMMs are computed.
Result<std::string> layouts_text(const ir::Program& program, gpu::Architecture architecture);

// By kernel, what each of its warp roles is planned to do; one role where all threads do the same.
struct KernelPlan {
  ir::Kernel prepared;  // before it is planned
  std::vector<gpu::PlannedKernel> roles;
};
Result<std::vector<KernelPlan>> plans_of(const ir::Program& program, gpu::Architecture architecture);

struct Drawing {
  std::string name;  // "main_0_C_local", each of its own
  std::string svg;
};
// Of all fragments and shared tiles.
Result<std::vector<Drawing>> layout_drawings(const ir::Program& program, gpu::Architecture architecture);

// By kernel, in the order of the program's text.
Result<std::vector<std::vector<gpu::Decision>>> decisions_of(const ir::Program& program,
                                                             gpu::Architecture architecture);

// A line a decision, with its place in the program's text, and a line for each thing that keeps it from something
// faster.
Result<std::string> explanation(const ir::Program& program, gpu::Architecture architecture, const SourceMap& sources);

// IR with barriers, before lowering or after it.
Result<std::string> ir_text(const ir::Program& program, gpu::Architecture architecture, bool lowered);

}  // namespace tilepilot::targets::cuda
