// The folder of compiled kernels. Entries are named by a hash of all that went into them, sealed under the folder's
// secret (sealed_file.h), appear by rename and are never changed, so any number of processes can share the folder.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime {

// A new folder, removed with all its contents at the end.
class TemporaryFolder {
 public:
  // Inside `parent`, which is made if it is missing.
  static Result<std::unique_ptr<TemporaryFolder>> create(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

class KernelCache {
 public:
  // Entries are files whose names end with `suffix`.
  explicit KernelCache(std::filesystem::path folder, std::string suffix = ".so")
      : folder_(std::move(folder)), suffix_(std::move(suffix)) {}

  // Where the entry of this key is or would be.
  std::filesystem::path entry(const std::string& key) const { return folder_ / key.substr(0, 2) / (key + suffix_); }
  // A folder for work in progress, on the same file system as the entries. What killed processes left in earlier ones
  // is removed: of this machine at once, of others once it is a day old.
  Result<std::unique_ptr<TemporaryFolder>> workshop() const;
  // What the entry of this key holds; nullopt: there is none that is whole and of this user's making. An entry that
  // somebody else made or changed is a warning (`cache_degraded`).
  std::optional<std::string> find(const std::string& key, DiagnosticList& warnings) const;
  // On an error nothing is left behind.
  Status keep(std::string_view content, const std::string& key) const;
  // Moves a finished file to its place, unsealed.
  Status keep_file(const std::filesystem::path& finished, const std::string& key) const;

 private:
  std::filesystem::path folder_;
  std::string suffix_;
};

}  // namespace tilepilot::runtime
