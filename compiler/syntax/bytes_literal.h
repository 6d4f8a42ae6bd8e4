// How the tree holds `b"..."`: a call of a built-in function of this name, which no program can write, with a string of
// one character a byte.
#pragma once

#include <string_view>

namespace tilepilot::syntax {

inline constexpr std::string_view kBytesLiteral = "b\"\"";

}  // namespace tilepilot::syntax
