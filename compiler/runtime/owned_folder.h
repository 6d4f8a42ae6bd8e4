// Temporary folders whose names tell which process made them, so that what a killed one left behind can be told from
// what another one works in.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tilepilot::runtime {

// For mkdtemp(): "KIND-MACHINE-PID-XXXXXX" in `parent`.
std::string owned_folder_pattern(const std::filesystem::path& parent, std::string_view kind);

// Removes the folders of that name whose makers ran on this machine, in this namespace of processes, and are wanted no
// more. Returns the makers of those that are left there, of any run.
std::vector<pid_t> remove_owned_folders(const std::filesystem::path& parent,
                                        const std::function<bool(pid_t)>& unwanted);

// Whether there is no such process any more, or only its parent has not heard of its end.
bool is_dead(pid_t process);
// Whether it is a process of ours whose run has ended: it is dead, who started it is gone, or is such a process itself.
// Orphans are the children of `adopter`, init or a subreaper (prctl(2)), or of nobody.
bool is_orphan(pid_t process, pid_t adopter);

}  // namespace tilepilot::runtime
