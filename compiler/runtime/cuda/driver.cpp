#include "compiler/runtime/cuda/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/runtime/cuda/driver_functions.h"

namespace tilepilot::runtime::cuda {

Result<std::shared_ptr<Device>> Device::open(const DeviceOptions& options) {
  const std::shared_ptr<Device> device(new Device);
  device->driver_ = TRY(DriverFunctions::open(options.library));
  device->number_ = options.number;
  TRY(device->describe());
  return device;
}

Status Device::describe() {
  const DriverFunctions& call = *driver_;
  int count = 0;
  TRY(call.check("cuDeviceGetCount", call.device_count(&count)));
  if (number_ < 0 || number_ >= count)
    return make_error(DiagnosticKind::driver_missing, {},
                      fmt::format("there is no GPU number {}: this machine has {}", number_, count));
  TRY(call.check("cuDeviceGet", call.device_get(&handle_, number_)));
  char name[256] = {};
  TRY(call.check("cuDeviceGetName", call.device_name(name, sizeof(name) - 1, handle_)));
  name_ = name;
  TRY(call.check("cuDriverGetVersion", call.version(&version_)));
  int major = 0, minor = 0, shared = 0;
  TRY(call.check("cuDeviceGetAttribute", call.device_attribute(&major, kCapabilityMajor, handle_)));
  TRY(call.check("cuDeviceGetAttribute", call.device_attribute(&minor, kCapabilityMinor, handle_)));
  TRY(call.check("cuDeviceGetAttribute", call.device_attribute(&shared, kSharedBytesOfBlock, handle_)));
  TRY(call.check("cuDeviceGetAttribute", call.device_attribute(&multiprocessors_, kMultiprocessorCount, handle_)));
  capability_ = 10 * major + minor;
  shared_bytes_ = shared;
  TRY(call.check("cuDevicePrimaryCtxRetain", call.retain_context(&context_, handle_)));
  return use();
}

Device::~Device() {
  if (context_ != nullptr) driver_->release_context(handle_);
}

std::string Device::driver_version() const { return fmt::format("{}.{}", version_ / 1000, version_ % 1000 / 10); }

int Device::threads_of_multiprocessor() const {
  int threads = 0;
  return driver_->device_attribute(&threads, kThreadsOfMultiprocessor, handle_) == kDriverSuccess ? threads : 0;
}

std::string Device::bus_id() const {
  char text[32] = {};
  return driver_->bus_id(text, sizeof(text) - 1, handle_) == kDriverSuccess ? text : "";
}

Status Device::use() const {
  void* current = nullptr;
  if (driver_->get_context(&current) == kDriverSuccess && current == context_) return {};
  return driver_->check("cuCtxSetCurrent", driver_->set_context(context_));
}

Result<std::shared_ptr<Module>> Device::load(const std::string& cubin) const {
  TRY(use());
  void* handle = nullptr;
  const int status = driver_->load_module(&handle, cubin.data());
  if (status == kDriverOutOfMemory) return driver_->failed("cuModuleLoadData", status, DiagnosticKind::out_of_memory);
  if (status != kDriverSuccess) {
    Error error = driver_->failed("cuModuleLoadData", status, DiagnosticKind::load_failed);
    error->note(
        {}, fmt::format("the device is {} (sm_{}), the driver is for CUDA {}", name_, capability_, driver_version()));
    return error;
  }
  return std::shared_ptr<Module>(new Module(shared_from_this(), handle));
}

Module::~Module() {
  if (device_->use().ok()) device_->driver_->unload_module(handle_);
}

Result<Function> Module::function(const std::string& name, int64_t shared_bytes) const {
  const DriverFunctions& call = *device_->driver_;
  Function function;
  function.driver_ = device_->driver_;
  function.name_ = name;
  TRY(device_->use());
  if (shared_bytes > device_->shared_bytes())
    return make_error(DiagnosticKind::load_failed, {},
                      fmt::format("`{}` needs {} bytes of shared memory a block; {} has {}", name, shared_bytes,
                                  device_->name(), device_->shared_bytes()));
  if (const int status = call.get_function(&function.handle_, handle_, name.c_str()); status != kDriverSuccess)
    return call.failed("cuModuleGetFunction", status, DiagnosticKind::load_failed);
  constexpr int64_t kFreelyGiven = 48 * 1024;
  if (shared_bytes > kFreelyGiven) {
    const int status =
        call.set_function_attribute(function.handle_, kDynamicSharedBytes, static_cast<int>(shared_bytes));
    if (status != kDriverSuccess) return call.failed("cuFuncSetAttribute", status, DiagnosticKind::load_failed);
  }
  call.get_function_attribute(&function.registers_, kRegisterCount, function.handle_);
  call.get_function_attribute(&function.local_bytes_, kLocalBytes, function.handle_);
  call.get_function_attribute(&function.static_shared_, kStaticSharedBytes, function.handle_);
  return function;
}

DeviceAddress Module::variable(const std::string& name) const {
  uint64_t address = 0;
  size_t bytes = 0;
  const bool found =
      device_->use().ok() && device_->driver_->get_variable(&address, &bytes, handle_, name.c_str()) == kDriverSuccess;
  return found ? address : 0;
}

namespace {

// A launch as the driver wants it.
class Configured {
 public:
  Configured(const Function::Shape& shape, Stream stream)
      : configuration_{{shape.grid[0], shape.grid[1], shape.grid[2]},
                       {shape.threads[0], shape.threads[1], shape.threads[2]},
                       shape.shared_bytes,
                       stream,
                       attributes_,
                       0} {
    if (shape.cooperative) next(LaunchAttribute::cooperative).flag = 1;
    if (!shape.has_clusters()) return;
    auto& value = next(LaunchAttribute::cluster);
    for (int axis = 0; axis < 3; ++axis) value.cluster_shape[axis] = shape.cluster[axis];
  }
  Configured(const Configured&) = delete;

  const LaunchConfiguration* get() const { return &configuration_; }

 private:
  LaunchAttribute attributes_[2];
  LaunchConfiguration configuration_;

  decltype(LaunchAttribute::value)& next(LaunchAttribute::Kind kind) {
    attributes_[configuration_.attribute_count].kind = kind;
    return attributes_[configuration_.attribute_count++].value;
  }
};

}  // namespace

Status Function::launch(const Shape& shape, void** parameters, Stream stream) const {
  const Configured configured(shape, stream);
  const int status = driver_->launch(configured.get(), handle_, parameters, nullptr);
  if (status == kDriverSuccess) return {};
  Error error = std::move(driver_->check("cuLaunchKernelEx", status)).take_error();
  error->note({}, fmt::format("`{}`: grid {} x {} x {}, {} x {} x {} threads, {} bytes of shared memory, {} registers",
                              name_, shape.grid[0], shape.grid[1], shape.grid[2], shape.threads[0], shape.threads[1],
                              shape.threads[2], shape.shared_bytes, registers_));
  return error;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  std::swap(host_, other.host_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (!device_ || !device_->use().ok()) return;
  if (host_ != nullptr)
    device_->driver_->release_host(host_);
  else if (address_ != 0)
    device_->driver_->release(address_);
}

Result<int64_t> Device::free_memory() const {
  TRY(use());
  size_t free = 0, all = 0;
  TRY(driver_->check("cuMemGetInfo", driver_->memory(&free, &all)));
  return static_cast<int64_t>(free);
}

Result<DeviceMemory> Device::allocate(int64_t bytes) const {
  TRY(use());
  DeviceMemory memory;
  const int status = driver_->allocate(&memory.address_, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (status == kDriverOutOfMemory)
    return make_error(DiagnosticKind::out_of_memory, {}, fmt::format("the GPU has no {} bytes of memory left", bytes));
  TRY(driver_->check("cuMemAlloc", status));
  memory.device_ = shared_from_this();
  memory.size_ = bytes;
  return memory;
}

Result<DeviceMemory> Device::shared_with_host(int64_t bytes) const {
  constexpr unsigned kMapped = 2;
  TRY(use());
  DeviceMemory memory;
  const int status = driver_->allocate_host(&memory.host_, static_cast<size_t>(bytes), kMapped);
  if (status == kDriverOutOfMemory)
    return make_error(DiagnosticKind::out_of_memory, {}, fmt::format("the host has no {} bytes for the GPU", bytes));
  TRY(driver_->check("cuMemHostAlloc", status));
  memory.device_ = shared_from_this();
  memory.size_ = bytes;
  TRY(driver_->check("cuMemHostGetDevicePointer", driver_->address_of_host(&memory.address_, memory.host_, 0)));
  return memory;
}

Status Device::write(DeviceAddress to, const void* from, int64_t bytes) const {
  TRY(use());
  if (bytes == 0) return {};
  return driver_->check("cuMemcpyHtoD", driver_->write(to, from, static_cast<size_t>(bytes)));
}

Status Device::read(void* to, DeviceAddress from, int64_t bytes) const {
  TRY(use());
  if (bytes == 0) return {};
  return driver_->check("cuMemcpyDtoH", driver_->read(to, from, static_cast<size_t>(bytes)));
}

Status Device::wait(Stream stream) const {
  TRY(use());
  return driver_->check("cuStreamSynchronize", driver_->wait(stream));
}

Result<int64_t> Device::resident_blocks(const Function& function, const Function::Shape& shape) const {
  TRY(use());
  int count = 0;
  if (!shape.has_clusters()) {
    const uint32_t threads = shape.threads[0] * shape.threads[1] * shape.threads[2];
    TRY(driver_->check(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        driver_->resident_blocks(&count, function.handle_, static_cast<int>(threads), shape.shared_bytes)));
    return int64_t{count} * multiprocessors_;
  }
  Function::Shape one = shape;
  one.grid = shape.cluster;
  const Configured configured(one, nullptr);
  TRY(driver_->check("cuOccupancyMaxActiveClusters",
                     driver_->resident_clusters(&count, function.handle_, configured.get())));
  return int64_t{count} * shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
}

Result<Device::TensorMap> Device::tensor_map(const TensorShape& shape) const {
  constexpr int kNoInterleave = 0, kPromoteTo256Bytes = 3, kZeroFill = 0;
  alignas(64) TensorMap map;  // as the driver wants it
  const std::vector<uint32_t> steps(shape.extents.size(), 1);
  const uint64_t no_stride = 0;  // of one axis: the driver takes no null pointer
  TRY(driver_->check("cuTensorMapEncodeTiled",
                     driver_->encode_map(&map, shape.type, static_cast<uint32_t>(shape.extents.size()),
                                         reinterpret_cast<void*>(shape.data), shape.extents.data(),
                                         shape.strides.empty() ? &no_stride : shape.strides.data(), shape.box.data(),
                                         steps.data(), kNoInterleave, shape.swizzle, kPromoteTo256Bytes, kZeroFill)));
  return map;
}

}  // namespace tilepilot::runtime::cuda
