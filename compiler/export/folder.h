// A folder that files are exported to. What lies there already stays unless an earlier export wrote it: that is in a
// list, `.tilepilot-export`, with the hash of each file.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::exporting {

// Whether something stands in the way of these names. Errors: output_unwritable.
Status check_folder(const std::filesystem::path& folder, const std::vector<std::string>& names);

// Each file appears as a whole. Files of an earlier export that are not written again are removed. Errors:
// output_unwritable; nothing changed then, unless the disk failed between two files.
Status write_folder(const std::filesystem::path& folder, const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace tilepilot::exporting
