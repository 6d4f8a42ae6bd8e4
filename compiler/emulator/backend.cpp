#include "compiler/emulator/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/emulator/report/diagnose.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/grid_sync.h"
#include "compiler/runtime/versions.h"

namespace tilepilot::emulator {
namespace {

using runtime::BoundArguments;
using targets::cuda::GeneratedCode;

// From the first byte that it may use to the last.
int64_t bytes_of_buffer(const ir::BufferData& buffer, const BoundArguments& bound) {
  int64_t elements = 1;
  for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
    const int64_t extent = std::max<int64_t>(0, runtime::evaluate(buffer.shape[axis], bound.values));
    if (buffer.strides.empty())
      elements *= extent;
    else
      elements = extent == 0 ? 0 : elements + (extent - 1) * runtime::evaluate(buffer.strides[axis], bound.values);
  }
  return elements * buffer.type.bytes();
}

SourceLine line_of(Span span, const SourceMap* sources) {
  if (sources == nullptr || !span.valid() || static_cast<size_t>(span.file) >= sources->size()) return {};
  return {std::string(sources->name(span.file)), sources->position(span.file, span.begin).line};
}

// A program's code, and how it runs here.
struct Version {
  GeneratedCode code;
  std::shared_ptr<EmulatedCode> emulated;
};

class Assembler {
 public:
  Assembler(targets::gpu::Architecture architecture, BackendOptions options)
      : architecture_(architecture),
        toolchain_(toolchain_options(std::move(options.toolchain))),
        generating_{options.sources, options.costs != nullptr} {}

  const SourceMap* sources() const { return generating_.sources; }

  Result<Version> assemble(const ir::Program& program, DiagnosticList& warnings) {
    GeneratedCode code = TRY(targets::cuda::generate(program, architecture_, generating_));
    for (Diagnostic& warning : code.warnings) warnings.add(std::move(warning));
    std::vector<std::string> functions;
    for (const targets::cuda::Launch& launch : code.launches) functions.push_back(launch.function);
    auto emulated = TRY(emulator::compile(code.source, functions, toolchain_, warnings));
    return Version{std::move(code), std::move(emulated)};
  }

 private:
  targets::gpu::Architecture architecture_;
  runtime::Toolchain toolchain_;
  targets::cuda::GenerateOptions generating_;
};

class EmulatedKernel : public runtime::CompiledKernel {
 public:
  EmulatedKernel(ir::Program program, std::shared_ptr<Assembler> assembler, const Options& checks,
                 std::shared_ptr<CostBook> costs)
      : program_(std::move(program)),
        checks_(checks),
        sources_(assembler->sources()),
        costs_(std::move(costs)),
        identity_(costs_ ? ir::to_text(program_) : ""),
        versions_(program_,
                  [assembler](const auto& version, auto& warnings) { return assembler->assemble(version, warnings); }) {
  }

  Status prepare(DiagnosticList& warnings) { return versions_.prepare(warnings); }

  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor&, Span span) override {
    const BoundArguments bound = TRY(runtime::bind_arguments(program_, arguments, span));
    const Version& version = *TRY(versions_.of(bound));
    std::vector<std::unique_ptr<std::byte[]>> workspaces;
    EmulatedArguments given{{}, bound.scalars};
    for (const auto& parameter : program_.parameters) {
      const auto* buffer = std::get_if<ir::Buffer>(&parameter);
      if (buffer == nullptr) continue;
      given.buffers.push_back(
          {bound.buffers[given.buffers.size()], bytes_of_buffer(**buffer, bound), (*buffer)->name, true});
    }
    for (const ir::Buffer& buffer : program_.workspaces) {
      const int64_t bytes = bytes_of_buffer(*buffer, bound);
      workspaces.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes)));
      given.buffers.push_back({workspaces.back().get(), bytes, buffer->name, false});
    }
    last_ = &version;
    for (size_t number = 0; number < version.code.launches.size(); ++number) {
      const targets::cuda::Launch& one = version.code.launches[number];
      if (observer_) observer_->begin_kernel(number);
      TRY(launch_one(*version.emulated, one, given, bound, span));
      if (observer_) observer_->end_kernel(number);
      for (EmulatedBuffer& buffer : given.buffers) buffer.written = true;  // by the launch before
    }
    return {};
  }

  std::string take_printed() override { return std::exchange(printed_, {}); }
  void set_observer(runtime::LaunchObserver* observer) override { observer_ = observer; }
  std::vector<runtime::LaunchFacts> facts() const override {
    std::vector<runtime::LaunchFacts> all;
    if (last_ == nullptr) return all;
    for (const targets::cuda::Launch& launch : last_->code.launches) all.push_back({launch.kernel, launch.function});
    return all;
  }
  const ir::Program& program() const override { return program_; }
  const std::string& source() const override { return versions_.usual().code.source; }

 private:
  ir::Program program_;
  Options checks_;
  const SourceMap* sources_;
  std::shared_ptr<CostBook> costs_;
  std::string identity_;  // in the book
  runtime::Versions<Version> versions_;
  std::string printed_;
  const Version* last_ = nullptr;  // of the last launch
  runtime::LaunchObserver* observer_ = nullptr;

  Status launch_one(EmulatedCode& code, const targets::cuda::Launch& one, EmulatedArguments& given,
                    const BoundArguments& bound, Span span) {
    const EmulatedLaunch launch = emulated(one, bound.values, sources_);
    given.maps.clear();
    for (const targets::cuda::TensorMap& map : one.maps) given.maps.push_back(encoded(map, bound.values));
    const Report report = TRY(run(code, launch, given, checks_));
    printed_ += report.printed;
    if (costs_) costs_->add(program_.name, identity_, report.counters);
    if (report.defects.empty()) return {};
    const Defect& last = report.defects.back();  // a failed check ends the launch
    if (last.kind != DefectKind::failed_check) return error_of(report, program_.name, span);
    const targets::c::RuntimeCheck& check = one.checks[static_cast<size_t>(last.number - 1)];
    const int64_t block = last.block[0] + launch.grid[0] * (last.block[1] + launch.grid[1] * last.block[2]);
    Error error = make_error(check.kind, check.span, fmt::format("{} (block {})", check.message, block));
    error->note(span, "the kernel is launched here");
    return error;
  }
};

class EmulatorBackend : public runtime::KernelBackend {
 public:
  EmulatorBackend(targets::gpu::Architecture architecture, BackendOptions options)
      : checks_(options.checks),
        costs_(options.costs),
        assembler_(std::make_shared<Assembler>(architecture, std::move(options))) {}

  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override {
    auto kernel = std::make_shared<EmulatedKernel>(TRY(passes::grid_sync(program)), assembler_, checks_, costs_);
    TRY(kernel->prepare(warnings));
    return kernel;
  }

 private:
  Options checks_;
  std::shared_ptr<CostBook> costs_;
  std::shared_ptr<Assembler> assembler_;
};

}  // namespace

EmulatedLaunch emulated(const targets::cuda::Launch& launch, const ir::VarRanges& values, const SourceMap* sources) {
  EmulatedLaunch result{launch.function};
  result.shared_bytes = launch.shared_bytes;
  result.cooperative = launch.cooperative;
  result.local_bytes = launch.local_bytes;
  for (size_t axis = 0; axis < launch.grid.size(); ++axis)
    result.grid[axis] = std::max<int64_t>(0, runtime::evaluate(launch.grid[axis], values));
  std::copy(launch.threads.begin(), launch.threads.end(), result.threads.begin());
  std::copy(launch.cluster.begin(), launch.cluster.end(), result.cluster.begin());
  for (const targets::c::OperationCounter& counter : launch.operation_counters) {
    result.operation_counters.emplace_back();
    for (const targets::c::OperationCounter::Part& part : counter.parts)
      result.operation_counters.back().emplace_back(line_of(part.span, sources), part.operations);
  }
  if (launch.persistent) {
    const int64_t unit = result.cluster[0], clusters = result.grid[0] / unit;
    result.grid[0] = (clusters * 2 + 2) / 3 * unit;
  }
  return result;
}

TensorMap encoded(const targets::cuda::TensorMap& map, const ir::VarRanges& values) {
  TensorMap result{};
  result.buffer = static_cast<int64_t>(map.buffer);
  result.rank = static_cast<int32_t>(map.extents.size());
  result.element_bytes = static_cast<int32_t>(map.type.bytes());
  result.swizzle = static_cast<int32_t>(map.swizzle);
  result.strides[0] = map.type.bytes();
  for (size_t axis = 0; axis < map.extents.size(); ++axis) {
    result.extents[axis] = runtime::evaluate(map.extents[axis], values);
    result.box[axis] = static_cast<int32_t>(map.box[axis]);
    if (axis > 0) result.strides[axis] = runtime::evaluate(map.strides[axis - 1], values);
  }
  return result;
}

std::unique_ptr<runtime::KernelBackend> emulator_backend(targets::gpu::Architecture architecture,
                                                         BackendOptions options) {
  return std::make_unique<EmulatorBackend>(architecture, std::move(options));
}

}  // namespace tilepilot::emulator
