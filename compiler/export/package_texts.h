// The texts of a package that are for people and for CMake.
#pragma once

#include <string>
#include <vector>

#include "compiler/export/interface.h"

namespace tilepilot::exporting {

std::string readme_text(const Library& library, const std::string& compiler);
// find_package(NAME) finds it wherever the folder lies.
std::string package_config(const Library& library);
std::string examples_build(const Library& library);
// Builds the library again from its source.
std::string source_build(const Library& library, const std::vector<std::string>& flags);
// CMake looks for lower-case names.
std::string package_config_name(const Library& library);

}  // namespace tilepilot::exporting
