// Files that prove to be whole: a trailer holds the hash of the bytes before it. Loaders of shared libraries ignore the
// trailer, and a library that was cut short must never reach them: mapping it can kill the process.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tilepilot::runtime {

// Appends the trailer; false if that cannot be done.
bool seal_file(const std::filesystem::path& path);
bool is_sealed(const std::filesystem::path& path);
// What a whole file holds before its trailer.
std::optional<std::string> read_sealed(const std::filesystem::path& path);

}  // namespace tilepilot::runtime
