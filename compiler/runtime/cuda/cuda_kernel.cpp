#include "compiler/runtime/cuda/cuda_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "compiler/runtime/arguments.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/prelude.h"

namespace tilepilot::runtime::cuda {
namespace {

using targets::cuda::Architecture;
using targets::cuda::GeneratedCode;

constexpr const char* kFailedCheckPlace = "failed_check_place";  // of the prelude

// A tensor's description, and what it was made for.
struct EncodedMap {
  void* data = nullptr;
  std::vector<uint64_t> extents;
  Device::TensorMap map;
};

struct PreparedLaunch {
  Function function;
  targets::cuda::Launch plan;
  std::vector<EncodedMap> maps;
  int64_t resident = 0;  // blocks of a persistent one that run at once
};

// The driver's numbers (CUtensorMapDataType) of words of so many bytes, and of swizzles (CUtensorMapSwizzle).
int word_number(int64_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 4; }
int swizzle_number(int64_t span) { return span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0; }

class CudaKernel : public CompiledKernel {
 public:
  CudaKernel(ir::Program program, std::string source, std::shared_ptr<Device> device, const CudaOptions& options)
      : program_(std::move(program)),
        source_(std::move(source)),
        device_(std::move(device)),
        stream_(options.stream),
        waits_(options.waits) {}

  Status prepare(const std::string& cubin, const std::vector<targets::cuda::Launch>& launches) {
    module_ = TRY(device_->load(cubin));
    for (const targets::cuda::Launch& plan : launches) {
      const Function function = TRY(module_->function(plan.function, plan.shared_bytes));
      launches_.push_back({function, plan, std::vector<EncodedMap>(plan.maps.size())});
      if (plan.persistent)
        launches_.back().resident = TRY(device_->resident_blocks(function, plan.threads[0], plan.shared_bytes));
    }
    workspaces_.resize(program_.workspaces.size());
    return source_.find("fail_check(") == std::string::npos ? Status() : watch_checks();
  }

  Status launch(const std::vector<Argument>& arguments, const ParallelFor&, Span span) override {
    BoundArguments bound = TRY(bind_arguments(program_, arguments, span));
    for (const PreparedLaunch& launch : launches_) TRY(check_alignment(program_, bound, launch.plan.alignments, span));
    TRY(device_->use());
    TRY(told(add_workspaces(bound), span));
    // All of 8 bytes: addresses, then numbers.
    std::vector<void*> parameters;
    parameters.reserve(bound.buffers.size() + bound.scalars.size());
    for (void*& buffer : bound.buffers) parameters.push_back(&buffer);
    for (int64_t& scalar : bound.scalars) parameters.push_back(&scalar);
    const Stream stream = stream_ ? stream_() : nullptr;
    const size_t words = parameters.size();
    for (PreparedLaunch& launch : launches_) {
      const auto shape = TRY(shape_of(launch, bound, span));
      if (shape.grid[0] == 0) continue;
      parameters.resize(words);
      for (size_t k = 0; k < launch.maps.size(); ++k) {
        TRY(encode(launch.plan.maps[k], bound, launch.maps[k], span));
        parameters.push_back(&launch.maps[k].map);
      }
      TRY(told(launch.function.launch(shape, parameters.data(), stream), span));
    }
    return waits_ ? told(device_->wait(stream), span) : Status();
  }

  const ir::Program& program() const override { return program_; }
  const std::string& source() const override { return source_; }

 private:
  ir::Program program_;
  std::string source_;
  std::shared_ptr<Device> device_;
  std::function<Stream()> stream_;
  bool waits_;
  std::shared_ptr<Module> module_;
  std::vector<PreparedLaunch> launches_;
  std::vector<DeviceMemory> workspaces_;  // kept between launches, which a stream runs in order
  DeviceMemory failed_check_;

  Status watch_checks() {
    const DeviceAddress place = module_->variable(kFailedCheckPlace);
    if (place == 0) return {};
    failed_check_ = TRY(device_->shared_with_host(sizeof(int64_t)));
    *static_cast<int64_t*>(failed_check_.host()) = 0;
    const DeviceAddress address = failed_check_.address();
    return device_->write(place, &address, sizeof(address));
  }

  Status add_workspaces(BoundArguments& bound) {
    for (size_t k = 0; k < workspaces_.size(); ++k) {
      const ir::BufferData& buffer = *program_.workspaces[k];
      int64_t bytes = buffer.type.bytes();
      for (const ir::Expr& extent : buffer.shape) bytes *= std::max<int64_t>(0, evaluate(extent, bound.values));
      if (workspaces_[k].address() == 0 || workspaces_[k].size() < bytes) {
        workspaces_[k] = {};  // releasing waits for launches that use it
        workspaces_[k] = TRY(device_->allocate(bytes));
      }
      bound.buffers.push_back(reinterpret_cast<void*>(workspaces_[k].address()));
    }
    return {};
  }

  // Made again only for another tensor.
  Status encode(const targets::cuda::TensorMap& plan, const BoundArguments& bound, EncodedMap& encoded,
                Span span) const {
    void* data = bound.buffers[plan.buffer];
    std::vector<uint64_t> extents;
    for (const ir::Expr& extent : plan.extents)
      extents.push_back(static_cast<uint64_t>(std::max<int64_t>(1, evaluate(extent, bound.values))));
    if (encoded.data == data && encoded.extents == extents) return {};
    Device::TensorShape shape{reinterpret_cast<DeviceAddress>(data),
                              word_number(plan.type.bytes()),
                              swizzle_number(plan.swizzle),
                              extents,
                              {},
                              {}};
    for (const int64_t stride : plan.strides) shape.strides.push_back(static_cast<uint64_t>(stride));
    for (const int64_t extent : plan.box) shape.box.push_back(static_cast<uint32_t>(extent));
    auto map = device_->tensor_map(shape);
    if (!map) return told(std::move(map).take_error(), span);
    encoded.map = *map;
    encoded.data = data;
    encoded.extents = std::move(extents);
    return {};
  }

  // A grid of 0 blocks if there is nothing to do.
  static Result<Function::Shape> shape_of(const PreparedLaunch& launch, const BoundArguments& bound, Span span) {
    constexpr int64_t kLargest[] = {2147483647, 65535, 65535};
    Function::Shape shape;
    const targets::cuda::Launch& plan = launch.plan;
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
    }
    for (size_t axis = 0; axis < plan.threads.size(); ++axis)
      shape.threads[axis] = static_cast<uint32_t>(plan.threads[axis]);
    shape.shared_bytes = static_cast<uint32_t>(plan.shared_bytes);
    shape.cooperative = plan.cooperative;
    if (plan.persistent)
      shape.grid[0] = std::min(shape.grid[0], static_cast<uint32_t>(std::max<int64_t>(1, launch.resident)));
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
  explicit CudaBackend(CudaOptions options) : options_(std::move(options)), nvrtc_(options_.nvrtc) {}

  Result<std::shared_ptr<CompiledKernel>> compile(const ir::Program& program, DiagnosticList& warnings) override {
    auto kernel = compile_here(program, warnings);
    if (kernel) return kernel;
    Error error = std::move(kernel).take_error();
    if (!error->span.valid() && !program.kernels.empty()) error->span = program.kernels[0].span;
    return error;
  }

 private:
  CudaOptions options_;
  Nvrtc nvrtc_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<Device> device_;
  std::string target_;   // what code is generated for
  std::string machine_;  // what it is assembled for

  Result<std::shared_ptr<CompiledKernel>> compile_here(const ir::Program& program, DiagnosticList& warnings) {
    TRY(open());
    const Architecture architecture = target_ == "sm_90a" ? Architecture::sm_90a : Architecture::sm_80;
    GeneratedCode code = TRY(targets::cuda::generate(program, architecture, options_.sources));
    for (Diagnostic& warning : code.warnings) warnings.add(std::move(warning));
    const CompiledModule made = TRY(nvrtc_.compile(targets::cuda::prelude() + code.source, machine_, warnings));
    auto kernel = std::make_shared<CudaKernel>(program, std::move(code.source), device_, options_);
    TRY(kernel->prepare(made.cubin, code.launches));
    return std::shared_ptr<CompiledKernel>(std::move(kernel));
  }

  Status open() {
    const std::lock_guard lock(mutex_);
    if (device_) return {};
    std::shared_ptr<Device> device = TRY(Device::open(options_.device));
    target_ = machine_ = TRY(architecture_of(device->capability()));
    if (!options_.architecture.empty()) TRY(choose(options_.architecture, device->capability()));
    device_ = std::move(device);
    return {};
  }

  // A device of 9.0 runs the code of sm_80 as well, but not its machine code.
  Status choose(const std::string& architecture, int capability) {
    TRY(check_runs(architecture, capability));
    if (architecture == target_) return {};
    target_ = architecture;
    machine_ = "sm_90";
    return {};
  }
};

}  // namespace

std::unique_ptr<KernelBackend> cuda_backend(CudaOptions options) {
  return std::make_unique<CudaBackend>(std::move(options));
}

}  // namespace tilepilot::runtime::cuda
