#include "compiler/untrusted/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace tilepilot::untrusted {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

std::optional<MemoryFile> MemoryFile::of(std::string_view content) {
  MemoryFile file(memfd_create("tilepilot", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.descriptor_ < 0 || !write_all(file.descriptor_, content) ||
      fcntl(file.descriptor_, F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0)
    return std::nullopt;
  return file;
}

std::optional<MemoryFile> MemoryFile::taken(int descriptor) {
  MemoryFile file(descriptor);
  const int seals = descriptor < 0 ? -1 : fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return std::nullopt;
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string MemoryFile::unique_path() const {
  static std::atomic<unsigned> made{0};
  std::string path = "/proc/self/fd/";
  for (unsigned rest = ++made; rest != 0; rest >>= 1) path += (rest & 1) != 0 ? "./" : "/";
  return path + std::to_string(descriptor_);
}

std::optional<std::string> MemoryFile::content() const {
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) return std::nullopt;
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return text;
}

}  // namespace tilepilot::untrusted
