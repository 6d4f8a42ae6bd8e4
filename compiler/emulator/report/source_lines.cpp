#include "compiler/emulator/report/source_lines.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tilepilot::emulator {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// `#line 12 "matmul.py"`; without a file it is still in the last one.
std::optional<SourceLine> directive(std::string_view line, const std::string& last_file) {
  line = trimmed(line);
  constexpr std::string_view kWord = "#line ";
  if (line.substr(0, kWord.size()) != kWord) return std::nullopt;
  line = trimmed(line.substr(kWord.size()));
  SourceLine found{last_file, 0};
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), found.line);
  if (failure != std::errc()) return std::nullopt;
  line = trimmed(line.substr(static_cast<size_t>(end - line.data())));
  if (line.size() >= 2 && line.front() == '"' && line.back() == '"') found.file = line.substr(1, line.size() - 2);
  return found;
}

// What has been read so far, without comments and literals.
class Position {
 public:
  void read(std::string_view line) {
    for (size_t k = 0; k < line.size(); ++k) {
      const char c = line[k];
      const bool pair = k + 1 < line.size();
      if (in_comment_) {
        if (c == '*' && pair && line[k + 1] == '/') in_comment_ = false, ++k;
      } else if (c == '/' && pair && line[k + 1] == '/') {
        return;
      } else if (c == '/' && pair && line[k + 1] == '*') {
        in_comment_ = true, ++k;
      } else if (c == '"' || c == '\'') {
        for (++k; k < line.size() && line[k] != c; ++k)
          if (line[k] == '\\') ++k;
        last_ = c;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        depth_ += (c == '{') - (c == '}');
        parentheses_ += (c == '(') - (c == ')');
        last_ = c;
      }
    }
  }
  bool takes_statement() const {
    return !in_comment_ && depth_ > 0 && parentheses_ == 0 && (last_ == ';' || last_ == '{' || last_ == '}');
  }

 private:
  bool in_comment_ = false;
  int depth_ = 0, parentheses_ = 0;
  char last_ = 0;
};

}  // namespace

MarkedSource mark_lines(const std::string& source) {
  MarkedSource marked;
  marked.sites.emplace_back();
  std::string file, pending;
  Position position;
  std::string_view rest = source;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (const auto found = directive(line, file)) {
      file = found->file;
      if (marked.sites.back() != *found) marked.sites.push_back(*found);
      if (position.takes_statement()) pending = fmt::format("emulated::at({});\n", marked.sites.size() - 1);
      continue;
    }
    const std::string_view words = trimmed(line);
    if (!pending.empty() && !words.empty()) {
      if (words.substr(0, 4) != "else" && words.substr(0, 4) != "case" && words.front() != '#') marked.text += pending;
      pending.clear();
    }
    position.read(line);
    marked.text.append(line).append("\n");
  }
  return marked;
}

}  // namespace tilepilot::emulator
