#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "compiler/runtime/kernel_cache.h"
#include "compiler/runtime/library.h"
#include "compiler/runtime/machine.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/sealed_file.h"
#include "compiler/runtime/sha256.h"

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

bool write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return !file.fail();
}

Error missing_compiler(const std::string& wanted) {
  return make_error(DiagnosticKind::compiler_missing, {},
                    wanted.empty() ? "no C++ compiler on PATH: tried `c++`, `g++` and `clang++`"
                                   : fmt::format("the C++ compiler `{}` was not found", wanted),
                    "install one, for example `apt-get install g++`");
}

}  // namespace

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
  if (!options_.compiler.empty()) {
    compiler_ = find_on_path(options_.compiler);
  } else {
    for (const char* candidate : kCandidates)
      if (compiler_.empty()) compiler_ = find_on_path(candidate);
  }
  // Cheaper than asking it for its version.
  if (!compiler_.empty()) identity_ = file_identity(compiler_) + "\n" + processor_identity();
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

std::vector<std::string> Toolchain::flags() const {
  std::vector<std::string> all(std::begin(kFlags), std::end(kFlags));
  all.insert(all.end(), options_.extra_flags.begin(), options_.extra_flags.end());
  return all;
}

std::string Toolchain::key(const std::string& source) const {
  Sha256 hash;
  hash.add_field(identity_).add_field(source);
  for (const std::string& flag : flags()) hash.add_field(flag);
  return hash.hex();
}

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
  if (options_.cache.empty()) return compile_temporarily(source);
  const KernelCache cache(options_.cache);
  if (is_sealed(cache.entry(key))) {
    if (auto library = open(cache.entry(key)); library.ok()) return library;
  }
  cache.drop(key);
  const auto into_cache = [&]() -> Status {
    const auto workshop = TRY(cache.workshop());
    TRY(compile(source, workshop->path()));
    return cache.keep(workshop->path() / kLibrary, key);
  };
  const Status kept = into_cache();
  if (kept.ok()) return open(cache.entry(key));
  // A full disk looks like a compiler's error: elsewhere the same text may compile.
  Result<Loaded> library = compile_temporarily(source);
  if (library.ok()) warn_degraded(kept.error(), warnings);
  return library;
}

Result<Toolchain::Loaded> Toolchain::compile_temporarily(const std::string& source) {
  std::error_code code;
  const fs::path parent = fs::temp_directory_path(code);
  const auto workshop = TRY(TemporaryFolder::create(code ? fs::path("/tmp") : parent));
  TRY(compile(source, workshop->path()));
  return open(workshop->path() / kLibrary);
}

Status Toolchain::compile(const std::string& source, const fs::path& folder) const {
  if (!write_file(folder / kSource, source))
    return make_error(DiagnosticKind::cache_unwritable, {}, fmt::format("cannot write to `{}`", folder.string()));
  std::vector<std::string> command = flags();
  command.insert(command.begin(), compiler_);
  command.insert(command.end(), {"-o", (folder / kLibrary).string(), (folder / kSource).string(), "-lm"});
  const ProcessResult run = TRY(run_process(command));
  if (run.exit_code == 0 && seal_file(folder / kLibrary)) return {};
  Error failure = make_error(DiagnosticKind::compiler_failed, {},
                             fmt::format("`{}` failed on generated code", fs::path(compiler_).filename().string()));
  failure->note({}, run.err.empty() ? fmt::format("it ended with signal {}", run.signal) : run.err);
  return failure;
}

Result<Toolchain::Loaded> Toolchain::open(const fs::path& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return make_error(DiagnosticKind::load_failed, {}, fmt::format("cannot load a compiled kernel: {}", ::dlerror()));
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
