// A kernel against what its machine can do.
#pragma once

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/machine/machine.h"
#include "show/show.h"

namespace tilepilot::show {

// How a kernel multiplies: MMAs that a product of tiles becomes on tensor cores; 0: its threads multiply.
using TensorParts = int64_t;

// The time is that of the model of tile sizes, if that knows the kernel; `why` says else why there is none.
RooflinePicture roofline_of(const ir::Kernel& kernel, const ir::VarRanges& values, const targets::gpu::Machine& machine,
                            TensorParts parts, std::string& why);
// Without a time.
RooflinePicture roofline_of(const ir::Kernel& kernel, const ir::VarRanges& values, const ProcessorRates& rates);

}  // namespace tilepilot::show
