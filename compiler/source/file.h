// Whole files, read and written.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tilepilot {

// False if the file cannot be read (missing, a folder, no permission).
bool read_file(const std::filesystem::path& path, std::string& text);

// Writes beside the target and renames, so that the file is either as it was or complete. False, and nothing left
// behind, if it failed.
bool write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tilepilot
