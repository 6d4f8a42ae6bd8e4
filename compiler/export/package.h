// All files of an exported library: shared object, header, sources, CMake package, examples and README.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/export/interface.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/runtime/library.h"
#include "compiler/source/source.h"

namespace tilepilot::exporting {

struct PackageOptions {
  runtime::ToolchainOptions toolchain;
  runtime::cuda::NvrtcOptions nvrtc;
};

// Names within the folder, with their contents.
using PackageFiles = std::vector<std::pair<std::string, std::string>>;

// Errors: compiler_missing, compiler_failed, nvrtc_missing; what a kernel has that the target or an exported function
// does not.
Result<PackageFiles> package_files(const Library& library, const SourceMap& sources, const PackageOptions& options,
                                   DiagnosticList& warnings);

// The functions of a library and what was left out, as `--json` gives them.
nlohmann::json description_of(const Library& library, const std::filesystem::path& folder);
// What is said of a library that was written to `folder`.
std::string summary_of(const Library& library, const std::filesystem::path& folder);

}  // namespace tilepilot::exporting
