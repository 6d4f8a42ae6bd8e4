#include "compiler/export/package.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/export/cpu_source.h"
#include "compiler/export/cuda_source.h"
#include "compiler/export/examples.h"
#include "compiler/export/header.h"
#include "compiler/export/package_texts.h"
#include "compiler/export/signature.h"
#include "compiler/runtime/compile_library.h"

namespace tilepilot::exporting {
namespace {

// What libraries that people link to need beside the flags of kernels.
std::vector<std::string> compile_flags() { return {"-fvisibility=hidden", "-pthread"}; }
std::vector<std::string> link_flags(const Library& library) {
  return {fmt::format("-Wl,-soname,lib{}.so", library.name), "-Wl,--as-needed", "-Wl,-z,defs",
          "-Wl,--push-state,--no-as-needed,-ldl,--pop-state"};
}

std::vector<std::string> build_flags() {
  std::vector<std::string> flags = runtime::library_flags(compile_flags());
  std::erase_if(flags, [](const std::string& flag) { return flag == "-shared" || flag == "-pipe"; });
  return flags;
}

}  // namespace

Result<PackageFiles> package_files(const Library& library, const SourceMap& sources, const PackageOptions& options,
                                   DiagnosticList& warnings) {
  CudaSource source;
  if (library.is_gpu())
    source = TRY(cuda_source(library, sources, options.nvrtc, warnings));
  else
    source.host = TRY(cpu_source(library, sources, warnings));
  runtime::ToolchainOptions toolchain = options.toolchain;
  for (const auto& flags : {compile_flags(), link_flags(library)})
    toolchain.extra_flags.insert(toolchain.extra_flags.end(), flags.begin(), flags.end());
  std::string object = TRY(runtime::compile_library(toolchain, source.host, -1, warnings));
  const std::string compiler = runtime::Toolchain(options.toolchain).version();
  PackageFiles files = {{library.name + ".h", header_text(library)},
                        {fmt::format("lib{}.so", library.name), std::move(object)},
                        {package_config_name(library), package_config(library)},
                        {"README.md", readme_text(library, compiler)},
                        {"examples/CMakeLists.txt", examples_build(library)},
                        {"examples/plain.cpp", plain_example(library)},
                        {"examples/torch.cpp", torch_example(library)},
                        {"source/CMakeLists.txt", source_build(library, build_flags())},
                        {fmt::format("source/{}.cpp", library.name), std::move(source.host)}};
  for (auto& [name, text] : source.device) files.emplace_back("source/" + name, std::move(text));
  return files;
}

nlohmann::json description_of(const Library& library, const std::filesystem::path& folder) {
  nlohmann::json functions = nlohmann::json::array();
  const auto add = [&](const Function& function) {
    functions.push_back({{"name", prefixed(library, function)}, {"comment", function.comment}});
    for (const Argument& argument : function.arguments) functions.back()["arguments"].push_back(described(argument));
  };
  for (const Kernel& kernel : library.kernels) add(kernel.function);
  if (library.model) add(library.model->function);
  return {{"ok", true},
          {"name", library.name},
          {"folder", folder.string()},
          {"target", library.target},
          {"functions", functions},
          {"left_out", library.notes}};
}

std::string summary_of(const Library& library, const std::filesystem::path& folder) {
  std::string text;
  for (const Kernel& kernel : library.kernels)
    text += fmt::format("{}: {}\n", prefixed(library, kernel.function), kernel.function.comment);
  if (library.model)
    text += fmt::format("{}: {}\n", prefixed(library, library.model->function), library.model->function.comment);
  for (const std::string& note : library.notes) text += fmt::format("left out: {}\n", note);
  return text + fmt::format("wrote {} and lib{}.so for {} into {}", library.name + ".h", library.name, library.target,
                            folder.string());
}

}  // namespace tilepilot::exporting
