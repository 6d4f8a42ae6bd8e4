#include "python/extension/gpu.h"

#include <mutex>

#include "compiler/runtime/cuda/cuda_kernel.h"
#include "compiler/runtime/library.h"
#include "python/extension/errors.h"
#include "python/extension/session.h"

namespace tilepilot::package {
namespace {

// torch.cuda, or None where torch is not imported.
nb::object torch_cuda() {
  const nb::object torch = nb::module_::import_("sys").attr("modules").attr("get")("torch");
  return torch.is_none() ? torch : nb::getattr(torch, "cuda", nb::none());
}

thread_local runtime::cuda::Stream stream_of_launches = nullptr;

// Kernels are the GPU's, not a thread's: what one launch notes in a kernel the next one finds.
struct Launch {
  NativeWork work;
  std::lock_guard<std::mutex> alone;

  static std::mutex& mutex() {
    static std::mutex made;
    return made;
  }
  Launch() : alone(mutex()) {}
};

// Its compiler comes along.
struct GpuContext final : stage::TileContext {
  GpuContext(stage::Interpreter& interpreter, std::unique_ptr<runtime::KernelBackend> backend_,
             std::unique_ptr<stage::TensorHost> host_)
      : TileContext(interpreter, {}), backend(std::move(backend_)), host(std::move(host_)) {
    options.backend = backend.get();
    options.host = host.get();
    options.raw_memory = true;
    options.on_launch = guard_launch<Launch>;
  }
  const std::unique_ptr<runtime::KernelBackend> backend;
  const std::unique_ptr<stage::TensorHost> host;
};

}  // namespace

runtime::cuda::NvrtcOptions Gpus::nvrtc_options() {
  runtime::cuda::NvrtcOptions options;
  options.folders = runtime::cuda::default_cuda_folders();
  const nb::object torch = nb::module_::import_("sys").attr("modules").attr("get")("torch");
  const nb::object file = torch.is_none() ? torch : nb::getattr(torch, "__file__", nb::none());
  if (!file.is_none()) {
    const std::filesystem::path package = nb::cast<std::string>(file);
    options.folders.insert(options.folders.begin(), package.parent_path().parent_path());
  }
  options.cache = runtime::default_cache_directory();
  return options;
}

stage::ContextRef Gpus::context(int number, const std::string& architecture) {
  stage::ContextRef& known = contexts_[{number, architecture}];
  if (known) return known;
  runtime::cuda::CudaOptions options;
  options.nvrtc = nvrtc_options();
  options.device.number = number;
  options.architecture = architecture;
  options.stream = [] { return stream_of_launches; };
  return known =
             std::make_shared<GpuContext>(Session::get().interpreter(), runtime::cuda::cuda_backend(std::move(options)),
                                          make_tensor_host({true, number}));
}

bool Gpus::is_available() {
  const nb::object cuda = torch_cuda();
  return !cuda.is_none() && nb::cast<bool>(cuda.attr("is_available")());
}

bool Gpus::is_capturing() {
  const nb::object cuda = torch_cuda();
  return !cuda.is_none() && nb::cast<bool>(cuda.attr("is_current_stream_capturing")());
}

int Gpus::current() { return is_available() ? nb::cast<int>(torch_cuda().attr("current_device")()) : 0; }

void Gpus::check_usable() const {
  if (left_behind_)
    raise(DiagnosticKind::device_failed,
          "this process was forked from one that used the GPU, which CUDA does not allow",
          "start processes by `spawn` (torch.multiprocessing)");
}

GpuTurn::GpuTurn(int number) {
  static int gpus = -1;  // not asked yet
  if (gpus < 0) gpus = Gpus::is_available() ? nb::cast<int>(torch_cuda().attr("device_count")()) : 0;
  if (gpus < 2) return;
  const int used = nb::cast<int>(torch_cuda().attr("_exchange_device")(number));
  if (used != number) other_ = used;
}

void GpuTurn::send_to(runtime::cuda::Stream stream) { stream_of_launches = stream; }

GpuTurn::~GpuTurn() {
  if (other_ < 0) return;
  try {
    torch_cuda().attr("_exchange_device")(other_);
  } catch (nb::python_error& failed) { failed.discard_as_unraisable("the GPU that torch uses"); }
}

}  // namespace tilepilot::package
