// How literals are written in Python source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::syntax {

// The shortest text that reads back as the same float.
std::string float_text(double value);

// `value` between double quotes, with escapes.
std::string python_literal(std::string_view value);

// Appends text that stands between the quotes `mark`, escaping what cannot stand there.
void append_escaped(std::string& out, std::string_view value, std::string_view mark);

// Whether `value` can stand between the quotes `mark` without any backslash, as inside the fields of an f-string.
bool fits_without_escapes(std::string_view value, std::string_view mark);

}  // namespace tilepilot::syntax
