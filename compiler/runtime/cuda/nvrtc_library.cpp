#include "compiler/runtime/cuda/nvrtc_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tilepilot::runtime::cuda {
namespace {

namespace fs = std::filesystem;

// The first whose compiler has all that the prelude uses.
constexpr int kLeastMajor = 12, kLeastMinor = 4;
constexpr const char* kUnitName = "kernel.cu";

Error missing(const std::string& message) { return make_error(DiagnosticKind::nvrtc_missing, {}, message); }

}  // namespace

Result<std::shared_ptr<NvrtcLibrary>> NvrtcLibrary::open(const fs::path& path) {
  std::unique_ptr<void, int (*)(void*)> handle(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* library) {
    return library != nullptr ? ::dlclose(library) : 0;
  });
  if (!handle) return missing(fmt::format("cannot load NVRTC: {}", ::dlerror()));
  const std::shared_ptr<NvrtcLibrary> library(new NvrtcLibrary(path));
  if (!library->link(handle.get())) return missing(fmt::format("`{}` is no NVRTC: it lacks functions", path.string()));
  if (!library->is_new_enough())
    return missing(fmt::format("`{}` is NVRTC {}.{}; {}.{} or newer is needed", path.string(), library->major_,
                               library->minor_, kLeastMajor, kLeastMinor));
  library->load_builtins();
  handle.release();  // stays loaded: it has memory that it never gives back
  return library;
}

// The library looks for its second half by name, and some packages do not tell it to look beside itself. What is loaded
// already it finds.
void NvrtcLibrary::load_builtins() const {
  if (!path_.has_parent_path()) return;
  const fs::path beside = path_.parent_path() / fmt::format("libnvrtc-builtins.so.{}.{}", major_, minor_);
  ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
}

bool NvrtcLibrary::is_new_enough() const {
  return major_ > kLeastMajor || (major_ == kLeastMajor && minor_ >= kLeastMinor);
}

bool NvrtcLibrary::link(void* library) {
  bool complete = true;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    complete = complete && function != nullptr;
  };
  find("nvrtcVersion", call_.version);
  find("nvrtcCreateProgram", call_.create);
  find("nvrtcDestroyProgram", call_.destroy);
  find("nvrtcCompileProgram", call_.compile);
  find("nvrtcGetProgramLogSize", call_.log_size);
  find("nvrtcGetProgramLog", call_.log);
  find("nvrtcGetPTXSize", call_.ptx_size);
  find("nvrtcGetPTX", call_.ptx);
  find("nvrtcGetErrorString", call_.error_text);
  if (!complete || call_.version(&major_, &minor_) != 0) return false;
  if (!is_new_enough()) return true;  // old ones may lack more; their version is what is told
  find("nvrtcGetCUBINSize", call_.cubin_size);
  find("nvrtcGetCUBIN", call_.cubin);
  return complete;
}

std::string NvrtcLibrary::text_of(Program program, int (*size)(Program, size_t*), int (*get)(Program, char*)) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0) return {};
  std::string text(bytes, '\0');
  if (get(program, text.data()) != 0) return {};
  return text;
}

NvrtcLibrary::Compilation NvrtcLibrary::compile(const std::string& source, const std::vector<std::string>& flags,
                                                Output output) const {
  Compilation result;
  Program program = nullptr;
  if (const int status = call_.create(&program, source.c_str(), kUnitName, 0, nullptr, nullptr); status != 0) {
    result.log = call_.error_text(status);
    return result;
  }
  std::vector<const char*> arguments;
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  if (major_ > 12 || minor_ >= 8)
    arguments.push_back("-minimal");  // no textures: what every unit begins with parses faster
  const int status = call_.compile(program, static_cast<int>(arguments.size()), arguments.data());
  result.log = text_of(program, call_.log_size, call_.log);
  while (!result.log.empty() && (result.log.back() == '\0' || result.log.back() == '\n')) result.log.pop_back();
  if (status == 0) {
    const bool is_ptx = output == Output::ptx;
    result.code =
        is_ptx ? text_of(program, call_.ptx_size, call_.ptx) : text_of(program, call_.cubin_size, call_.cubin);
    if (is_ptx && !result.code.empty()) result.code.pop_back();  // its terminator
  }
  result.succeeded = status == 0 && !result.code.empty();
  if (!result.succeeded && result.log.empty()) result.log = call_.error_text(status);
  call_.destroy(&program);
  return result;
}

}  // namespace tilepilot::runtime::cuda
