#include "agent/llm/nearest_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "agent/llm/quotation.h"
#include "agent/store/line_diff.h"

namespace tilepilot::agent {
namespace {

constexpr size_t kMostQuoted = 20, kMostDifferences = 6;
constexpr double kAlike = 0.4;  // on average: windows below that are another text

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

std::string without_blanks(std::string_view line) {
  std::string text;
  std::copy_if(line.begin(), line.end(), std::back_inserter(text), [](char letter) { return !is_blank(letter); });
  return text;
}

// A line as its pairs of neighbouring letters, sorted; blanks do not count.
struct Line {
  explicit Line(std::string_view given) : text(given), letters(without_blanks(given)) {
    for (size_t i = 0; i + 1 < letters.size(); ++i) pairs.push_back(letters.substr(i, 2));
    std::sort(pairs.begin(), pairs.end());
  }
  std::string_view text;
  std::string letters;
  std::vector<std::string> pairs;
};

std::vector<Line> as_lines(std::string_view text) {
  std::vector<Line> lines;
  for (const std::string_view line : lines_of(text)) lines.emplace_back(line);
  return lines;
}

// 0 to 1: the share of pairs of letters that both have.
double likeness(const Line& one, const Line& other) {
  if (one.letters == other.letters) return 1;
  if (one.pairs.empty() || other.pairs.empty()) return 0;
  std::vector<std::string> common;
  std::set_intersection(one.pairs.begin(), one.pairs.end(), other.pairs.begin(), other.pairs.end(),
                        std::back_inserter(common));
  return 2.0 * static_cast<double>(common.size()) / static_cast<double>(one.pairs.size() + other.pairs.size());
}

struct Window {
  size_t first = 0;
  double likeness = 0;  // of its lines, on average; lines without letters do not count
};

Window nearest_window(const std::vector<Line>& program, const std::vector<Line>& text) {
  Window nearest;
  const auto counted = static_cast<double>(
      std::count_if(text.begin(), text.end(), [](const Line& line) { return !line.letters.empty(); }));
  for (size_t first = 0; first < program.size(); ++first) {
    double sum = 0;
    for (size_t i = 0; i < text.size() && first + i < program.size(); ++i)
      if (!text[i].letters.empty()) sum += likeness(program[first + i], text[i]);
    if (counted > 0 && sum / counted > nearest.likeness) nearest = {first, sum / counted};
  }
  return nearest;
}

size_t indentation_of(std::string_view line) {
  return static_cast<size_t>(std::find_if_not(line.begin(), line.end(), is_blank) - line.begin());
}

std::string difference(const Line& program, const Line& text) {
  if (program.letters == text.letters) {
    const size_t here = indentation_of(program.text), there = indentation_of(text.text);
    if (here != there) return fmt::format("its indentation is {}, under SEARCH {}", here, there);
    return "white space alone differs";
  }
  return fmt::format("under SEARCH it is {}", in_backticks(text.text));
}

}  // namespace

std::string nearest_lines(std::string_view program_text, std::string_view search) {
  const std::vector<Line> program = as_lines(program_text), text = as_lines(search);
  const Window window = nearest_window(program, text);
  if (window.likeness < kAlike) return "No lines are like it.\n";
  const size_t count = std::min(text.size(), program.size() - window.first);
  std::string quoted;
  std::vector<std::string> differences;
  for (size_t i = 0; i < count; ++i) {
    const Line& line = program[window.first + i];
    if (i < kMostQuoted) quoted += fmt::format("{:4} | {}\n", window.first + i + 1, line.text);
    if (line.text != text[i].text)
      differences.push_back(fmt::format("- line {}: {}\n", window.first + i + 1, difference(line, text[i])));
  }
  if (count > kMostQuoted) quoted += "...\n";
  if (count < text.size()) differences.push_back("- the file ends there\n");
  std::string told =
      fmt::format("Nearest are lines {} to {}:\n\n{}\n", window.first + 1, window.first + count, fenced("", quoted));
  for (size_t i = 0; i < std::min(differences.size(), kMostDifferences); ++i) told += differences[i];
  if (differences.size() > kMostDifferences)
    told += fmt::format("- {} further lines differ\n", differences.size() - kMostDifferences);
  return told;
}

std::string places_of(std::string_view program, std::string_view text) {
  const auto lines = lines_of(program), wanted = lines_of(text);
  std::vector<size_t> places;
  for (size_t first = 0; first + wanted.size() <= lines.size(); ++first)
    if (std::equal(wanted.begin(), wanted.end(), lines.begin() + static_cast<std::ptrdiff_t>(first)))
      places.push_back(first + 1);
  if (places.size() < 2) return places.empty() ? "" : fmt::format("line {}", places[0]);
  const size_t last = places.back();
  places.pop_back();
  return fmt::format("lines {} and {}", fmt::join(places, ", "), last);
}

}  // namespace tilepilot::agent
