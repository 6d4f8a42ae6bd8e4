#include "compiler/runtime/cuda/nvrtc.h"

#include <fmt/format.h>

#include "compiler/runtime/cuda/nvrtc_library.h"
#include "compiler/runtime/cuda/nvrtc_search.h"
#include "compiler/runtime/kernel_cache.h"
#include "compiler/runtime/sha256.h"
#include "compiler/untrusted/compiler_socket.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::runtime::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCubinSuffix = ".cubin";
constexpr const char* kLoaderNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
constexpr const char* kHint =
    "install the CUDA toolkit, or the package `nvidia-cuda-nvrtc` beside PyTorch, or name the library";

// Warnings of what nobody calls, and of comparisons that templates make with unsigned numbers, say nothing.
constexpr const char* kCudaFlags[] = {"-std=c++17", "-lineinfo", "-diag-suppress=177,186"};

// Each message of the log with the lines that belong to it, as a note of its own.
void note_messages(const std::string& log, Diagnostic& diagnostic) {
  constexpr size_t kShown = 8, kLongest = 8192;
  std::vector<std::string> messages;
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    const std::string line = log.substr(at, end - at);
    at = end + 1;
    const bool begins = line.find(": error") != std::string::npos || line.find(": warning") != std::string::npos ||
                        line.find("error   :") != std::string::npos || line.find(" errors detected") != line.npos ||
                        line.find(" error detected") != std::string::npos || messages.empty();
    if (begins)
      messages.push_back(line);
    else if (!line.empty())
      messages.back() += "\n" + line;
  }
  for (size_t k = 0; k < std::min(messages.size(), kShown); ++k) diagnostic.note({}, printable(messages[k], kLongest));
  if (messages.size() > kShown) diagnostic.note({}, fmt::format("and {} more messages", messages.size() - kShown));
}

Error rejected(const std::string& architecture, const std::string& log) {
  Error error = make_error(DiagnosticKind::compiler_failed, {},
                           fmt::format("NVRTC failed on generated code for `{}`", architecture));
  note_messages(log, *error);
  return error;
}

// Which file it is and when it last changed: cheaper than opening it.
std::string file_identity(const fs::path& path) {
  std::error_code code;
  const fs::path real = fs::canonical(path, code);
  const auto size = fs::file_size(real, code);
  const auto time = fs::last_write_time(real, code).time_since_epoch().count();
  return code ? std::string() : fmt::format("{} {} {}\n", real.string(), size, time);
}

}  // namespace

Nvrtc::Nvrtc(NvrtcOptions options) : options_(std::move(options)) {}
Nvrtc::~Nvrtc() = default;

void Nvrtc::search() {
  if (searched_) return;
  searched_ = true;
  if (!options_.library.empty()) {
    candidates_ = {options_.library};
  } else {
    candidates_ = find_nvrtc(options_.folders);
  }
  for (const fs::path& candidate : candidates_) identity_ += file_identity(candidate);
  if (options_.library.empty()) candidates_.insert(candidates_.end(), std::begin(kLoaderNames), std::end(kLoaderNames));
}

Result<std::shared_ptr<NvrtcLibrary>> Nvrtc::open() {
  const std::lock_guard lock(mutex_);
  if (library_) return library_;
  search();
  Error error =
      make_error(DiagnosticKind::nvrtc_missing, {}, "NVRTC, which compiles CUDA kernels, was not found", kHint);
  for (const fs::path& candidate : candidates_) {
    auto opened = NvrtcLibrary::open(candidate);
    if (opened.ok()) return library_ = *opened;
    if (candidate.has_parent_path() || !options_.library.empty()) error->note({}, opened.error().message);
  }
  return error;
}

std::vector<std::string> Nvrtc::flags(const std::string& architecture) const {
  std::vector<std::string> all = {"-arch=" + architecture};
  all.insert(all.end(), std::begin(kCudaFlags), std::end(kCudaFlags));
  all.insert(all.end(), options_.extra_flags.begin(), options_.extra_flags.end());
  return all;
}

Result<std::string> Nvrtc::key(const std::string& source, const std::vector<std::string>& flags) {
  std::string identity;
  {
    const std::lock_guard lock(mutex_);
    search();
    identity = identity_;
  }
  if (identity.empty()) identity = TRY(version());
  Sha256 hash;
  hash.add_field(identity).add_field(source);
  for (const std::string& flag : flags) hash.add_field(flag);
  return hash.hex();
}

Result<CompiledModule> Nvrtc::compile(const std::string& source, const std::string& architecture,
                                      DiagnosticList& warnings) {
  const std::vector<std::string> arguments = flags(architecture);
  if (const auto socket = untrusted::socket_of(options_.library.string())) {
    const auto made =
        TRY(untrusted::ask_compiler(*socket, {untrusted::CodeForm::cubin, architecture, options_.extra_flags, source}));
    auto cubin = made.content();
    if (cubin) return CompiledModule{*std::move(cubin), {}};
    return make_error(DiagnosticKind::load_failed, {}, "there is no memory for a compiled kernel");
  }
  std::string name;
  if (!options_.cache.empty()) {
    name = TRY(key(source, arguments));
    if (auto cubin = KernelCache(options_.cache, kCubinSuffix).find(name, warnings))
      return CompiledModule{*std::move(cubin), {}};
  }
  const std::shared_ptr<NvrtcLibrary> library = TRY(open());
  NvrtcLibrary::Compilation made = library->compile(source, arguments, NvrtcLibrary::Output::cubin);
  if (!made.succeeded) return rejected(architecture, made.log);
  if (!options_.cache.empty()) keep(made.code, name, warnings);
  return CompiledModule{std::move(made.code), std::move(made.log)};
}

void Nvrtc::keep(const std::string& cubin, const std::string& key, DiagnosticList& warnings) {
  const Status stored = KernelCache(options_.cache, kCubinSuffix).keep(cubin, key);
  const std::lock_guard lock(mutex_);
  if (stored.ok() || degraded_) return;
  degraded_ = true;
  Diagnostic warning{
      DiagnosticKind::cache_degraded, {}, fmt::format("the kernel cache `{}` cannot be used", options_.cache.string())};
  warning.note({}, stored.error().message);
  warnings.add(std::move(warning.with_hint("free space there, or name another folder in `TILEPILOT_CACHE`")));
}

Result<std::string> Nvrtc::ptx(const std::string& source, const std::string& architecture) {
  const std::shared_ptr<NvrtcLibrary> library = TRY(open());
  NvrtcLibrary::Compilation made = library->compile(source, flags(architecture), NvrtcLibrary::Output::ptx);
  if (!made.succeeded) return rejected(architecture, made.log);
  return std::move(made.code);
}

Result<std::string> Nvrtc::version() {
  const std::shared_ptr<NvrtcLibrary> library = TRY(open());
  return fmt::format("NVRTC {}.{} ({})", library->major(), library->minor(), library->path().string());
}

}  // namespace tilepilot::runtime::cuda
