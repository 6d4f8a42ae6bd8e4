// What tells machines and installed programs apart: what is compiled or measured on one may not hold for another.
#pragma once

#include <filesystem>
#include <string>

namespace tilepilot::runtime {

// What the compiler's `-march=native` depends on: equal on machines that can run each other's kernels: the processor's
// model and its features.
std::string processor_identity();
// Empty: it has none.
std::string host_name();
// Changes when the file does.
std::string file_identity(const std::filesystem::path& path);

}  // namespace tilepilot::runtime
