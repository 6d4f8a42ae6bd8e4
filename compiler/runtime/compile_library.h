// Source text to the bytes of a library, for another process to load. What a Toolchain does but for the loading.
#pragma once

#include <string>
#include <vector>

#include "compiler/runtime/library.h"

namespace tilepilot::runtime {

// Compiled in a confinement, or from the cache. `abandon`: a socket whose other side no longer waits once it hangs up;
// the compiler is ended then. Errors: compiler_missing, compiler_failed.
Result<std::string> compile_library(const ToolchainOptions& options, const std::string& source, int abandon,
                                    DiagnosticList& warnings);

// What the compiler is told beside the source and the library's name, `extra` at the end.
std::vector<std::string> library_flags(const std::vector<std::string>& extra);

}  // namespace tilepilot::runtime
