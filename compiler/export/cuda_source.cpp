#include "compiler/export/cuda_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "compiler/export/entry.h"
#include "compiler/export/usual_tensors.h"
#include "compiler/runtime/cuda/tensor_maps.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/prelude.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::embedded {
extern const char tilepilot_export_cuda[];
}

namespace tilepilot::exporting {
namespace {

using CudaCode = targets::cuda::GeneratedCode;
using targets::gpu::Architecture;

constexpr size_t kMostLaunches = 64;  // of runtime/cuda.h.in

// Code for one kind of tensors.
struct Version {
  std::string kind;  // "usual" or "any"
  CudaCode code;
  std::vector<std::string> cubins;  // one or two
};

// What code for a target is assembled for: what is for 8.0 runs on 8.x as it is, and on 9.0 once it is assembled for
// it.
std::vector<std::string> machines_of(const std::string& architecture) {
  if (architecture == "sm_80") return {"sm_80", "sm_90"};
  return {architecture};
}

// As the initialiser of an array of bytes. Compilers read strings faster than lists.
std::string byte_text(const std::string& bytes) {
  constexpr size_t kPerLine = 40;
  std::string text;
  for (size_t k = 0; k < bytes.size(); ++k) {
    if (k % kPerLine == 0) text += k == 0 ? "\n    \"" : "\"\n    \"";
    text += fmt::format("\\{:03o}", static_cast<unsigned char>(bytes[k]));
  }
  return text + "\"";
}

// As arrays of a launch's three axes.
std::string three(const std::vector<int64_t>& values) {
  std::vector<int64_t> all(values);
  all.resize(3, 1);
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

class KernelWriter {
 public:
  KernelWriter(const Library& library, const Kernel& kernel, const SourceMap& sources)
      : library_(library), kernel_(kernel), names_(host_names(kernel.function)), sources_(sources) {
    name_ = prefixed(library, kernel.function);
  }

  Result<std::string> text(const std::vector<Version>& versions) {
    std::string text = fmt::format("\nnamespace tp_{} {{\n", kernel_.function.name);
    for (const Version& version : versions) text += TRY(tables(version)) + TRY(launching(version));
    text += "}  // namespace\n" + TRY(size_function(library_, kernel_)) + TRY(entry_beginning(library_, kernel_));
    const bool has_other = versions.size() > 1;
    const std::string arguments = "tp_buffers, tp_scalars, stream" + extents(size_arguments(kernel_.function));
    text += fmt::format("  const bool tp_usual = {};\n", TRY(usual_condition(kernel_)));
    text += fmt::format("  if (tp_usual) return tp_{}::launch_usual({});\n", kernel_.function.name, arguments);
    if (has_other) return text + fmt::format("  return tp_{}::launch_any({});\n}}\n", kernel_.function.name, arguments);
    return text + fmt::format(
                      "  return exported::fail(exported::bad_argument, \"`{}`: tensors begin at multiples of 16 "
                      "bytes, and so do their rows\");\n}}\n",
                      name_);
  }

 private:
  const Library& library_;
  const Kernel& kernel_;
  const HostNames names_;
  const SourceMap& sources_;
  std::string name_;

  static std::string extents(const std::string& list) { return list.empty() || list == "void" ? "" : ", " + list; }

  // Machine code, launches, checks and descriptors of a version.
  Result<std::string> tables(const Version& version) {
    const std::string architecture = library_.target.substr(library_.target.find(':') + 1);
    std::string text, images;
    for (size_t k = 0; k < version.cubins.size(); ++k) {
      text += fmt::format("alignas(64) static const unsigned char image_{}_{}[] ={};\n", version.kind, k,
                          byte_text(version.cubins[k]));
      images += fmt::format("image_{}_{}, ", version.kind, k);
    }
    if (version.cubins.size() == 1) images += "nullptr";
    text += fmt::format("static const exported::Code code_{} = {{{{{}}}, \"{}\"}};\n", version.kind, images,
                        fmt::join(machines_of(architecture), " and "));
    std::string launches;
    for (size_t k = 0; k < version.code.launches.size(); ++k) {
      const targets::cuda::Launch& launch = version.code.launches[k];
      launches += fmt::format("    {{\"{}\", {}, {}, {}, {}, {}}},\n", launch.function, three(launch.threads),
                              three(launch.cluster), launch.shared_bytes, launch.cooperative, launch.persistent);
      std::vector<std::string> messages;
      for (const auto& check : launch.checks)
        messages.push_back(c_string(check_text(sources_, check.span, check.message)));
      messages.emplace_back("nullptr");
      text += fmt::format("static const char* const checks_{}_{}[] = {{{}}};\n", version.kind, k,
                          fmt::join(messages, ", "));
      for (size_t m = 0; m < launch.maps.size(); ++m) text += map_plan(version.kind, k, m, launch.maps[m]);
    }
    return text + fmt::format("static const exported::GpuLaunch launches_{}[] = {{\n{}}};\n", version.kind, launches);
  }

  static std::string map_plan(const std::string& kind, size_t launch, size_t number,
                              const targets::cuda::TensorMap& map) {
    const auto shape = runtime::cuda::described(map, nullptr, {}, {});
    return fmt::format("static const exported::MapPlan map_{}_{}_{} = {{{}, {}, {}, {{{}}}}};\n", kind, launch, number,
                       shape.type, shape.swizzle, map.extents.size(), fmt::join(map.box, ", "));
  }

  Result<std::string> launching(const Version& version) {
    const auto& launches = version.code.launches;
    const bool has_checks = version.code.source.find("fail_check(") != std::string::npos;
    std::string text = fmt::format(
        "static int launch_{0}(void** tp_buffers, int64_t* tp_scalars, void* stream{1}) {{\n"
        "  exported::Loaded* tp_loaded = nullptr;\n"
        "  int tp_status = exported::find_loaded(\"{2}\", code_{0}, launches_{0}, {3}, {4}, &tp_loaded);\n",
        version.kind, extents(size_parameter_list(kernel_.function)), name_, launches.size(), has_checks);
    text += "  if (tp_status != 0) return tp_status;\n";
    for (size_t k = 0; k < launches.size(); ++k) text += TRY(launch_text(version, k));
    return text + "  return 0;\n}\n";
  }

  Result<std::string> launch_text(const Version& version, size_t number) {
    const targets::cuda::Launch& launch = version.code.launches[number];
    std::vector<std::string> parameters, blocks;
    size_t buffers = kernel_.program.workspaces.size(), scalars = 0;
    for (const Argument& argument : kernel_.function.arguments)
      ++(argument.kind == Argument::Kind::tensor ? buffers : scalars);
    for (size_t k = 0; k < buffers; ++k) parameters.push_back(fmt::format("&tp_buffers[{}]", k));
    for (size_t k = 0; k < scalars; ++k) parameters.push_back(fmt::format("&tp_scalars[{}]", k));
    for (const ir::Expr& extent : launch.grid) blocks.push_back(TRY(names_.text(extent)));
    blocks.resize(3, "1");
    std::string text =
        fmt::format("  const int64_t tp_blocks_{0}[] = {{{1}}};\n  if (exported::has_blocks(tp_blocks_{0})) {{\n",
                    number, fmt::join(blocks, ", "));
    for (size_t m = 0; m < launch.maps.size(); ++m) {
      text += TRY(map_text(version.kind, number, m, launch.maps[m]));
      parameters.push_back(fmt::format("&tp_map_{}", m));
    }
    text += fmt::format("    void* tp_parameters[] = {{{}}};\n", fmt::join(parameters, ", "));
    return text + fmt::format(
                      "    tp_status = exported::run(\"{0}\", *tp_loaded, launches_{1}[{2}], {2}, tp_blocks_{2}, "
                      "tp_parameters, stream, checks_{1}_{2});\n    if (tp_status != 0) return tp_status;\n  }}\n",
                      name_, version.kind, number);
  }

  Result<std::string> map_text(const std::string& kind, size_t launch, size_t number,
                               const targets::cuda::TensorMap& map) {
    std::vector<std::string> sizes, steps;
    for (const ir::Expr& extent : map.extents)
      sizes.push_back(fmt::format("static_cast<uint64_t>(exported::most(0, {}))", TRY(names_.text(extent))));
    for (const ir::Expr& stride : map.strides)
      steps.push_back(fmt::format("static_cast<uint64_t>({})", TRY(names_.text(stride))));
    steps.emplace_back("0");  // so that there is one
    return fmt::format(
        "    uint64_t tp_extents_{0}[] = {{{1}}}, tp_strides_{0}[] = {{{2}}};\n    exported::TensorMap tp_map_{0};\n"
        "    tp_status = exported::encode(\"{3}\", *tp_loaded, map_{4}_{5}_{0}, tp_buffers[{6}], tp_extents_{0}, "
        "tp_strides_{0}, &tp_map_{0});\n    if (tp_status != 0) return tp_status;\n",
        number, fmt::join(sizes, ", "), fmt::join(steps, ", "), name_, kind, launch, map.buffer);
  }
};

}  // namespace

Result<CudaSource> cuda_source(const Library& library, const SourceMap& sources,
                               const runtime::cuda::NvrtcOptions& options, DiagnosticList& warnings) {
  const std::string name = library.target.substr(library.target.find(':') + 1);
  const Architecture architecture = name == "sm_90a" ? Architecture::sm_90a : Architecture::sm_80;
  runtime::cuda::Nvrtc nvrtc(options);
  CudaSource source{library_beginning(library) + "\n" + embedded::tilepilot_export_cuda, {}};
  const auto compiled = [&](const std::string& kind, const ir::Program& program) -> Result<Version> {
    Version version{kind, TRY(targets::cuda::generate(program, architecture)), {}};
    const std::string text = targets::cuda::prelude() + version.code.source;
    for (const std::string& machine : machines_of(name))
      version.cubins.push_back(TRY(nvrtc.compile(text, machine, warnings)).cubin);
    return version;
  };
  for (const Kernel& kernel : library.kernels) {
    std::vector<Version> versions;
    versions.push_back(TRY(compiled("usual", targets::gpu::for_usual_tensors(kernel.program))));
    for (Diagnostic& warning : versions[0].code.warnings) warnings.add(std::move(warning));
    // Some programs name instructions that no other tensors have.
    if (auto any = compiled("any", for_any_tensors(kernel.program)); any.ok()) versions.push_back(*std::move(any));
    if (versions[0].code.launches.size() > kMostLaunches)
      return make_error(DiagnosticKind::unsupported_tile_feature, kernel.program.span,
                        fmt::format("`{}` launches more than {} kernels", kernel.program.name, kMostLaunches),
                        "divide it");
    source.host += TRY(KernelWriter(library, kernel, sources).text(versions));
    source.device.emplace_back(kernel.function.name + ".cu", targets::cuda::prelude() + versions[0].code.source);
  }
  source.host += TRY(model_functions(library)) + library_functions(library);
  return source;
}

}  // namespace tilepilot::exporting
