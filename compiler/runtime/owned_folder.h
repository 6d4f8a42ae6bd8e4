// Temporary folders whose names tell which process made them, so that what a killed one left behind can be told from
// what another one works in.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

namespace tilepilot::runtime {

// For mkdtemp(): "KIND-MACHINE-PID-XXXXXX" in `parent`.
std::string owned_folder_pattern(const std::filesystem::path& parent, std::string_view kind);

// Removes the folders of that name whose makers ran on this machine, in this namespace of processes, and are wanted no
// more. Returns how many are left there, of any maker of this machine.
int remove_owned_folders(const std::filesystem::path& parent, const std::function<bool(pid_t)>& unwanted);

// Whether there is no such process any more, or only its parent has not heard of its end.
bool is_dead(pid_t process);

}  // namespace tilepilot::runtime
