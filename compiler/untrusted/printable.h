// Text of others (candidates, models, compilers) as a terminal may get it: without bytes that steer the terminal, and
// not without end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tilepilot {

// Control characters but newline and tab are written out (`\x1b`), C1 controls of UTF-8 as well. What passes `limit`
// bytes is left out, and the text ends with how much that was.
std::string printable(std::string_view text, size_t limit = std::string_view::npos);

}  // namespace tilepilot
