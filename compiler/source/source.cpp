#include "compiler/source/source.h"

#include <algorithm>

namespace tilepilot {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::vector<uint32_t> find_line_starts(std::string_view text) {
  std::vector<uint32_t> starts{0};
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    starts.push_back(static_cast<uint32_t>(at + 1));
  }
  return starts;
}

}  // namespace

Span cover(Span a, Span b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

int32_t SourceMap::add(std::string name, std::string text) {
  std::vector<uint32_t> starts = find_line_starts(text);
  files_.push_back({std::move(name), std::move(text), std::move(starts)});
  return static_cast<int32_t>(files_.size() - 1);
}

std::string_view SourceMap::text(Span span) const {
  if (!span.valid()) return {};
  std::string_view whole = text(span.file);
  size_t begin = std::min<size_t>(span.begin, whole.size());
  size_t end = std::clamp<size_t>(span.end, begin, whole.size());
  return whole.substr(begin, end - begin);
}

Position SourceMap::position(int32_t file, uint32_t offset) const {
  const File& source = files_[static_cast<size_t>(file)];
  offset = std::min(offset, static_cast<uint32_t>(source.text.size()));
  auto next = std::upper_bound(source.line_starts.begin(), source.line_starts.end(), offset);
  auto begin = source.text.begin() + *(next - 1);
  auto before = std::count_if(begin, source.text.begin() + offset, [](char c) { return !is_continuation(c); });
  return {static_cast<int>(next - source.line_starts.begin()), static_cast<int>(before) + 1};
}

std::string_view SourceMap::line_text(int32_t file, uint32_t offset) const {
  const File& source = files_[static_cast<size_t>(file)];
  offset = std::min(offset, static_cast<uint32_t>(source.text.size()));
  auto next = std::upper_bound(source.line_starts.begin(), source.line_starts.end(), offset);
  size_t begin = *(next - 1);
  size_t end = next == source.line_starts.end() ? source.text.size() : *next - 1;
  if (end > begin && source.text[end - 1] == '\r') --end;
  return std::string_view(source.text).substr(begin, end - begin);
}

}  // namespace tilepilot
