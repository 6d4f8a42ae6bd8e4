// Files of a cache that prove to be whole and of our own making: a trailer holds a code (HMAC) of the name and of the
// bytes before it, under a secret that lies in the cache's folder and that only this user can read. A compiled kernel
// is code: whoever may write to the folder but not read the secret, as a sandboxed process, cannot put one there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tilepilot::runtime {

// The file in the folder that holds its secret.
inline constexpr const char* kSecretFile = "secret";

// The secret of a cache's folder, which is made if it is missing, or if others could read it, where `make` says so.
std::optional<std::string> secret_of(const std::filesystem::path& folder, bool make);

// False if the file cannot be written.
bool write_sealed(const std::filesystem::path& path, std::string_view content, std::string_view name,
                  std::string_view secret);

struct SealedFile {
  std::optional<std::string> content;  // nullopt: there is no such file, it was cut short, or see below
  bool is_foreign = false;             // it was sealed under another name or secret, or changed
};
// Read once: what is returned is what was verified.
SealedFile read_sealed(const std::filesystem::path& path, std::string_view name, std::string_view secret);

}  // namespace tilepilot::runtime
