// Source text to callable code: finds the system compiler, compiles, loads, and keeps the result in a cache keyed by
// content (source, prelude, flags, compiler version, CPU). Safe under concurrent processes: entries appear by rename
// and are never changed.
#pragma once

#include <filesystem>
#include <memory>
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
  ToolchainOptions options_;
  std::string compiler_;
  std::string version_;
  bool probed_ = false;
  void probe();
};

}  // namespace tilepilot::runtime
