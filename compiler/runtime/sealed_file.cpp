#include "compiler/runtime/sealed_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "compiler/runtime/sha256.h"

namespace tilepilot::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "tilepilot-hmac:";
constexpr size_t kTrailerBytes = kMark.size() + 64;
constexpr size_t kSecretBytes = 32;

std::optional<std::string> read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::string trailer(std::string_view content, std::string_view name, std::string_view secret) {
  return std::string(kMark) + hmac_sha256(secret, std::string(name) + "\n" + std::string(content));
}

// Nullopt if there is none, or if it is no secret.
std::optional<std::string> read_secret(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return std::nullopt;
  struct stat info {};
  std::string secret(kSecretBytes + 1, '\0');
  const bool is_ours =
      fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
  const ssize_t size = is_ours ? read(file, secret.data(), secret.size()) : -1;
  close(file);
  secret.pop_back();
  return size == static_cast<ssize_t>(kSecretBytes) ? std::optional(secret) : std::nullopt;
}

// A file of its own with a fresh secret; empty if it cannot be had.
std::string fresh_secret_file(const fs::path& folder) {
  std::string secret(kSecretBytes, '\0');
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) return "";
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  std::string name = (folder / "secret-XXXXXX").string();
  const int file = mkostemp(name.data(), O_CLOEXEC);  // 0600
  if (file < 0) return "";
  const bool written = write(file, secret.data(), secret.size()) == static_cast<ssize_t>(secret.size());
  close(file);
  if (!written) unlink(name.c_str());
  return written ? name : "";
}

}  // namespace

std::optional<std::string> secret_of(const fs::path& folder, bool make) {
  const fs::path path = folder / kSecretFile;
  std::optional<std::string> secret = read_secret(path);
  if (secret || !make) return secret;
  const std::string fresh = fresh_secret_file(folder);
  if (fresh.empty()) return std::nullopt;
  // Of several processes at once one is first; a secret that is none gives way.
  if (link(fresh.c_str(), path.c_str()) != 0 && !(secret = read_secret(path))) rename(fresh.c_str(), path.c_str());
  unlink(fresh.c_str());
  return read_secret(path);
}

bool write_sealed(const fs::path& path, std::string_view content, std::string_view name, std::string_view secret) {
  std::ofstream file(path, std::ios::binary);
  file << content << trailer(content, name, secret);
  file.close();
  return !file.fail();
}

SealedFile read_sealed(const fs::path& path, std::string_view name, std::string_view secret) {
  std::optional<std::string> text = read_all(path);
  if (!text || text->size() < kTrailerBytes) return {};
  const size_t size = text->size() - kTrailerBytes;
  const std::string_view all = *text;
  if (all.substr(size, kMark.size()) != kMark) return {};
  if (all.substr(size) != trailer(all.substr(0, size), name, secret)) return {std::nullopt, true};
  text->resize(size);
  return {std::move(text), false};
}

}  // namespace tilepilot::runtime
