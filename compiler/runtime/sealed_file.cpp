#include "compiler/runtime/sealed_file.h"

#include <fstream>
#include <sstream>

#include "compiler/runtime/sha256.h"

namespace tilepilot::runtime {
namespace {

constexpr std::string_view kMark = "tilepilot-seal:";
constexpr size_t kTrailerBytes = kMark.size() + 64;

std::optional<std::string> read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::string trailer(std::string_view content) { return std::string(kMark) + Sha256().add(content).hex(); }

}  // namespace

bool seal_file(const std::filesystem::path& path) {
  const auto content = read_all(path);
  if (!content) return false;
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file << trailer(*content);
  file.close();
  return !file.fail();
}

std::optional<std::string> read_sealed(const std::filesystem::path& path) {
  std::optional<std::string> text = read_all(path);
  if (!text || text->size() < kTrailerBytes) return std::nullopt;
  const size_t size = text->size() - kTrailerBytes;
  const std::string_view all = *text;
  if (all.substr(size) != trailer(all.substr(0, size))) return std::nullopt;
  text->resize(size);
  return text;
}

bool is_sealed(const std::filesystem::path& path) { return read_sealed(path).has_value(); }

}  // namespace tilepilot::runtime
