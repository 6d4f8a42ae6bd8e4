#include "compiler/syntax/literal_text.h"

#include <fmt/format.h>

#include <cmath>

namespace tilepilot::syntax {

std::string float_text(double value) {
  if (std::isinf(value)) return value > 0 ? "1e999" : "-1e999";
  std::string text = fmt::format("{}", value);
  bool looks_integer = text.find_first_of(".en") == std::string::npos;
  return looks_integer ? text + ".0" : text;
}

std::string python_literal(std::string_view value) {
  std::string out = "\"";
  append_escaped(out, value, "\"");
  out.push_back('"');
  return out;
}

void append_escaped(std::string& out, std::string_view value, std::string_view mark) {
  bool triple = mark.size() == 3;
  for (size_t i = 0; i < value.size(); ++i) {
    char c = value[i];
    // In triple quotes a quote is harmless unless it may become part of the closing ones.
    bool closes = c == mark[0] && (!triple || i + 1 == value.size() || value.substr(i, 3) == mark);
    if (c == '\\' || closes) {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append(triple ? "\n" : "\\n");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (c == '\r') {
      out.append("\\r");
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out.append(fmt::format("\\x{:02x}", static_cast<unsigned>(c)));
    } else {
      out.push_back(c);
    }
  }
}

bool fits_without_escapes(std::string_view value, std::string_view mark) {
  bool triple = mark.size() == 3;
  if (value.find_first_of("\\\r") != std::string_view::npos) return false;
  if (!triple && value.find('\n') != std::string_view::npos) return false;
  if (value.find(mark) != std::string_view::npos) return false;
  return value.empty() || value.back() != mark[0];
}

}  // namespace tilepilot::syntax
