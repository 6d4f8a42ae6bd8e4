// The pictures of a program's kernels, by kind of target.
#pragma once

#include "compiler/targets/gpu/machine/machine.h"
#include "show/show.h"

namespace tilepilot::show {

Result<std::vector<KernelPicture>> gpu_pictures(const ir::Program& program, const SourceMap& sources,
                                                targets::gpu::Architecture architecture, const ShowOptions& options);
Result<std::vector<KernelPicture>> cpu_pictures(const ir::Program& program, const SourceMap& sources,
                                                const ShowOptions& options);

// In the file that is shown; 0: elsewhere.
int line_in(const std::string& file, const SourceMap& sources, Span span);

}  // namespace tilepilot::show
