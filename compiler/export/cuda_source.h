// The source of a library for a GPU: C++ for the host that holds machine code as bytes, and launches it through the
// driver.
#pragma once

#include <utility>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/export/interface.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/source/source.h"

namespace tilepilot::exporting {

struct CudaSource {
  std::string host;
  std::vector<std::pair<std::string, std::string>> device;  // what NVRTC got, by file name: for people
};

Result<CudaSource> cuda_source(const Library& library, const SourceMap& sources,
                               const runtime::cuda::NvrtcOptions& nvrtc, DiagnosticList& warnings);

}  // namespace tilepilot::exporting
