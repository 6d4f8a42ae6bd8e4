#include "compiler/runtime/kernel_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace tilepilot::runtime {
namespace {

namespace fs = std::filesystem;

Error unwritable(const fs::path& path, const std::string& reason) {
  return make_error(DiagnosticKind::cache_unwritable, {},
                    fmt::format("cannot write to `{}`: {}", path.string(), reason));
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

Status KernelCache::keep(const fs::path& library, const std::string& key) const {
  const fs::path target = entry(key);
  std::error_code code;
  fs::create_directories(target.parent_path(), code);
  if (!code) fs::rename(library, target, code);
  if (code) return unwritable(target, code.message());
  return {};
}

void KernelCache::drop(const std::string& key) const {
  std::error_code ignored;
  fs::remove(entry(key), ignored);
}

}  // namespace tilepilot::runtime
