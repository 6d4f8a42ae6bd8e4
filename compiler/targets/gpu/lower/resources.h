// What a kernel needs beside what a block has: fragments and registers, GEMMs and threads. Reported before the driver,
// or a slow kernel, shows it.
#pragma once

#include <vector>

#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

// Warnings about statements whose fragments do not fit into registers, so that they lie in slow memory, and about
// products whose threads or extents tensor cores cannot use. Errors: too_large_for_device, where fragments are so far
// beyond that no compiler gets through.
Result<std::vector<Diagnostic>> resource_warnings(const PlannedKernel& planned, int64_t threads_of_block);

// Warnings about parallel loops whose iterations run one after another: they hand a variable on, or change an element
// that another one changes, other than by what atomic operations can. And about vectorized loops in which all threads
// synchronise. `given`: before `prepare`.
std::vector<Diagnostic> sequence_warnings(const ir::Program& given, const ir::Program& prepared);

// Errors: too_large_for_device, where a program gives its warpgroups more registers than there are, so that one would
// wait for ever.
Status check_registers(const ir::Kernel& kernel);

// The shared memory that a kernel needs, with the hardware barriers, which lie behind all tiles.
constexpr int64_t kBytesOfBarrier = 8;
int64_t shared_bytes_with_barriers(const LoweredKernel& lowered);

// `too_large_for_device`, with the largest tiles, or the largest arrays of a thread.
Error too_much_shared_memory(const ir::Kernel& kernel, int64_t bytes, int64_t limit);
Error too_much_local_memory(const ir::Kernel& kernel, int64_t bytes, int64_t limit);

}  // namespace tilepilot::targets::gpu
