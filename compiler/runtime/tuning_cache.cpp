#include "compiler/runtime/tuning_cache.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "compiler/runtime/kernel_cache.h"
#include "compiler/runtime/sha256.h"

namespace tilepilot::runtime {
namespace {

constexpr const char* kTuningSuffix = ".tuning";

std::string digest_of(const std::string& key) { return Sha256().add_field("tuning").add_field(key).hex(); }

}  // namespace

std::optional<std::string> TuningCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(KernelCache(folder_, kTuningSuffix).entry(digest_of(key)), std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Status TuningCache::keep(const std::string& key, const std::string& text) const {
  if (folder_.empty()) return {};
  const KernelCache cache(folder_, kTuningSuffix);
  const auto workshop = TRY(cache.workshop());
  const std::filesystem::path finished = workshop->path() / "record";
  std::ofstream file(finished, std::ios::binary);
  file << text;
  file.close();
  if (file.fail())
    return make_error(DiagnosticKind::cache_unwritable, {}, fmt::format("cannot write to `{}`", finished.string()));
  return cache.keep_file(finished, digest_of(key));
}

}  // namespace tilepilot::runtime
