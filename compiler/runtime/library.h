// Source text to callable code: finds the system compiler, compiles, loads, and keeps the result in a cache keyed by
// content (source, prelude, flags, compiler version, CPU). Safe under concurrent processes: entries appear by rename
// and are never changed.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime {

struct ToolchainOptions {
  std::string compiler;         // empty: c++, g++, clang++ in this order on PATH
  std::filesystem::path cache;  // empty: no disk cache
  std::vector<std::string> extra_flags;
};

// $TILEPILOT_CACHE, else $XDG_CACHE_HOME/tilepilot, else ~/.cache/tilepilot. Read at program start only.
std::filesystem::path default_cache_directory();

class SharedLibrary {
 public:
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  void* symbol(const std::string& name) const;  // null if absent

 private:
  friend class Toolchain;
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

// May be used by several threads, which compile side by side.
class Toolchain {
 public:
  explicit Toolchain(ToolchainOptions options);
  // The loaded library for this source; compiled at most once. Errors: compiler_missing, compiler_failed (its own
  // message as a note), load_failed. A cache that cannot be written is a `cache_degraded` warning, once, and a
  // temporary folder is used.
  Result<std::shared_ptr<SharedLibrary>> load(const std::string& source, DiagnosticList& warnings);
  // "g++ 12.2.0", or empty if there is none.
  const std::string& version();

 private:
  using Loaded = std::shared_ptr<SharedLibrary>;

  ToolchainOptions options_;
  std::mutex mutex_;  // guards what follows
  bool probed_ = false;
  std::string compiler_;  // its path; empty: none was found
  std::string identity_;  // what tells this compiler, its flags and this machine from others
  std::string version_;
  bool degraded_ = false;                 // the warning was given
  std::map<std::string, Loaded> loaded_;  // by key
  std::set<std::string> under_way_;       // keys that some thread compiles
  std::condition_variable compiled_;      // one of them is done

  void probe();
  std::vector<std::string> flags() const;
  std::string key(const std::string& source) const;
  Result<Loaded> find_or_compile(const std::string& source, const std::string& key, DiagnosticList& warnings);
  Result<Loaded> compile_temporarily(const std::string& source);
  Status compile(const std::string& source, const std::filesystem::path& folder) const;
  void warn_degraded(const Diagnostic& reason, DiagnosticList& warnings);
  static Result<Loaded> open(const std::filesystem::path& path);
};

}  // namespace tilepilot::runtime
