#include "agent/generate/model_line.h"

#include <algorithm>

namespace tilepilot::agent {

Span model_line(std::string_view text, int32_t file, int line) {
  size_t begin = 0;
  for (int current = 1; current < line; ++current) {
    size_t newline = text.find('\n', begin);
    if (newline == std::string_view::npos) return {file, 0, 0};
    begin = newline + 1;
  }
  size_t end = std::min(text.find('\n', begin), text.size());
  begin = std::min(text.find_first_not_of(" \t", begin), end);
  return {file, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

}  // namespace tilepilot::agent
