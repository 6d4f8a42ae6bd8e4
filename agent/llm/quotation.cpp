#include "agent/llm/quotation.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/untrusted/printable.h"

namespace tilepilot::agent {
namespace {

size_t longest_row_of(std::string_view text, char letter) {
  size_t longest = 0, row = 0;
  for (const char each : text) {
    row = each == letter ? row + 1 : 0;
    longest = std::max(longest, row);
  }
  return longest;
}

}  // namespace

std::string fenced(std::string_view language, std::string_view given) {
  std::string text(given);
  std::erase(text, '\r');  // of line ends
  constexpr size_t kUsual = 3;
  const std::string fence(std::max(kUsual, longest_row_of(text, '`') + 1), '`');
  const bool ends = !text.empty() && text.back() == '\n';
  return fmt::format("{}{}\n{}{}{}\n", fence, language, printable(text), ends ? "" : "\n", fence);
}

std::string in_one_line(std::string_view text) {
  constexpr size_t kMost = 300;
  std::string line = printable(text, kMost);
  std::replace_if(
      line.begin(), line.end(), [](char letter) { return letter == '\n' || letter == '\t'; }, ' ');
  std::replace(line.begin(), line.end(), '`', '\'');
  return line;
}

std::string in_backticks(std::string_view text) { return "`" + in_one_line(text) + "`"; }

}  // namespace tilepilot::agent
