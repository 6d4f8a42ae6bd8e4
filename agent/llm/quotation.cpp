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

std::string fenced_program(std::string_view source) {
  if (source.size() <= kLongestProgram) return fenced("python", source);
  constexpr size_t kShown = 6'000;                      // bytes of the beginning, and of the end
  const size_t begin = source.rfind('\n', kShown) + 1;  // 0: one line without end
  const size_t last = source.find('\n', source.size() - kShown);
  const size_t end = last == std::string_view::npos ? source.size() : last + 1;
  const std::string_view middle = source.substr(begin, end - begin);
  const auto lines = std::count(middle.begin(), middle.end(), '\n') + (middle.ends_with('\n') ? 0 : 1);
  return fenced("python", fmt::format("{}# [{} lines, {} bytes, are not shown here]\n{}", source.substr(0, begin),
                                      lines, middle.size(), source.substr(end)));
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
