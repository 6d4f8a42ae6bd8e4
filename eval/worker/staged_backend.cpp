#include "eval/worker/staged_backend.h"

#include <algorithm>
#include <map>

#include "eval/torch/gpu.h"

namespace tilepilot::eval {
namespace {

using runtime::cuda::DeviceMemory;

class StagedKernel final : public runtime::CompiledKernel {
 public:
  StagedKernel(std::shared_ptr<runtime::CompiledKernel> kernel, std::shared_ptr<const runtime::cuda::Device> gpu,
               const HostMemoryUse& use)
      : kernel_(std::move(kernel)), gpu_(std::move(gpu)), use_(use) {}

  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor& parallel_for,
                Span span) override {
    if (!use_.used) return kernel_->launch(arguments, parallel_for, span);
    std::map<void*, DeviceMemory> copies = TRY(copies_of(arguments));
    std::vector<runtime::Argument> moved = arguments;
    for (auto& argument : moved) {
      auto* view = std::get_if<runtime::TensorView>(&argument);
      if (view && copies.count(view->data) != 0) view->data = reinterpret_cast<void*>(copies[view->data].address());
    }
    TRY(kernel_->launch(moved, parallel_for, span));
    TRY(gpu_->wait(current_stream()));
    for (auto& [host, copy] : copies) TRY(gpu_->read(host, copy.address(), copy.size()));
    return {};
  }
  std::string take_printed() override { return kernel_->take_printed(); }
  void set_observer(runtime::LaunchObserver* observer) override { kernel_->set_observer(observer); }
  std::vector<runtime::LaunchFacts> facts() const override { return kernel_->facts(); }
  const ir::Program& program() const override { return kernel_->program(); }
  const std::string& source() const override { return kernel_->source(); }

 private:
  Result<std::map<void*, DeviceMemory>> copies_of(const std::vector<runtime::Argument>& arguments) const {
    std::map<void*, int64_t> sizes;
    for (auto& argument : arguments) {
      auto* view = std::get_if<runtime::TensorView>(&argument);
      if (view && bytes_spanned(*view) > 0) sizes[view->data] = std::max(sizes[view->data], bytes_spanned(*view));
    }
    std::map<void*, DeviceMemory> copies;
    for (auto& [data, bytes] : sizes) {
      copies[data] = TRY(gpu_->allocate(bytes));
      TRY(gpu_->write(copies[data].address(), data, bytes));
    }
    return copies;
  }

  std::shared_ptr<runtime::CompiledKernel> kernel_;
  std::shared_ptr<const runtime::cuda::Device> gpu_;
  const HostMemoryUse& use_;
};

class StagedBackend final : public runtime::KernelBackend {
 public:
  StagedBackend(std::unique_ptr<runtime::KernelBackend> backend, std::shared_ptr<const runtime::cuda::Device> gpu,
                const HostMemoryUse& use)
      : backend_(std::move(backend)), gpu_(std::move(gpu)), use_(use) {}

  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override {
    auto kernel = TRY(backend_->compile(program, warnings));
    return std::make_shared<StagedKernel>(std::move(kernel), gpu_, use_);
  }

 private:
  std::unique_ptr<runtime::KernelBackend> backend_;
  std::shared_ptr<const runtime::cuda::Device> gpu_;
  const HostMemoryUse& use_;
};

}  // namespace

int64_t bytes_spanned(const runtime::TensorView& view) {
  int64_t last = 0;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == 0) return 0;
    last += (view.shape[axis] - 1) * view.strides[axis];
  }
  return (last + 1) * view.type.bytes();
}

std::unique_ptr<runtime::KernelBackend> stage_host_memory(std::unique_ptr<runtime::KernelBackend> backend,
                                                          std::shared_ptr<const runtime::cuda::Device> gpu,
                                                          const HostMemoryUse& use) {
  return std::make_unique<StagedBackend>(std::move(backend), std::move(gpu), use);
}

}  // namespace tilepilot::eval
