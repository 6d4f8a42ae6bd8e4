// Bytes in a file of memory that nobody can change any more: what was verified is what is used.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilepilot::untrusted {

class MemoryFile {
 public:
  // A sealed copy; nullopt if there is no memory.
  static std::optional<MemoryFile> of(std::string_view content);
  // Takes a descriptor; nullopt if what it is open on can still change.
  static std::optional<MemoryFile> taken(int descriptor);

  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  int descriptor() const { return descriptor_; }
  // A path of the file, no two of which are alike in one process: the loader of libraries takes those of one name for
  // one library.
  std::string unique_path() const;
  std::optional<std::string> content() const;

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace tilepilot::untrusted
