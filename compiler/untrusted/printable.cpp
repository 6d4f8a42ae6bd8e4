#include "compiler/untrusted/printable.h"

#include <fmt/format.h>

namespace tilepilot {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// U+0080 to U+009F, which some terminals obey.
bool is_c1_control(std::string_view text, size_t at) {
  if (text[at] != '\xc2' || at + 1 >= text.size()) return false;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next <= 0x9f;
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  size_t end = std::min(limit, text.size());
  while (end < text.size() && end > 0 && is_continuation(text[end])) --end;
  std::string result;
  result.reserve(end);
  for (size_t at = 0; at < end; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (is_c1_control(text.substr(0, end), at)) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++at]));
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += text[at];
    }
  }
  if (end < text.size()) result += fmt::format("... ({} more bytes)", text.size() - end);
  return result;
}

}  // namespace tilepilot
