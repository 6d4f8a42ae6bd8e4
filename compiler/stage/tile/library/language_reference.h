// docs/language.md: what of the tile language is supported, written from the tables that the compiler uses.
#pragma once

#include <string>

namespace tilepilot::stage {

// Markdown. tests/tile compares it with the file, so that neither can say what the other does not.
std::string language_reference();

}  // namespace tilepilot::stage
