#include "compiler/runtime/kernel_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <vector>

#include "compiler/runtime/owned_folder.h"
#include "compiler/runtime/sealed_file.h"

namespace tilepilot::runtime {
namespace {

namespace fs = std::filesystem;

Error unwritable(const fs::path& path, const std::string& reason) {
  return make_error(DiagnosticKind::cache_unwritable, {},
                    fmt::format("cannot write to `{}`: {}", path.string(), reason));
}

// No compilation takes as long.
constexpr auto kAbandoned = std::chrono::hours(24);

// Of this machine's processes that are no more, and of other machines' what is old.
void remove_abandoned(const fs::path& workshops) {
  remove_owned_folders(workshops, is_dead);
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
  std::string name = owned_folder_pattern(parent, "build");
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

std::optional<std::string> KernelCache::find(const std::string& key, DiagnosticList& warnings) const {
  const auto secret = secret_of(folder_, false);
  if (!secret) return std::nullopt;
  SealedFile found = read_sealed(entry(key), key + suffix_, *secret);
  if (!found.is_foreign) return std::move(found.content);
  Diagnostic warning{DiagnosticKind::cache_degraded,
                     {},
                     fmt::format("an entry of the kernel cache `{}` is not as it was written", folder_.string())};
  warnings.add(std::move(warning.with_hint("it is compiled again; who else can write there?")));
  return std::nullopt;
}

Status KernelCache::keep(std::string_view content, const std::string& key) const {
  const auto secret = secret_of(folder_, true);
  if (!secret) return unwritable(folder_ / kSecretFile, std::strerror(errno));
  const auto place = TRY(workshop());
  const fs::path finished = place->path() / "finished";
  if (!write_sealed(finished, content, key + suffix_, *secret)) return unwritable(finished, std::strerror(errno));
  return keep_file(finished, key);
}

Status KernelCache::keep_file(const fs::path& finished, const std::string& key) const {
  const fs::path target = entry(key);
  std::error_code code;
  fs::create_directories(target.parent_path(), code);
  if (!code) fs::rename(finished, target, code);
  if (code) return unwritable(target, code.message());
  return {};
}

}  // namespace tilepilot::runtime
