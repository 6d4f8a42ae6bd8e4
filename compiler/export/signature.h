// The C functions of tile programs: what their parameters are, and how the functions begin.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/export/host_expr.h"
#include "compiler/export/interface.h"

namespace tilepilot::exporting {

// The function of a program: its parameters in order, then its symbols. Errors: invalid_jit, of a program that writes
// none of its tensors.
Result<Function> function_of(const ir::Program& program, std::string name, std::string comment);

HostNames host_names(const Function& function);
std::string prefixed(const Library& library, const Function& function);  // "fast_rms_norm"
// "const float* X, float* Y, int64_t n, void* workspace, void* stream"
std::string parameter_list(const Function& function);
// Of the function that gives the size of the workspace: numbers and extents alone; "void" if there are none.
std::string size_parameter_list(const Function& function);
// Names of what size_parameter_list takes: "n, m".
std::string size_arguments(const Function& function);

// "X: float32[64, n]"; with strides if it has any.
std::string described(const Argument& argument);

// Statements that return where an extent is too large or a tensor is null.
Result<std::string> argument_checks(const Function& function, const std::string& full_name);
// "INT64_C(4) * n": of a buffer's elements, none of them packed.
Result<std::string> bytes_of(const ir::BufferData& buffer, const HostNames& names);

}  // namespace tilepilot::exporting
