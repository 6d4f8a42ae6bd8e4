// The first-party C++ files of this repository, with their text.
#pragma once

#include <vector>

#include "tests/layering/layers.h"

namespace tilepilot::layering {

std::vector<SourceFile> project_files();

}  // namespace tilepilot::layering
