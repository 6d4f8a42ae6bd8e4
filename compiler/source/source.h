// Source text and positions in it. A `Span` is a half-open byte range of one file and travels with every token, tree
// node, IR node and diagnostic; the `SourceMap` owns the texts and turns spans into lines and columns.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tilepilot {

struct Span {
  int32_t file = -1;  // index into the SourceMap; -1: no position (built-in)
  uint32_t begin = 0;
  uint32_t end = 0;

  bool valid() const { return file >= 0; }
  friend bool operator==(const Span&, const Span&) = default;
};

// The smallest span that holds both; an invalid side is ignored. Both must lie in one file.
Span cover(Span a, Span b);

// 1-based line and 1-based column (in code points, as editors show it).
struct Position {
  int line = 0;
  int column = 0;
};

class SourceMap {
 public:
  // Adds a file and returns its index. `name` is what diagnostics print. Texts are never removed.
  int32_t add(std::string name, std::string text);

  std::string_view name(int32_t file) const { return files_[static_cast<size_t>(file)].name; }
  std::string_view text(int32_t file) const { return files_[static_cast<size_t>(file)].text; }
  std::string_view text(Span span) const;
  Position position(int32_t file, uint32_t offset) const;
  // The whole line (without its newline) that holds `offset`.
  std::string_view line_text(int32_t file, uint32_t offset) const;
  size_t size() const { return files_.size(); }

 private:
  struct File {
    std::string name;
    std::string text;
    std::vector<uint32_t> line_starts;
  };
  std::deque<File> files_;
};

}  // namespace tilepilot
