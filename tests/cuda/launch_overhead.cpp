#include "tests/cuda/launch_overhead.h"

#include <algorithm>
#include <chrono>
#include <list>

#include "compiler/runtime/arguments.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/driver_functions.h"
#include "compiler/runtime/cuda/tensor_maps.h"
#include "compiler/targets/cuda/prelude.h"

namespace tilepilot::testing {
namespace {

using runtime::TensorView;
using runtime::cuda::Device;
using runtime::cuda::DeviceMemory;
using runtime::cuda::DriverFunctions;
using runtime::cuda::LaunchConfiguration;

constexpr int64_t kSymbol = 64;
// A burst stays far below the launches that a stream queues, so that neither side ever waits for the device.
constexpr int kRounds = 201, kBurst = 48;

struct Tensors {
  std::vector<DeviceMemory> memory;
  std::vector<runtime::Argument> arguments;
};

Result<Tensors> tensors_for(const ir::Program& program, const Device& device) {
  Tensors made;
  for (const auto& parameter : program.parameters) {
    const ir::Buffer& buffer = std::get<ir::Buffer>(parameter);
    TensorView view{nullptr, buffer->type, {}, std::vector<int64_t>(buffer->rank())};
    for (const ir::Expr& extent : buffer->shape) view.shape.push_back(ir::constant_int(extent).value_or(kSymbol));
    int64_t elements = 1;
    for (size_t axis = buffer->rank(); axis-- > 0; elements *= view.shape[axis]) view.strides[axis] = elements;
    made.memory.push_back(TRY(device.allocate(elements * buffer->type.bytes())));
    view.data = reinterpret_cast<void*>(made.memory.back().address());
    made.arguments.emplace_back(std::move(view));
  }
  return made;
}

// The same launches with nothing but the driver.
class BareLaunch {
 public:
  BareLaunch(std::shared_ptr<Device> device, std::shared_ptr<const DriverFunctions> driver)
      : device_(std::move(device)), driver_(std::move(driver)) {}
  ~BareLaunch() {
    if (module_ != nullptr) driver_->unload_module(module_);
  }
  BareLaunch(const BareLaunch&) = delete;

  Status prepare(const std::string& cubin, const targets::cuda::Launch& plan, runtime::BoundArguments bound) {
    bound_ = std::move(bound);
    TRY(driver_->check("cuModuleLoadData", driver_->load_module(&module_, cubin.data())));
    TRY(driver_->check("cuModuleGetFunction", driver_->get_function(&function_, module_, plan.function.c_str())));
    if (plan.shared_bytes > 0)
      TRY(driver_->check("cuFuncSetAttribute",
                         driver_->set_function_attribute(function_, runtime::cuda::kDynamicSharedBytes,
                                                         static_cast<int>(plan.shared_bytes))));
    for (size_t axis = 0; axis < 3; ++axis) {
      configuration_.grid[axis] =
          axis < plan.grid.size() ? static_cast<uint32_t>(runtime::evaluate(plan.grid[axis], bound_.values)) : 1;
      configuration_.threads[axis] = axis < plan.threads.size() ? static_cast<uint32_t>(plan.threads[axis]) : 1;
    }
    configuration_.shared_bytes = static_cast<uint32_t>(plan.shared_bytes);
    for (void*& buffer : bound_.buffers) parameters_.push_back(&buffer);
    for (int64_t& scalar : bound_.scalars) parameters_.push_back(&scalar);
    for (const targets::cuda::TensorMap& map : plan.maps) {
      const auto values = [&](const std::vector<ir::Expr>& all) {
        std::vector<uint64_t> known;
        for (const ir::Expr& one : all) known.push_back(static_cast<uint64_t>(runtime::evaluate(one, bound_.values)));
        return known;
      };
      maps_.push_back(TRY(device_->tensor_map(
          runtime::cuda::described(map, bound_.buffers[map.buffer], values(map.extents), values(map.strides)))));
      parameters_.push_back(&maps_.back());
    }
    return {};
  }

  Status launch() {
    const int status = driver_->launch(&configuration_, function_, parameters_.data(), nullptr);
    return status == runtime::cuda::kDriverSuccess ? Status() : driver_->check("cuLaunchKernelEx", status);
  }

 private:
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<const DriverFunctions> driver_;
  void *module_ = nullptr, *function_ = nullptr;
  runtime::BoundArguments bound_;
  LaunchConfiguration configuration_ = {};
  std::list<Device::TensorMap> maps_;
  std::vector<void*> parameters_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Microseconds a launch of one burst; the device has nothing to do when it begins.
template <class Launch>
Result<double> burst(const Device& device, const Launch& launch) {
  using Clock = std::chrono::steady_clock;
  TRY(device.wait(nullptr));
  const auto begin = Clock::now();
  for (int k = 0; k < kBurst; ++k) TRY(launch());
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kBurst;
}

}  // namespace

Result<LaunchOverhead> measure_launches(const ir::Program& program, const runtime::cuda::CudaOptions& options) {
  DiagnosticList warnings;
  const auto kernel = TRY(runtime::cuda::cuda_backend(options)->compile(program, warnings));
  const std::shared_ptr<Device> device = TRY(Device::open(options.device));
  TRY(device->use());
  const std::string target = TRY(runtime::cuda::architecture_of(device->capability()));
  using targets::gpu::Architecture;
  const auto code =
      TRY(targets::cuda::generate(program, target == "sm_80" ? Architecture::sm_80 : Architecture::sm_90a));
  const auto made =
      TRY(runtime::cuda::Nvrtc(options.nvrtc).compile(targets::cuda::prelude() + code.source, target, warnings));
  const Tensors tensors = TRY(tensors_for(program, *device));
  BareLaunch bare(device, TRY(DriverFunctions::open(options.device.library)));
  TRY(bare.prepare(made.cubin, code.launches.at(0), TRY(runtime::bind_arguments(program, tensors.arguments, {}))));
  const runtime::ParallelFor nothing;
  std::vector<double> ours, theirs, differences;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(TRY(burst(*device, [&] { return kernel->launch(tensors.arguments, nothing, {}); })));
    theirs.push_back(TRY(burst(*device, [&] { return bare.launch(); })));
    differences.push_back(ours.back() - theirs.back());
  }
  TRY(device->wait(nullptr));
  return LaunchOverhead{median(ours), median(theirs), median(differences), code.launches.at(0).maps.size()};
}

}  // namespace tilepilot::testing
