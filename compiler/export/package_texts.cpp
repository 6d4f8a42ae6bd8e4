#include "compiler/export/package_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/export/c_names.h"
#include "compiler/export/signature.h"

namespace tilepilot::exporting {
namespace {

std::string function_row(const Library& library, const Function& function) {
  std::vector<std::string> arguments;
  for (const Argument& argument : function.arguments) arguments.push_back(described(argument));
  return fmt::format("- `{}` ({}): {}\n", prefixed(library, function), function.comment, fmt::join(arguments, "; "));
}

std::string calling_rules(const Library& library) {
  const std::string upper = upper_case(library.name);
  std::string text = fmt::format(
      "Each function takes the kernel's arguments in their order, then extents that the kernel leaves open, then "
      "`workspace` and `stream`, and returns\n`{0}_DONE` or another status of `{1}.h`; `{1}_last_error()` says more "
      "of the last failure of the calling thread. `NAME_workspace_size` gives the\nbytes of `workspace`, which one "
      "call at a time may use; it may be null where they are 0. Functions may be called from several threads at "
      "once.\n\n",
      upper, library.name);
  if (library.is_gpu())
    return text +
           "Pointers are to memory of the GPU, in the context of the calling thread; where it has none, the "
           "primary context of the first GPU becomes it.\n`stream` is a `CUstream` or `cudaStream_t`. Calls do "
           "not wait: what goes wrong on the GPU is the status of a later call. The library opens\n"
           "`libcuda.so.1` at the first call, and loads without it.\n";
  return text + fmt::format(
                    "Pointers are to memory of the host, `stream` is not used. Blocks of a kernel share the threads of "
                    "the library, `{}_set_threads` says how many.\nThe machine code is for processors like the one "
                    "that exported it; others answer `{}_WRONG_PROCESSOR`: build `source/` there.\n",
                    library.name, upper);
}

}  // namespace

std::string package_config_name(const Library& library) {
  std::string name = library.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name + "-config.cmake";
}

std::string readme_text(const Library& library, const std::string& compiler) {
  std::string text = fmt::format(
      "# {}\n\nKernels of `{}` for the target `{}`, exported by TilePilot. The library needs neither TilePilot nor "
      "Python nor LibTorch{}.\n\n## Functions\n\n",
      library.name, library.file, library.target, compiler.empty() ? "" : "; it was built by " + compiler);
  for (const Kernel& kernel : library.kernels) text += function_row(library, kernel.function);
  if (library.model) text += function_row(library, library.model->function);
  text += "\n" + calling_rules(library);
  text += fmt::format(
      "\n## Link\n\n    find_package({0} REQUIRED PATHS /where/this/folder/is)\n"
      "    target_link_libraries(program {0}::{0})\n\nThe folder may be moved as a whole. `examples/` builds two "
      "programs: `cmake -S examples -B build && cmake --build build`; the one with LibTorch's\ntensors needs "
      "`-DCMAKE_PREFIX_PATH=/where/libtorch/is`. `source/` builds the library again: `cmake -S source -B "
      "build`.\n",
      library.name);
  if (library.notes.empty()) return text;
  text += "\n## What is not there\n\n";
  for (const std::string& note : library.notes) text += fmt::format("- {}\n", note);
  return text;
}

std::string package_config(const Library& library) {
  return fmt::format(
      "# find_package({0}): the imported target {0}::{0}.\n"
      "if(NOT TARGET {0}::{0})\n"
      "  add_library({0}::{0} SHARED IMPORTED)\n"
      "  set_target_properties({0}::{0} PROPERTIES\n"
      "    IMPORTED_LOCATION \"${{CMAKE_CURRENT_LIST_DIR}}/lib{0}.so\"\n"
      "    IMPORTED_SONAME \"lib{0}.so\"\n"
      "    INTERFACE_INCLUDE_DIRECTORIES \"${{CMAKE_CURRENT_LIST_DIR}}\")\n"
      "endif()\n",
      library.name);
}

std::string examples_build(const Library& library) {
  return fmt::format(
      "cmake_minimum_required(VERSION 3.16)\nproject({0}_examples LANGUAGES CXX)\nset(CMAKE_CXX_STANDARD 17)\n\n"
      "find_package({0} REQUIRED PATHS \"${{CMAKE_CURRENT_SOURCE_DIR}}/..\" NO_DEFAULT_PATH)\n\n"
      "add_executable(plain plain.cpp)\ntarget_link_libraries(plain {0}::{0} ${{CMAKE_DL_LIBS}})\n\n"
      "find_package(Torch QUIET)\nif(Torch_FOUND)\n  add_executable(with_torch torch.cpp)\n"
      "  set_target_properties(with_torch PROPERTIES CXX_STANDARD 20)\n"
      "  target_compile_options(with_torch PRIVATE ${{TORCH_CXX_FLAGS}})\n"
      "  target_link_libraries(with_torch {0}::{0} ${{TORCH_LIBRARIES}})\nelse()\n"
      "  message(STATUS \"no LibTorch: with_torch is left out\")\nendif()\n",
      library.name);
}

std::string source_build(const Library& library, const std::vector<std::string>& flags) {
  return fmt::format(
      "# Builds lib{0}.so again, for the processor of this machine.\ncmake_minimum_required(VERSION 3.16)\n"
      "project({0} LANGUAGES CXX)\n\nadd_library({0} SHARED {0}.cpp)\n"
      "target_compile_options({0} PRIVATE {1})\ntarget_link_libraries({0} PRIVATE m pthread ${{CMAKE_DL_LIBS}})\n",
      library.name, fmt::join(flags, " "));
}

}  // namespace tilepilot::exporting
