#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "compiler/runtime/compile_library.h"
#include "compiler/runtime/kernel_cache.h"
#include "compiler/runtime/library.h"
#include "compiler/runtime/machine.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/sha256.h"
#include "compiler/source/file.h"
#include "compiler/untrusted/compiler_socket.h"
#include "compiler/untrusted/memory_file.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCandidates[] = {"c++", "g++", "clang++"};
constexpr const char* kSource = "kernel.cpp";
constexpr const char* kLibrary = "kernel.so";

// NaN and infinities are exact, signed overflow wraps, a*b+c may be fused; nothing else is relaxed.
constexpr const char* kFlags[] = {"-std=c++17", "-O3", "-march=native",
#if defined(__x86_64__)
                                  "-mprefer-vector-width=512",
#endif
                                  "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
                                  // GCC's masked loads take their address from a variable that a loop has changed
                                  // by then, if that address is what it calls an optimised induction variable.
                                  "-fno-ivopts",
                                  "-fno-finite-loops",  // a loop for ever runs for ever
                                  "-fwrapv", "-fno-strict-aliasing", "-fopenmp-simd", "-fno-exceptions", "-fno-rtti",
                                  "-fno-asynchronous-unwind-tables", "-fPIC", "-shared", "-pipe", "-w"};

std::string find_on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0 ? program : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, end)) + "/" + program;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

// "/usr/bin/g++" and "g++ (Debian 12.2.0-14) 12.2.0" become "g++ 12.2.0".
std::string short_version(const std::string& path, const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const std::string name = line.find("clang") != std::string::npos ? "clang++" : fs::path(path).filename().string();
  std::string number;
  for (size_t at = 0; at < line.size(); ++at) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string word = line.substr(at, end - at);
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0]))) number = word;
    at = end;
  }
  return name + " " + number;
}

Error missing_compiler(const std::string& wanted) {
  return make_error(DiagnosticKind::compiler_missing, {},
                    wanted.empty() ? "no C++ compiler on PATH: tried `c++`, `g++` and `clang++`"
                                   : fmt::format("the C++ compiler `{}` was not found", wanted),
                    "install one, for example `apt-get install g++`");
}

// What one compiler sees of the file system: its own files and those of the system, and the folder that it works in.
untrusted::Confinement confinement_of(const std::string& compiler, const fs::path& folder) {
  untrusted::Confinement result;
  result.files.readable = {"/usr",
                           "/bin",
                           "/lib",
                           "/lib32",
                           "/lib64",
                           "/libx32",
                           "/opt",
                           "/nix/store",
                           "/etc/alternatives",
                           "/etc/ld.so.cache",
                           "/etc/ld.so.conf",
                           "/etc/ld.so.conf.d",
                           "/proc/cpuinfo",
                           "/proc/meminfo",
                           "/sys/devices/system/cpu"};
  std::error_code ignored;
  for (const fs::path& file : {fs::path(compiler), fs::canonical(compiler, ignored)})
    if (file.has_parent_path() && file.parent_path() != "/") result.files.readable.push_back(file.parent_path());
  // One that is installed in a folder of its own: bin, lib, libexec.
  const fs::path above = fs::canonical(compiler, ignored).parent_path().parent_path();
  if (fs::exists(above / "libexec", ignored) || fs::exists(above / "lib" / "gcc", ignored))
    result.files.readable.push_back(above);
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"); libraries != nullptr)
    for (std::string_view rest = libraries; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 1) result.files.readable.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  result.files.writable = {folder, "/dev/null"};
  result.limits = {
      .cpu_seconds = 600, .memory_bytes = int64_t{16} << 30, .file_bytes = int64_t{1} << 30, .open_files = 0};
  return result;
}

constexpr double kLongestCompilation = 600;
constexpr size_t kCompilerOutput = size_t{64} << 10;

// The compiler as it was found, and all of the flags.
struct Compilation {
  std::string compiler;
  std::vector<std::string> flags;
  int abandon = -1;

  // The library's bytes, made in `parent`.
  Result<std::string> library_in(const fs::path& parent, const std::string& source) const {
    const auto workshop = TRY(TemporaryFolder::create(parent));
    const fs::path folder = fs::absolute(workshop->path());
    if (!write_file(folder / kSource, source))
      return make_error(DiagnosticKind::cache_unwritable, {}, fmt::format("cannot write to `{}`", folder.string()));
    std::vector<std::string> command = {compiler};
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"-o", (folder / kLibrary).string(), (folder / kSource).string(), "-lm"});
    ProcessOptions options;
    options.time_limit_s = kLongestCompilation;
    options.environment = untrusted::EnvironmentOf::compilers;
    options.more_environment = {"TMPDIR=" + folder.string(), "CCACHE_DISABLE=1"};
    options.output_limit = kCompilerOutput;
    options.confinement = confinement_of(compiler, folder);
    options.abandon = abandon;
    const ProcessResult run = TRY(run_process(command, options));
    std::string library;
    if (run.exit_code == 0 && read_file(folder / kLibrary, library)) return library;
    Error failure = make_error(DiagnosticKind::compiler_failed, {},
                               fmt::format("`{}` failed on generated code", fs::path(compiler).filename().string()));
    failure->note({}, run.err.empty() || run.exit_code < 0 ? ending_of(run) : printable(run.err));
    return failure;
  }
};

fs::path temporary_parent() {
  std::error_code code;
  const fs::path parent = fs::temp_directory_path(code);
  return code ? fs::path("/tmp") : parent;
}

struct Made {
  std::string library;
  std::optional<Diagnostic> degraded;  // why it could not be kept
};

// From the cache, or into it.
Result<Made> find_or_make(const Compilation& compilation, const fs::path& folder, const std::string& key,
                          const std::string& source, DiagnosticList& warnings) {
  if (folder.empty()) return Made{TRY(compilation.library_in(temporary_parent(), source)), {}};
  const KernelCache cache(folder);
  if (auto found = cache.find(key, warnings)) return Made{*std::move(found), {}};
  auto made = compilation.library_in(folder / "tmp", source);
  if (made.ok()) {
    Status kept = cache.keep(*made, key);
    if (kept.ok()) return Made{*std::move(made), {}};
    return Made{*std::move(made), kept.error()};
  }
  // A full disk looks like a compiler's error: elsewhere the same text may compile.
  return Made{TRY(compilation.library_in(temporary_parent(), source)), made.error()};
}

std::string find_compiler(const std::string& wanted) {
  if (!wanted.empty()) return find_on_path(wanted);
  std::string found;
  for (const char* candidate : kCandidates)
    if (found.empty()) found = find_on_path(candidate);
  return found;
}

// Cheaper than asking it for its version.
std::string identity_of(const std::string& compiler) { return file_identity(compiler) + "\n" + processor_identity(); }

std::vector<std::string> all_flags(const std::vector<std::string>& extra) {
  std::vector<std::string> all(std::begin(kFlags), std::end(kFlags));
  all.insert(all.end(), extra.begin(), extra.end());
  return all;
}

std::string key_of(const std::string& identity, const std::string& source, const std::vector<std::string>& flags) {
  Sha256 hash;
  hash.add_field(identity).add_field(source);
  for (const std::string& flag : flags) hash.add_field(flag);
  return hash.hex();
}

}  // namespace

std::vector<std::string> library_flags(const std::vector<std::string>& extra) { return all_flags(extra); }

SharedLibrary::~SharedLibrary() { ::dlclose(handle_); }
void* SharedLibrary::symbol(const std::string& name) const { return ::dlsym(handle_, name.c_str()); }

fs::path default_cache_directory() {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (const std::string own = variable("TILEPILOT_CACHE"); !own.empty()) return own;
  if (const std::string shared = variable("XDG_CACHE_HOME"); !shared.empty()) return fs::path(shared) / "tilepilot";
  if (const std::string home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "tilepilot";
  return {};
}

Toolchain::Toolchain(ToolchainOptions options) : options_(std::move(options)) {}

void Toolchain::probe() {
  if (probed_) return;
  probed_ = true;
  compiler_ = untrusted::socket_of(options_.compiler) ? options_.compiler : find_compiler(options_.compiler);
  if (!compiler_.empty()) identity_ = identity_of(compiler_);
}

const std::string& Toolchain::version() {
  const std::lock_guard lock(mutex_);
  probe();
  if (version_.empty() && !compiler_.empty()) {
    const auto answer = run_process({compiler_, "--version"});
    if (answer.ok() && answer->exit_code == 0) version_ = short_version(compiler_, answer->out);
  }
  return version_;
}

std::vector<std::string> Toolchain::flags() const { return all_flags(options_.extra_flags); }

std::string Toolchain::key(const std::string& source) const { return key_of(identity_, source, flags()); }

Result<std::shared_ptr<SharedLibrary>> Toolchain::load(const std::string& source, DiagnosticList& warnings) {
  std::unique_lock lock(mutex_);
  probe();
  if (compiler_.empty()) return missing_compiler(options_.compiler);
  const std::string name = key(source);
  compiled_.wait(lock, [&] { return under_way_.count(name) == 0; });
  if (const auto found = loaded_.find(name); found != loaded_.end()) return found->second;
  under_way_.insert(name);
  lock.unlock();
  Result<Loaded> library = find_or_compile(source, name, warnings);
  lock.lock();
  under_way_.erase(name);
  compiled_.notify_all();
  if (library.ok()) loaded_.emplace(name, *library);
  return library;
}

Result<Toolchain::Loaded> Toolchain::find_or_compile(const std::string& source, const std::string& key,
                                                     DiagnosticList& warnings) {
  if (const auto socket = untrusted::socket_of(options_.compiler)) {
    const auto library =
        TRY(untrusted::ask_compiler(*socket, {untrusted::CodeForm::library, "", options_.extra_flags, source}));
    return open(library.unique_path());
  }
  const Made made = TRY(find_or_make({compiler_, flags(), -1}, options_.cache, key, source, warnings));
  if (made.degraded) warn_degraded(*made.degraded, warnings);
  // What was verified is what is loaded, whatever becomes of the file.
  const auto library = untrusted::MemoryFile::of(made.library);
  if (!library) return make_error(DiagnosticKind::load_failed, {}, "there is no memory for a compiled kernel");
  return open(library->unique_path());
}

Result<std::string> compile_library(const ToolchainOptions& options, const std::string& source, int abandon,
                                    DiagnosticList& warnings) {
  const std::string compiler = find_compiler(options.compiler);
  if (compiler.empty()) return missing_compiler(options.compiler);
  const std::vector<std::string> flags = all_flags(options.extra_flags);
  Made made = TRY(find_or_make({compiler, flags, abandon}, options.cache, key_of(identity_of(compiler), source, flags),
                               source, warnings));
  return std::move(made.library);
}

Result<Toolchain::Loaded> Toolchain::open(const fs::path& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    // The path is that of a sealed memory file, which tells nobody anything.
    std::string why = ::dlerror();
    if (why.starts_with(path.string() + ": ")) why.erase(0, path.string().size() + 2);
    return make_error(DiagnosticKind::load_failed, {}, fmt::format("cannot load a compiled kernel: {}", why));
  }
  return Loaded(new SharedLibrary(handle));
}

void Toolchain::warn_degraded(const Diagnostic& reason, DiagnosticList& warnings) {
  {
    const std::lock_guard lock(mutex_);
    if (degraded_) return;
    degraded_ = true;
  }
  Diagnostic warning{
      DiagnosticKind::cache_degraded, {}, fmt::format("the kernel cache `{}` cannot be used", options_.cache.string())};
  warning.note({}, reason.message);
  for (const Note& note : reason.notes) warning.notes.push_back(note);
  warnings.add(std::move(warning.with_hint("free space there, or name another folder in `TILEPILOT_CACHE`")));
}

}  // namespace tilepilot::runtime
