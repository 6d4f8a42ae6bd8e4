#include "compiler/runtime/cuda/cuda_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "compiler/passes/grid_sync.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/tensor_maps.h"
#include "compiler/runtime/versions.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/prelude.h"

namespace tilepilot::runtime::cuda {
namespace {

using targets::cuda::GeneratedCode;
using targets::gpu::Architecture;

constexpr const char* kFailedCheckPlace = "failed_check_place";  // of the prelude

struct PreparedLaunch {
  Function function;
  targets::cuda::Launch plan;
  std::vector<TensorMaps> maps;
  int64_t resident = 0;       // blocks of a persistent one that run at once
  Span kernel = {};           // of the tile program
  Function::Shape last = {};  // of the last launch
};

// All of a launch but its grid.
Function::Shape shape_of_blocks(const targets::cuda::Launch& plan) {
  Function::Shape shape;
  std::copy(plan.threads.begin(), plan.threads.end(), shape.threads.begin());
  std::copy(plan.cluster.begin(), plan.cluster.end(), shape.cluster.begin());
  shape.shared_bytes = static_cast<uint32_t>(plan.shared_bytes);
  shape.cooperative = plan.cooperative;
  return shape;
}

// A program's code, on the device.
struct Version {
  std::string source;
  std::shared_ptr<Module> module;
  std::vector<PreparedLaunch> launches;
};

Architecture architecture_named(const std::string& name) {
  return name == "sm_90a" ? Architecture::sm_90a : Architecture::sm_80;
}

// Programs to machine code for a device, on the device.
class Assembler {
 public:
  Assembler(const CudaOptions& options, std::shared_ptr<Device> device, Architecture architecture, std::string machine)
      : nvrtc_(options.nvrtc),
        device_(std::move(device)),
        architecture_(architecture),
        machine_(std::move(machine)),
        sources_(options.sources) {}

  Device& device() const { return *device_; }

  Result<Version> assemble(const ir::Program& program, DiagnosticList& warnings) {
    GeneratedCode code = TRY(targets::cuda::generate(program, architecture_, {sources_}));
    const CompiledModule made = TRY(nvrtc_.compile(targets::cuda::prelude() + code.source, machine_, warnings));
    Version version{std::move(code.source), TRY(device_->load(made.cubin)), {}};
    for (Diagnostic& warning : code.warnings) warnings.add(std::move(warning));
    for (const targets::cuda::Launch& plan : code.launches) {
      const Function function = TRY(version.module->function(plan.function, plan.shared_bytes));
      version.launches.push_back({function, plan, std::vector<TensorMaps>(plan.maps.size())});
      version.launches.back().kernel = plan.kernel;
      if (plan.persistent)
        version.launches.back().resident = TRY(device_->resident_blocks(function, shape_of_blocks(plan)));
    }
    return version;
  }

 private:
  Nvrtc nvrtc_;
  const std::shared_ptr<Device> device_;
  const Architecture architecture_;
  const std::string machine_;
  const SourceMap* const sources_;
};

class CudaKernel : public CompiledKernel {
 public:
  CudaKernel(ir::Program program, std::shared_ptr<Assembler> assembler, const CudaOptions& options)
      : program_(std::move(program)),
        assembler_(std::move(assembler)),
        stream_(options.stream),
        waits_(options.waits),
        versions_(program_, [this](const auto& version, auto& warnings) { return assembled(version, warnings); }) {}

  Status prepare(DiagnosticList& warnings) {
    workspaces_.resize(program_.workspaces.size());
    return versions_.prepare(warnings);
  }

  Status launch(const std::vector<Argument>& arguments, const ParallelFor&, Span span) override {
    BoundArguments bound = TRY(bind_arguments(program_, arguments, span));
    TRY(device().use());
    Version& version = *TRY(versions_.of(bound));
    last_ = &version;
    TRY(told(add_workspaces(bound), span));
    // All of 8 bytes: addresses, then numbers.
    parameters_.clear();
    for (void*& buffer : bound.buffers) parameters_.push_back(&buffer);
    for (int64_t& scalar : bound.scalars) parameters_.push_back(&scalar);
    const Stream stream = stream_ ? stream_() : nullptr;
    const size_t words = parameters_.size();
    for (size_t number = 0; number < version.launches.size(); ++number) {
      PreparedLaunch& launch = version.launches[number];
      const auto shape = TRY(shape_of(launch, bound, span));
      if (shape.grid[0] == 0) continue;
      parameters_.resize(words);
      for (size_t k = 0; k < launch.maps.size(); ++k) {
        const targets::cuda::TensorMap& plan = launch.plan.maps[k];
        auto map = launch.maps[k].of(device(), plan, bound.buffers[plan.buffer], bound.values);
        if (!map) return told(std::move(map).take_error(), span);
        parameters_.push_back(*map);
      }
      launch.last = shape;
      if (observer_) observer_->begin_kernel(number);
      TRY(told(launch.function.launch(shape, parameters_.data(), stream), span));
      if (observer_) observer_->end_kernel(number);
    }
    return waits_ ? told(device().wait(stream), span) : Status();
  }

  void set_observer(LaunchObserver* observer) override { observer_ = observer; }
  std::vector<LaunchFacts> facts() const override {
    std::vector<LaunchFacts> all;
    if (last_ == nullptr) return all;
    for (const PreparedLaunch& launch : last_->launches) {
      const Function::Shape& shape = launch.last;
      LaunchFacts::Gpu gpu{launch.function.registers(), launch.function.local_bytes(), launch.function.static_shared(),
                           launch.plan.shared_bytes};
      std::copy(shape.grid.begin(), shape.grid.end(), gpu.grid.begin());
      std::copy(shape.threads.begin(), shape.threads.end(), gpu.threads.begin());
      std::copy(shape.cluster.begin(), shape.cluster.end(), gpu.cluster.begin());
      gpu.multiprocessors = device().multiprocessors();
      gpu.most_threads = device().threads_of_multiprocessor();
      if (const auto resident = device().resident_blocks(launch.function, shape); resident && gpu.multiprocessors > 0)
        gpu.resident_blocks = *resident / gpu.multiprocessors;
      all.push_back({launch.kernel, launch.function.name(), gpu.grid[0] * gpu.grid[1] * gpu.grid[2], false, {}, gpu});
    }
    return all;
  }
  const ir::Program& program() const override { return program_; }
  const std::string& source() const override { return versions_.usual().source; }

 private:
  ir::Program program_;
  std::shared_ptr<Assembler> assembler_;
  std::function<Stream()> stream_;
  bool waits_;
  Versions<Version> versions_;
  std::vector<DeviceMemory> workspaces_;  // kept between launches, which a stream runs in order
  DeviceMemory failed_check_;
  std::vector<void*> parameters_;  // of one launch, kept for its memory
  const Version* last_ = nullptr;  // of the last launch
  LaunchObserver* observer_ = nullptr;

  Result<Version> assembled(const ir::Program& program, DiagnosticList& warnings) {
    Version version = TRY(assembler_->assemble(program, warnings));
    TRY(watch_checks(version));
    return version;
  }

  Device& device() const { return assembler_->device(); }

  Status watch_checks(const Version& version) {
    if (version.source.find("fail_check(") == std::string::npos) return {};
    const DeviceAddress place = version.module->variable(kFailedCheckPlace);
    if (place == 0) return {};
    if (failed_check_.address() == 0) {
      failed_check_ = TRY(device().shared_with_host(sizeof(int64_t)));
      *static_cast<int64_t*>(failed_check_.host()) = 0;
    }
    const DeviceAddress address = failed_check_.address();
    return device().write(place, &address, sizeof(address));
  }

  Status add_workspaces(BoundArguments& bound) {
    for (size_t k = 0; k < workspaces_.size(); ++k) {
      const ir::BufferData& buffer = *program_.workspaces[k];
      int64_t bytes = buffer.type.bytes();
      for (const ir::Expr& extent : buffer.shape) bytes *= std::max<int64_t>(0, evaluate(extent, bound.values));
      if (workspaces_[k].address() == 0 || workspaces_[k].size() < bytes) {
        workspaces_[k] = {};  // releasing waits for launches that use it
        workspaces_[k] = TRY(device().allocate(bytes));
      }
      bound.buffers.push_back(reinterpret_cast<void*>(workspaces_[k].address()));
    }
    return {};
  }

  // A grid of 0 blocks if there is nothing to do.
  static Result<Function::Shape> shape_of(const PreparedLaunch& launch, const BoundArguments& bound, Span span) {
    constexpr int64_t kLargest[] = {2147483647, 65535, 65535};
    const targets::cuda::Launch& plan = launch.plan;
    Function::Shape shape = shape_of_blocks(plan);
    for (size_t axis = 0; axis < plan.grid.size(); ++axis) {
      const int64_t blocks = evaluate(plan.grid[axis], bound.values);
      if (blocks <= 0) {
        shape.grid[0] = 0;
        return shape;
      }
      if (blocks > kLargest[axis])
        return make_error(DiagnosticKind::bad_kernel_argument, span,
                          fmt::format("`{}` would be launched with {} blocks along axis {} of the grid; a GPU takes {}",
                                      plan.function, blocks, axis, kLargest[axis]));
      shape.grid[axis] = static_cast<uint32_t>(blocks);
      if (axis < plan.cluster.size() && blocks % plan.cluster[axis] != 0)
        return make_error(DiagnosticKind::bad_kernel_argument, span,
                          fmt::format("`{}` would be launched with {} blocks along axis {} of the grid, no multiple "
                                      "of a cluster's {}",
                                      plan.function, blocks, axis, plan.cluster[axis]));
    }
    // Where none fits the driver says so.
    if (plan.persistent)
      shape.grid[0] = std::min(shape.grid[0], std::max(static_cast<uint32_t>(launch.resident), shape.cluster[0]));
    return shape;
  }

  // With the place of the call, and the check that failed if one did.
  Status told(Status status, Span span) const {
    if (status.ok()) return status;
    Error error = std::move(status).take_error();
    if (!error->span.valid()) error->span = span;
    const auto* failed = static_cast<const int64_t*>(failed_check_.host());
    if (failed != nullptr && *failed != 0) error->note({}, fmt::format("check {} of the program failed", *failed));
    return error;
  }
};

class CudaBackend : public KernelBackend {
 public:
  explicit CudaBackend(CudaOptions options) : options_(std::move(options)) {}

  Result<std::shared_ptr<CompiledKernel>> compile(const ir::Program& program, DiagnosticList& warnings) override {
    auto kernel = compile_here(program, warnings);
    if (kernel) return kernel;
    Error error = std::move(kernel).take_error();
    if (!error->span.valid() && !program.kernels.empty()) error->span = program.kernels[0].span;
    return error;
  }

 private:
  const CudaOptions options_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<Assembler> assembler_;

  Result<std::shared_ptr<CompiledKernel>> compile_here(const ir::Program& program, DiagnosticList& warnings) {
    TRY(open());
    auto kernel = std::make_shared<CudaKernel>(TRY(passes::grid_sync(program)), assembler_, options_);
    TRY(kernel->prepare(warnings));
    return std::shared_ptr<CompiledKernel>(std::move(kernel));
  }

  Status open() {
    const std::lock_guard lock(mutex_);
    if (assembler_) return {};
    std::shared_ptr<Device> device = TRY(Device::open(options_.device));
    const std::string own = TRY(architecture_of(device->capability()));
    const auto [target, machine] = TRY(chosen(own, device->capability()));
    assembler_ = std::make_shared<Assembler>(options_, std::move(device), architecture_named(target), machine);
    return {};
  }

  // What code is generated for, and what it is assembled for. A device of 9.0 runs the code of sm_80 as well, but not
  // its machine code.
  Result<std::pair<std::string, std::string>> chosen(const std::string& own, int capability) const {
    const std::string& architecture = options_.architecture;
    if (architecture.empty() || architecture == own) return std::pair(own, own);
    TRY(check_runs(architecture, capability));
    return std::pair(architecture, std::string("sm_90"));
  }
};

}  // namespace

Result<std::string> compile_without_device(const ir::Program& program, const std::string& architecture,
                                           const NvrtcOptions& nvrtc, DiagnosticList& warnings) {
  const ir::Program usual = targets::gpu::for_usual_tensors(program);
  GeneratedCode code = TRY(targets::cuda::generate(usual, architecture_named(architecture)));
  TRY(Nvrtc(nvrtc).compile(targets::cuda::prelude() + code.source, architecture, warnings));
  for (Diagnostic& warning : code.warnings) warnings.add(std::move(warning));
  return std::move(code.source);
}

std::unique_ptr<KernelBackend> cuda_backend(CudaOptions options) {
  return std::make_unique<CudaBackend>(std::move(options));
}

}  // namespace tilepilot::runtime::cuda
