#include "compiler/export/header.h"

#include <fmt/format.h>

#include "compiler/export/c_names.h"
#include "compiler/export/signature.h"

namespace tilepilot::exporting {
namespace {

std::string declaration(const Library& library, const Function& function, bool has_size_arguments) {
  std::string text = fmt::format("\n// {}\n", function.comment);
  for (const Argument& argument : function.arguments) text += fmt::format("//   {}\n", described(argument));
  const std::string name = prefixed(library, function);
  text += fmt::format("int64_t {}_workspace_size({});\n", name,
                      has_size_arguments ? size_parameter_list(function) : "void");
  return text + fmt::format("int {}({});\n", name, parameter_list(function));
}

// The same for every library of a target.
std::string beginning(const Library& library) {
  const std::string upper = upper_case(library.name);
  std::string text = fmt::format(
      "// Kernels of {0}, exported by TilePilot for the target {1}. README.md beside this file says how to call them.\n"
      "#ifndef {2}_H\n#define {2}_H\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "// What every function returns.\n"
      "enum {3}_status {{\n"
      "  {2}_DONE = 0,\n"
      "  {2}_BAD_ARGUMENT = 1,     // a null pointer, an extent that is negative or too large\n"
      "  {2}_CHECK_FAILED = 2,     // an index left its tile, or another check of the kernel failed\n"
      "  {2}_OUT_OF_MEMORY = 3,\n"
      "  {2}_DEVICE_MISSING = 4,   // no CUDA driver, or no GPU\n"
      "  {2}_DEVICE_FAILED = 5,    // the CUDA driver reported an error\n"
      "  {2}_WRONG_PROCESSOR = 6,  // the library was built for a processor with other instructions\n"
      "}};\n"
      "// What a status means.\n"
      "const char* {3}_status_text(int status);\n"
      "// What the last call of this thread that failed has to say; it holds until the next one.\n"
      "const char* {3}_last_error(void);\n",
      library.file, library.target, upper, library.name);
  if (!library.is_gpu())
    text += fmt::format(
        "// How many threads share the blocks of a launch, the caller's included. 0, the default: one for each "
        "processor.\nint {}_set_threads(int threads);\n",
        library.name);
  return text +
         (library.is_gpu()
              ? "\n// Pointers are to memory of the GPU. `stream` is a CUstream or cudaStream_t, null for the "
                "default one. Calls do not wait.\n"
              : "\n// Tensors are contiguous in row-major order unless strides are named. `stream` is not used: "
                "pass a null pointer.\n") +
         "// `workspace` is memory of at least as many bytes as the function before it says, for one call at a time; "
         "it may be null where that is 0.\n";
}

}  // namespace

std::string header_text(const Library& library) {
  std::string text = beginning(library);
  for (const Kernel& kernel : library.kernels) text += declaration(library, kernel.function, true);
  if (library.model) text += declaration(library, library.model->function, false);
  return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif  // {}_H\n", upper_case(library.name));
}

}  // namespace tilepilot::exporting
