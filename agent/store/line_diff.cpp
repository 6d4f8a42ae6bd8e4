#include "agent/store/line_diff.h"

#include <algorithm>
#include <cstdint>

namespace tilepilot::agent {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines.push_back(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return lines;
}

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after) {
  using Kind = DiffLine::Kind;
  const auto a = lines_of(before), b = lines_of(after);
  std::vector<DiffLine> diff;
  constexpr size_t kMost = 3000;
  if (a.size() > kMost || b.size() > kMost) {
    for (const auto& line : a) diff.push_back({Kind::removed, std::string(line)});
    for (const auto& line : b) diff.push_back({Kind::added, std::string(line)});
    return diff;
  }
  // common[i][j]: the longest common subsequence of a from i and b from j.
  std::vector<std::vector<uint16_t>> common(a.size() + 1, std::vector<uint16_t>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] =
          a[i] == b[j] ? static_cast<uint16_t>(common[i + 1][j + 1] + 1) : std::max(common[i + 1][j], common[i][j + 1]);
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      diff.push_back({Kind::same, std::string(a[i++])});
      ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      diff.push_back({Kind::removed, std::string(a[i++])});
    } else {
      diff.push_back({Kind::added, std::string(b[j++])});
    }
  }
  return diff;
}

std::vector<DiffLine> shorten_diff(const std::vector<DiffLine>& diff, size_t around) {
  std::vector<char> shown(diff.size(), 0);
  for (size_t i = 0; i < diff.size(); ++i) {
    if (diff[i].kind == DiffLine::Kind::same) continue;
    const size_t begin = i > around ? i - around : 0, end = std::min(diff.size(), i + around + 1);
    std::fill(shown.begin() + static_cast<std::ptrdiff_t>(begin), shown.begin() + static_cast<std::ptrdiff_t>(end), 1);
  }
  std::vector<DiffLine> result;
  for (size_t i = 0; i < diff.size(); ++i) {
    if (shown[i]) result.push_back(diff[i]);
    if (!shown[i] && (i == 0 || shown[i - 1])) result.push_back({DiffLine::Kind::same, "..."});
  }
  return result;
}

}  // namespace tilepilot::agent
