#include "compiler/untrusted/environment.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

extern char** environ;

namespace tilepilot::untrusted {
namespace {

constexpr std::string_view kSecret = "TILEPILOT_API_KEY";

constexpr std::string_view kOfCompilers[] = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH"};
// Where caches, GPUs and their libraries are, besides, and how many threads PyTorch takes.
constexpr std::string_view kOfWorkers[] = {"HOME",
                                           "TMPDIR",
                                           "USER",
                                           "XDG_CACHE_HOME",
                                           "TILEPILOT_CACHE",
                                           "CUDA_HOME",
                                           "CUDA_PATH",
                                           "CUDA_VISIBLE_DEVICES",
                                           "CUDA_DEVICE_ORDER",
                                           "CUDA_MPS_PIPE_DIRECTORY",
                                           "NVIDIA_VISIBLE_DEVICES",
                                           "CONDA_PREFIX",
                                           "VIRTUAL_ENV",
                                           "ASAN_OPTIONS",
                                           "UBSAN_OPTIONS",
                                           "LLVM_PROFILE_FILE",
                                           "OMP_NUM_THREADS"};

bool has(const auto& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool passes(EnvironmentOf kind, std::string_view name) {
  if (kind == EnvironmentOf::the_user) return name != kSecret;
  return has(kOfCompilers, name) || (kind == EnvironmentOf::workers && has(kOfWorkers, name));
}

}  // namespace

std::vector<std::string> environment_of(EnvironmentOf kind) {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (passes(kind, text.substr(0, text.find('=')))) environment.emplace_back(text);
  }
  return environment;
}

}  // namespace tilepilot::untrusted
