#include "compiler/runtime/cuda/driver_functions.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tilepilot::runtime::cuda {
namespace {

constexpr int kLeastVersion = 12000;
constexpr const char* kDriverName = "libcuda.so.1";

Error no_driver(const std::string& message, std::string_view hint = {}) {
  return make_error(DiagnosticKind::driver_missing, {}, message, hint);
}

// Fills the table; the name of what is lacking, or null.
const char* link_driver(void* library, DriverFunctions& call) {
  const char* lacking = nullptr;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr && lacking == nullptr) lacking = name;
  };
  find("cuInit", call.initialise);
  find("cuDriverGetVersion", call.version);
  find("cuGetErrorName", call.error_name);
  find("cuGetErrorString", call.error_text);
  find("cuDeviceGetCount", call.device_count);
  find("cuDeviceGet", call.device_get);
  find("cuDeviceGetName", call.device_name);
  find("cuDeviceGetAttribute", call.device_attribute);
  find("cuDeviceGetPCIBusId", call.bus_id);
  find("cuDeviceGetUuid_v2", call.uuid);
  find("cuDevicePrimaryCtxRetain", call.retain_context);
  find("cuDevicePrimaryCtxRelease_v2", call.release_context);
  find("cuCtxSetCurrent", call.set_context);
  find("cuCtxGetCurrent", call.get_context);
  find("cuModuleLoadData", call.load_module);
  find("cuModuleUnload", call.unload_module);
  find("cuModuleGetFunction", call.get_function);
  find("cuModuleGetGlobal_v2", call.get_variable);
  find("cuFuncSetAttribute", call.set_function_attribute);
  find("cuFuncGetAttribute", call.get_function_attribute);
  find("cuOccupancyMaxActiveBlocksPerMultiprocessor", call.resident_blocks);
  find("cuMemGetInfo_v2", call.memory);
  find("cuMemAlloc_v2", call.allocate);
  find("cuMemFree_v2", call.release);
  find("cuMemHostAlloc", call.allocate_host);
  find("cuMemFreeHost", call.release_host);
  find("cuMemHostGetDevicePointer_v2", call.address_of_host);
  find("cuMemGetAllocationGranularity", call.granularity);
  find("cuMemCreate", call.create_allocation);
  find("cuMemRelease", call.release_allocation);
  find("cuMemExportToShareableHandle", call.export_allocation);
  find("cuMemImportFromShareableHandle", call.import_allocation);
  find("cuMemAddressReserve", call.reserve_addresses);
  find("cuMemAddressFree", call.free_addresses);
  find("cuMemMap", call.map);
  find("cuMemUnmap", call.unmap);
  find("cuMemSetAccess", call.set_access);
  find("cuMemcpyHtoD_v2", call.write);
  find("cuMemcpyDtoH_v2", call.read);
  find("cuStreamSynchronize", call.wait);
  find("cuStreamBeginCapture_v2", call.begin_capture);
  find("cuStreamEndCapture", call.end_capture);
  find("cuGraphInstantiateWithFlags", call.instantiate_graph);
  find("cuGraphLaunch", call.launch_graph);
  find("cuGraphDestroy", call.destroy_graph);
  find("cuGraphExecDestroy", call.destroy_executable);
  // Of CUDA 11.8 and 12.0: last, so that of an old driver everything else is there.
  find("cuLaunchKernelEx", call.launch);
  find("cuOccupancyMaxActiveClusters", call.resident_clusters);
  find("cuTensorMapEncodeTiled", call.encode_map);
  return lacking;
}

}  // namespace

Result<std::shared_ptr<const DriverFunctions>> DriverFunctions::open(const std::filesystem::path& path) {
  const std::string name = path.empty() ? kDriverName : path.string();
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Error error = no_driver("no CUDA driver was found", "install NVIDIA's driver, or choose `--target cpu`");
    error->note({}, ::dlerror());
    return error;
  }
  auto table = std::make_shared<DriverFunctions>();
  table->library_ = library;
  const char* lacking = link_driver(library, *table);
  int version = 0;
  if (table->version == nullptr || table->version(&version) != kDriverSuccess)
    return no_driver(fmt::format("`{}` is no CUDA driver: it lacks `{}`", name, lacking ? lacking : "a version"));
  if (version < kLeastVersion)
    return no_driver(
        fmt::format("the CUDA driver is for CUDA {}.{}; 12.0 or newer is needed", version / 1000, version % 1000 / 10),
        "install a newer driver, or choose `--target cpu`");
  if (lacking != nullptr) return no_driver(fmt::format("the CUDA driver lacks `{}`", lacking));
  if (const int status = table->initialise(0); status != kDriverSuccess) {
    Error error = table->failed("cuInit", status, DiagnosticKind::driver_missing);
    error->hint = "is there a GPU, and may this process use it?";
    return error;
  }
  return std::shared_ptr<const DriverFunctions>(std::move(table));
}

DriverFunctions::~DriverFunctions() {
  if (library_ != nullptr) ::dlclose(library_);
}

Error DriverFunctions::failed(const char* call, int status, DiagnosticKind kind) const {
  const char *name = nullptr, *text = nullptr;
  error_name(status, &name);
  error_text(status, &text);
  return make_error(kind, {},
                    fmt::format("the CUDA driver's `{}` failed: {} ({})", call,
                                name != nullptr ? name : fmt::format("error {}", status),
                                text != nullptr ? text : "which this driver does not explain"));
}

Status DriverFunctions::check(const char* call, int status) const {
  if (status == kDriverSuccess) return {};
  return failed(call, status,
                status == kDriverOutOfMemory ? DiagnosticKind::out_of_memory : DiagnosticKind::device_failed);
}

}  // namespace tilepilot::runtime::cuda
