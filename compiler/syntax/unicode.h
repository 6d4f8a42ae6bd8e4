// UTF-8 and the part of Unicode that reading Python needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilepilot::syntax {

// The offset of the first byte that is not part of well-formed UTF-8; `text.size()` if there is none.
size_t find_invalid_utf8(std::string_view text);

// The code point at `offset` of well-formed text, and how many bytes it takes.
struct CodePoint {
  uint32_t value;
  uint32_t length;
};
CodePoint code_point_at(std::string_view text, size_t offset);

void append_utf8(std::string& out, uint32_t code_point);

// Whether a character beyond ASCII may stand in a name. Wider than Python's rule, which follows the Unicode tables of
// letters: here everything is a letter except spaces, controls, punctuation and symbols. Names are not normalised.
bool is_letter(uint32_t code_point);

}  // namespace tilepilot::syntax
