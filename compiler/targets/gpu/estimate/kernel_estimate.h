// The model of tiles.h for a staged program: what its blocks do is read from the IR, so that configurations can be
// ranked before any is compiled.
#pragma once

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/estimate/tiles.h"

namespace tilepilot::targets::gpu {

// What a block of the kernel does. Loops whose length depends on the block have their mean. nullopt: the grid is only
// known at run time.
std::optional<BlockWork> work_of(const ir::Kernel& kernel, const Machine& machine);

// All launches, one after another; the bound is that of the longest. More registers than a thread can have are spilled,
// not refused. nullopt: a grid is only known at run time.
std::optional<std::variant<Estimate, Refusal>> estimate(const ir::Program& program, const Machine& machine);

// What all launches do: operations of GEMMs, or of elements where there are none, and bytes that blocks read and
// write. nullopt as above.
struct Workload {
  double operations = 0, bytes = 0;
};
std::optional<Workload> workload_of(const ir::Program& program, const Machine& machine);

}  // namespace tilepilot::targets::gpu
