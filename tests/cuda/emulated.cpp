#include "tests/cuda/emulated.h"

#include <fmt/format.h>

#include "compiler/emulator/backend.h"
#include "compiler/runtime/arguments.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cuda/nvrtc_fixture.h"

namespace tilepilot::testing {
namespace {

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + after.size()))
    text.replace(at, before.size(), after);
  return text;
}

int64_t bytes_of(const ir::BufferData& buffer, const ir::VarRanges& values) {
  int64_t elements = 1;
  for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
    const int64_t extent = runtime::evaluate(buffer.shape[axis], values);
    if (buffer.strides.empty())
      elements *= std::max<int64_t>(0, extent);
    else
      elements += std::max<int64_t>(0, extent - 1) * runtime::evaluate(buffer.strides[axis], values);
  }
  return elements * buffer.type.bytes();
}

}  // namespace

Result<size_t> EmulatedBatch::add(const ir::Program& program, const SourceMap* sources, bool operation_counters) {
  targets::cuda::GeneratedCode code =
      TRY(targets::cuda::generate(program, architecture_, {sources, operation_counters}));
  for (targets::cuda::Launch& launch : code.launches) {
    const std::string apart = fmt::format("p{}_{}", programs_.size(), launch.function);
    code.source = replaced(code.source, " " + launch.function + "(", " " + apart + "(");
    launch.function = apart;
  }
  programs_.push_back({program, std::move(code), sources, operation_counters});
  return programs_.size() - 1;
}

void EmulatedBatch::plant(size_t number, const std::string& before, const std::string& after) {
  std::string& source = programs_[number].code.source;
  ASSERT_NE(source.find(before), std::string::npos) << before << "\n" << source;
  source = replaced(std::move(source), before, after);
  programs_[number].planted = true;
}

void EmulatedBatch::compile_for_gpus() const {
  static bool told = false;
  if (!nvrtc_missing().empty()) {
    if (!std::exchange(told, true)) fmt::print("not compiled for GPUs: {}\n", nvrtc_missing());
    return;
  }
  const char* target = architecture_ == targets::gpu::Architecture::sm_80 ? "sm_80" : "sm_90a";
  for (const Item& item : programs_) {
    if (item.planted || item.operation_counters) continue;
    DiagnosticList warnings;
    const auto made = nvrtc().compile(targets::cuda::prelude() + item.code.source, target, warnings);
    EXPECT_TRUE(made.ok()) << made.error().message
                           << (made.error().notes.empty() ? "" : "\n" + made.error().notes[0].message) << "\n"
                           << item.code.source;
  }
}

void EmulatedBatch::compile(bool optimise, bool for_gpus) {
  if (for_gpus) compile_for_gpus();
  std::string source;
  std::vector<std::string> functions;
  for (const Item& item : programs_) {
    source += item.code.source;
    for (const targets::cuda::Launch& launch : item.code.launches) functions.push_back(launch.function);
  }
  runtime::ToolchainOptions options = emulator::toolchain_options({});
  if (!optimise) options.extra_flags.emplace_back("-O0");
  runtime::Toolchain toolchain(options);
  DiagnosticList warnings;
  auto code = emulator::compile(source, functions, toolchain, warnings);
  ASSERT_TRUE(code.ok()) << code.error().message << (code.error().notes.empty() ? "" : code.error().notes[0].message)
                         << source;
  compiled_ = *code;
}

std::string EmulatedBatch::run(size_t number, const std::vector<runtime::Argument>& arguments,
                               const emulator::Options& options) {
  if (!compiled_) return "it does not compile";
  const Item& item = programs_[number];
  auto bound = runtime::bind_arguments(item.program, arguments, {});
  if (!bound.ok()) return bound.error().message;
  emulator::EmulatedArguments given;
  size_t next = 0;
  for (const auto& parameter : item.program.parameters) {
    const auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (buffer != nullptr)
      given.buffers.push_back({bound->buffers[next++], bytes_of(**buffer, bound->values), (*buffer)->name, true});
  }
  std::vector<std::vector<std::byte>> workspaces;
  for (const ir::Buffer& buffer : item.program.workspaces) {
    workspaces.emplace_back(static_cast<size_t>(bytes_of(*buffer, bound->values)));
    given.buffers.push_back(
        {workspaces.back().data(), static_cast<int64_t>(workspaces.back().size()), buffer->name, true});
  }
  given.scalars = bound->scalars;
  printed_.clear();
  defects_.clear();
  for (const targets::cuda::Launch& launch : item.code.launches) {
    const emulator::EmulatedLaunch one = emulator::emulated(launch, bound->values, item.sources);
    if (one.grid[0] * one.grid[1] * one.grid[2] <= 0) continue;
    given.maps.clear();
    for (const targets::cuda::TensorMap& map : launch.maps) given.maps.push_back(emulator::encoded(map, bound->values));
    const auto report = emulator::run(*compiled_, one, given, options);
    if (!report.ok()) return report.error().message;
    counters_ = report->counters;
    defects_ = report->defects;
    printed_ += report->printed;
    std::string defects;
    for (const emulator::Defect& defect : report->defects) {
      // A check of the program itself has its own words.
      if (defect.kind == emulator::DefectKind::failed_check)
        return launch.checks.at(static_cast<size_t>(defect.number - 1)).message;
      defects += fmt::format("{}: {} (threads {} and {}, {} times)\n", emulator::name_of(defect.kind), defect.message,
                             defect.first_thread, defect.second_thread, defect.count);
    }
    if (!defects.empty()) return defects;
  }
  return "";
}

}  // namespace tilepilot::testing
