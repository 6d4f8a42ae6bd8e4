// What differs between two texts, line by line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::agent {

// Without their line breaks; the last one needs none.
std::vector<std::string_view> lines_of(std::string_view text);

struct DiffLine {
  enum class Kind { same, removed, added } kind = Kind::same;
  std::string text;
};

// A longest common subsequence of lines stays; texts of more than 3000 lines are one removal and one addition.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after);

// Only what changed, with so many lines of what is around it; a line "..." stands for what is left out.
std::vector<DiffLine> shorten_diff(const std::vector<DiffLine>& diff, size_t around);

}  // namespace tilepilot::agent
