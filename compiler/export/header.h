// The C header of a library.
#pragma once

#include <string>

#include "compiler/export/interface.h"

namespace tilepilot::exporting {

std::string header_text(const Library& library);

}  // namespace tilepilot::exporting
