#include "compiler/export/cpu_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/export/entry.h"
#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "compiler/targets/cpu/supported.h"

namespace tilepilot::embedded {
extern const char tilepilot_export_cpu[];
}

namespace tilepilot::exporting {
namespace {

using CpuCode = targets::cpu::GeneratedCode;

// The kernel's code, whose functions get names of their own, and the table of its launches.
std::string kernel_code(const Library& library, const Kernel& kernel, const CpuCode& code, const SourceMap& sources) {
  const std::string name = prefixed(library, kernel.function);
  std::string text = fmt::format("\nnamespace tp_{} {{\n", kernel.function.name), launches, checks;
  for (size_t k = 0; k < code.grids.size(); ++k) {
    text += fmt::format("#define tp_launch_{} tp_{}_launch_{}\n", k, name, k);
    std::vector<std::string> messages;
    for (const auto& check : code.checks[k])
      messages.push_back(c_string(check_text(sources, check.span, check.message)));
    messages.emplace_back("nullptr");
    checks += fmt::format("static const char* const checks_{}[] = {{{}}};\n", k, fmt::join(messages, ", "));
    launches += fmt::format("    {{\"{}\", tp_{}_launch_{}, {}, INT64_C({}), checks_{}}},\n", name, name, k,
                            code.scratch_bytes[k], code.operations[k], k);
  }
  text += code.source + "\n" + checks;
  text += fmt::format("static const exported::Launch launches[] = {{\n{}}};\n}}  // namespace\n", launches);
  for (size_t k = 0; k < code.grids.size(); ++k) text += fmt::format("#undef tp_launch_{}\n", k);
  return text;
}

Result<std::string> launching_function(const Library& library, const Kernel& kernel, const CpuCode& code) {
  const HostNames names = host_names(kernel.function);
  std::string text = TRY(entry_beginning(library, kernel));
  text += "  (void)stream;\n";
  text +=
      fmt::format("  if (const int tp_status = exported::check_processor(\"{}\"); tp_status != 0) return tp_status;\n",
                  prefixed(library, kernel.function));
  for (size_t k = 0; k < code.grids.size(); ++k) {
    std::string blocks;
    for (const ir::Expr& extent : code.grids[k])
      blocks += fmt::format("{}exported::most(0, {})", blocks.empty() ? "" : " * ", TRY(names.text(extent)));
    text += fmt::format(
        "  if (const int tp_status = exported::run(tp_{}::launches[{}], tp_buffers, tp_scalars, {}); tp_status != 0)\n"
        "    return tp_status;\n",
        kernel.function.name, k, blocks);
  }
  return text + "  return 0;\n}\n";
}

}  // namespace

Result<std::string> cpu_source(const Library& library, const SourceMap& sources, DiagnosticList& warnings) {
  std::string text = library_beginning(library) + "\n" + targets::cpu::prelude() + "\n";
  text += embedded::tilepilot_export_cpu;
  for (const Kernel& kernel : library.kernels) {
    TRY(targets::cpu::check_supported(kernel.program));
    targets::cpu::announce_ignored(kernel.program, warnings);
    const CpuCode code = TRY(targets::cpu::generate(TRY(passes::run_pipeline(kernel.program))));
    text += kernel_code(library, kernel, code, sources);
    text += TRY(size_function(library, kernel));
    text += TRY(launching_function(library, kernel, code));
  }
  return text + TRY(model_functions(library)) + library_functions(library);
}

}  // namespace tilepilot::exporting
