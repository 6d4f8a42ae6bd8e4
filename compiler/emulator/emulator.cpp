#include "compiler/emulator/emulator.h"

#include <fmt/format.h>

#include <mutex>

#include "compiler/emulator/machine.h"
#include "compiler/emulator/report/source_lines.h"
#include "compiler/emulator/wgmma_names.h"

namespace tilepilot::embedded {
extern const char tilepilot_cpu_types[], tilepilot_cpu_math[], tilepilot_cpu_atomics[], tilepilot_cuda_division[];
extern const char tilepilot_emulator_interface[], tilepilot_emulator_memory[], tilepilot_emulator_warps[],
    tilepilot_emulator_hopper[];
}  // namespace tilepilot::embedded

namespace tilepilot::emulator {

class EmulatedCode {
 public:
  EmulatedCode(std::shared_ptr<runtime::SharedLibrary> library, std::vector<SourceLine> sites)
      : library_(std::move(library)), sites_(std::move(sites)) {}

  Result<Report> run(const EmulatedLaunch& launch, const EmulatedArguments& arguments, const Options& options) {
    const std::lock_guard lock(mutex_);
    void* kernel = library_->symbol("tilepilot_emulate_" + launch.function);
    void* state = library_->symbol("tilepilot_emulated");
    if (kernel == nullptr || state == nullptr)
      return make_error(DiagnosticKind::load_failed, {},
                        fmt::format("the emulated code has no kernel `{}`", launch.function));
    std::vector<int64_t> words;
    for (const EmulatedBuffer& buffer : arguments.buffers) words.push_back(reinterpret_cast<int64_t>(buffer.data));
    words.insert(words.end(), arguments.scalars.begin(), arguments.scalars.end());
    for (const TensorMap& map : arguments.maps) words.push_back(reinterpret_cast<int64_t>(&map));
    Machine machine(launch, arguments, options, sites_, *static_cast<emulated::machine_state*>(state));
    if (!machine.valid())
      return make_error(DiagnosticKind::out_of_memory, {}, "no memory for the stacks of a block's threads");
    return std::move(machine).run(reinterpret_cast<void (*)(const int64_t*)>(kernel), words);
  }

 private:
  std::shared_ptr<runtime::SharedLibrary> library_;
  std::vector<SourceLine> sites_;
  std::mutex mutex_;  // the library knows one running launch
};

namespace {

const std::string& emulating_prelude() {
  static const std::string text = std::string(embedded::tilepilot_cpu_types) + embedded::tilepilot_cpu_math +
                                  embedded::tilepilot_cpu_atomics + embedded::tilepilot_emulator_interface +
                                  embedded::tilepilot_emulator_memory + embedded::tilepilot_emulator_warps +
                                  embedded::tilepilot_emulator_hopper + embedded::tilepilot_cuda_division;
  return text;
}

}  // namespace

runtime::ToolchainOptions toolchain_options(runtime::ToolchainOptions options) {
  // Compiled once for each run of a test: compiling must be quick. What rounds twice on a GPU rounds twice here.
  for (const char* flag : {"-O1", "-ffp-contract=off"}) options.extra_flags.emplace_back(flag);
  return options;
}

Result<std::shared_ptr<EmulatedCode>> compile(const std::string& source, const std::vector<std::string>& functions,
                                              runtime::Toolchain& toolchain, DiagnosticList& warnings) {
  MarkedSource marked = mark_lines(without_wgmma(source));
  std::string text = emulating_prelude() + wgmma_functions(marked.text) + marked.text;
  for (const std::string& function : functions)
    text += fmt::format(
        "extern \"C\" void tilepilot_emulate_{0}(const int64_t* words) {{ emulated::call({0}, words); }}\n", function);
  auto library = TRY(toolchain.load(text, warnings));
  return std::make_shared<EmulatedCode>(std::move(library), std::move(marked.sites));
}

Result<Report> run(EmulatedCode& code, const EmulatedLaunch& launch, const EmulatedArguments& arguments,
                   const Options& options) {
  return code.run(launch, arguments, options);
}

}  // namespace tilepilot::emulator
