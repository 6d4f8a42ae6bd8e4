#include "compiler/runtime/kernel_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <vector>

namespace tilepilot::runtime {
namespace {

namespace fs = std::filesystem;

Error unwritable(const fs::path& path, const std::string& reason) {
  return make_error(DiagnosticKind::cache_unwritable, {},
                    fmt::format("cannot write to `{}`: {}", path.string(), reason));
}

// No compilation takes as long.
constexpr auto kAbandoned = std::chrono::hours(24);

void remove_abandoned(const fs::path& workshops) {
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  std::vector<fs::path> abandoned;
  for (const fs::directory_entry& entry : fs::directory_iterator(workshops, ignored)) {
    const fs::file_time_type written = entry.last_write_time(ignored);
    if (!ignored && now - written > kAbandoned) abandoned.push_back(entry.path());
  }
  for (const fs::path& path : abandoned) fs::remove_all(path, ignored);
}

}  // namespace

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::create(const fs::path& parent) {
  std::error_code code;
  fs::create_directories(parent, code);
  if (code) return unwritable(parent, code.message());
  std::string name = (parent / "build-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return unwritable(parent, std::strerror(errno));
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(name));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Result<std::unique_ptr<TemporaryFolder>> KernelCache::workshop() const {
  const fs::path workshops = folder_ / "tmp";
  remove_abandoned(workshops);
  return TemporaryFolder::create(workshops);
}

Status KernelCache::keep(const fs::path& finished, const std::string& key) const {
  const fs::path target = entry(key);
  std::error_code code;
  fs::create_directories(target.parent_path(), code);
  if (!code) fs::rename(finished, target, code);
  if (code) return unwritable(target, code.message());
  return {};
}

void KernelCache::drop(const std::string& key) const {
  std::error_code ignored;
  fs::remove(entry(key), ignored);
}

}  // namespace tilepilot::runtime
