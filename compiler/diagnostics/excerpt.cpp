#include "compiler/diagnostics/excerpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tilepilot {
namespace {

constexpr size_t kTabWidth = 4;
constexpr size_t kMaxColumns = 120;
constexpr size_t kColumnsBeforeCaret = 60;

struct CodePointRange {
  uint32_t first, last;
};
constexpr std::array<CodePointRange, 10> kWide{{{0x1100, 0x115F},
                                                {0x2E80, 0xA4CF},
                                                {0xAC00, 0xD7A3},
                                                {0xF900, 0xFAFF},
                                                {0xFE30, 0xFE6F},
                                                {0xFF00, 0xFF60},
                                                {0xFFE0, 0xFFE6},
                                                {0x1F300, 0x1F64F},
                                                {0x1F900, 0x1FAFF},
                                                {0x20000, 0x3FFFD}}};

size_t columns_of(uint32_t code_point) {
  if (code_point >= 0x300 && code_point <= 0x36F) return 0;
  bool wide = std::any_of(kWide.begin(), kWide.end(),
                          [&](CodePointRange r) { return code_point >= r.first && code_point <= r.last; });
  return wide ? 2 : 1;
}

// One character as the terminal shows it.
struct Cell {
  std::string text;
  size_t columns;
};

size_t sequence_length(unsigned char lead) {
  if (lead >= 0xF0) return 4;
  if (lead >= 0xE0) return 3;
  return lead >= 0xC0 ? 2 : 1;
}

uint32_t decode(std::string_view bytes) {
  if (bytes.size() == 1) return static_cast<unsigned char>(bytes[0]);
  uint32_t value = static_cast<unsigned char>(bytes[0]) & (0x7FU >> bytes.size());
  for (char c : bytes.substr(1)) value = value << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return value;
}

Cell cell_of(std::string_view bytes, size_t column) {
  if (bytes == "\t") {
    size_t width = kTabWidth - column % kTabWidth;
    return {std::string(width, ' '), width};
  }
  auto lead = static_cast<unsigned char>(bytes[0]);
  if (lead < 0x20 || lead == 0x7F) return {"?", 1};
  return {std::string(bytes), columns_of(decode(bytes))};
}

// A source line laid out for display, with the display columns [begin, end) of the marked bytes.
struct Layout {
  std::vector<Cell> cells;
  size_t mark_begin = 0;
  size_t mark_end = 0;
};

Layout lay_out(std::string_view line, size_t mark_begin, size_t mark_end) {
  Layout layout;
  size_t column = 0;
  bool began = false, ended = false;
  for (size_t at = 0; at < line.size();) {
    if (!began && at >= mark_begin) layout.mark_begin = column, began = true;
    if (!ended && at >= mark_end) layout.mark_end = column, ended = true;
    size_t length = std::min(sequence_length(static_cast<unsigned char>(line[at])), line.size() - at);
    layout.cells.push_back(cell_of(line.substr(at, length), column));
    column += layout.cells.back().columns;
    at += length;
  }
  if (!began) layout.mark_begin = column;
  if (!ended) layout.mark_end = column;
  layout.mark_end = std::max(layout.mark_end, layout.mark_begin + 1);
  return layout;
}

struct CroppedLine {
  std::string text;
  size_t mark_begin;
  size_t mark_end;
};

CroppedLine crop(const Layout& layout) {
  size_t first = layout.mark_begin > kColumnsBeforeCaret ? layout.mark_begin - kColumnsBeforeCaret : 0;
  size_t total = 0;
  for (const Cell& cell : layout.cells) total += cell.columns;
  if (total <= kMaxColumns) first = 0;
  size_t last = first + kMaxColumns;
  std::string text = first > 0 ? "..." : "";
  size_t shift = text.size();
  size_t column = 0;
  for (const Cell& cell : layout.cells) {
    if (column >= first && column < last) text += cell.text;
    column += cell.columns;
  }
  if (total > last) text += "...";
  return {std::move(text), layout.mark_begin - first + shift, std::min(layout.mark_end, last) - first + shift};
}

struct Line {
  int number;
  std::string_view text;
  size_t mark_begin;
  size_t mark_end;
};

std::string show(const Line& line, size_t gutter, const ExcerptColors& colors) {
  CroppedLine cropped = crop(lay_out(line.text, line.mark_begin, line.mark_end));
  std::string carets(cropped.mark_end - cropped.mark_begin, '~');
  carets.front() = '^';
  return fmt::format("{}{:>{}} |{}{}{}\n{}{:>{}} |{} {}{}{}{}\n", colors.gutter, line.number, gutter, colors.reset,
                     cropped.text.empty() ? "" : " ", cropped.text, colors.gutter, "", gutter, colors.reset,
                     std::string(cropped.mark_begin, ' '), colors.caret, carets, colors.reset);
}

}  // namespace

std::string excerpt(const SourceMap& sources, Span span, const ExcerptColors& colors) {
  uint32_t last_byte = span.end > span.begin ? span.end - 1 : span.begin;
  Position first = sources.position(span.file, span.begin);
  Position last = sources.position(span.file, last_byte);
  std::string_view whole = sources.text(span.file);
  auto line_at = [&](uint32_t offset, int number) {
    std::string_view text = sources.line_text(span.file, offset);
    auto start = static_cast<size_t>(text.data() - whole.data());
    size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
    size_t begin = span.begin >= start ? span.begin - start : indent;
    return Line{number, text, begin, std::min<size_t>(span.end - start, text.size())};
  };
  size_t gutter = std::max<size_t>(fmt::formatted_size("{}", last.line), 3);
  std::string result = show(line_at(span.begin, first.line), gutter, colors);
  if (last.line > first.line + 1) result += fmt::format("{}{:>{}}{}\n", colors.gutter, "...", gutter, colors.reset);
  if (last.line > first.line) result += show(line_at(last_byte, last.line), gutter, colors);
  return result;
}

}  // namespace tilepilot
