// What the functions of a library for a processor and for a GPU have in common: the size of the workspace, checks of
// arguments, and the arrays of pointers and numbers that kernels take.
#pragma once

#include "compiler/export/signature.h"

namespace tilepilot::exporting {

// The definition of NAME_workspace_size.
Result<std::string> size_function(const Library& library, const Kernel& kernel);
// The beginning of the function that launches the kernel: `tp_buffers` and `tp_scalars` are ready after it, in the
// order of targets/cpu/codegen.h.
Result<std::string> entry_beginning(const Library& library, const Kernel& kernel);
// A string literal.
std::string c_string(std::string_view text);
// What a failed check says: the line of the program and the message.
std::string check_text(const SourceMap& sources, Span span, const std::string& message);

// The text of runtime/status.h.in, and the functions that every library has.
std::string library_beginning(const Library& library);
std::string library_functions(const Library& library);
// The functions of the whole model; empty if there is none.
Result<std::string> model_functions(const Library& library);

}  // namespace tilepilot::exporting
