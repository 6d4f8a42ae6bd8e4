// Whole files, read and written. Where something fails, `why` tells the reason in words ("it is a folder").
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tilepilot {

// False if the file cannot be read: missing, a folder, a device, no permission, larger than 256 MB. A pipe is read to
// its end, for ten seconds at most.
bool read_file(const std::filesystem::path& path, std::string& text, std::string* why = nullptr);

// Writes a regular file beside itself and renames, so that it is either as it was or complete; symbolic links are
// followed, and mode bits stay. Pipes and character devices are written to. False, and nothing left behind, if it
// failed.
bool write_file(const std::filesystem::path& path, std::string_view text, std::string* why = nullptr);

// Whether `write_file` would have a chance: empty, or why not. Leaves nothing behind, and opens no pipe.
std::string why_unwritable(const std::filesystem::path& path);

}  // namespace tilepilot
