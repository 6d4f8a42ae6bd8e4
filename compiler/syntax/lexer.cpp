#include "compiler/syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "compiler/syntax/number.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::syntax {
namespace {

using Kind = TokenKind;

enum CharClass : uint8_t { other, letter, digit, quote, operator_char };

constexpr std::array<CharClass, 256> make_char_classes() {
  std::array<CharClass, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<size_t>(c)] = letter;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<size_t>(c)] = letter;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<size_t>(c)] = digit;
  for (size_t c = 0x80; c < 256; ++c) classes[c] = letter;
  classes['_'] = letter;
  classes['"'] = classes['\''] = quote;
  for (char c : std::string_view("()[]{}:,;+-*/|&<>=.%!~^@")) classes[static_cast<size_t>(c)] = operator_char;
  return classes;
}
constexpr std::array<CharClass, 256> kClasses = make_char_classes();

CharClass class_of(char c) { return kClasses[static_cast<unsigned char>(c)]; }
bool is_word(char c) { return class_of(c) == letter || class_of(c) == digit; }

// Token kinds whose spelling starts with a given character, the longest spelling first.
using Candidates = std::array<Kind, 5>;
std::array<Candidates, 128> make_operator_table() {
  std::array<Candidates, 128> table{};
  for (size_t length = 3; length >= 1; --length) {
    for (auto kind = static_cast<size_t>(Kind::lpar); kind <= static_cast<size_t>(Kind::colon_equal); ++kind) {
      std::string_view text = spelling(static_cast<Kind>(kind));
      if (text.size() != length) continue;
      Candidates& row = table[static_cast<size_t>(text[0])];
      *std::find(row.begin(), row.end(), Kind::end) = static_cast<Kind>(kind);
    }
  }
  return table;
}

// The keyword that `word` is, or Kind::name.
Kind keyword_or_name(std::string_view word) {
  constexpr size_t kLongest = 8;
  if (word.size() < 2 || word.size() > kLongest) return Kind::name;
  static const std::array<std::pair<Kind, Kind>, 128> ranges = [] {
    std::array<std::pair<Kind, Kind>, 128> result{};
    for (auto kind = static_cast<size_t>(Kind::kw_false); kind <= static_cast<size_t>(Kind::kw_yield); ++kind) {
      auto& [first, last] = result[static_cast<size_t>(spelling(static_cast<Kind>(kind))[0])];
      if (first == Kind::end) first = static_cast<Kind>(kind);
      last = static_cast<Kind>(kind);
    }
    return result;
  }();
  if ((word[0] & 0x80) != 0) return Kind::name;
  auto [first, last] = ranges[static_cast<size_t>(word[0])];
  for (auto kind = static_cast<size_t>(first); first != Kind::end && kind <= static_cast<size_t>(last); ++kind) {
    if (spelling(static_cast<Kind>(kind)) == word) return static_cast<Kind>(kind);
  }
  return Kind::name;
}

// Keywords that never stand inside an expression: one at the start of a line shows that a bracket was left open.
bool starts_only_statements(Kind kind) {
  constexpr std::array kinds{Kind::kw_assert, Kind::kw_break, Kind::kw_class,   Kind::kw_continue, Kind::kw_def,
                             Kind::kw_del,    Kind::kw_elif,  Kind::kw_except,  Kind::kw_finally,  Kind::kw_global,
                             Kind::kw_import, Kind::kw_pass,  Kind::kw_raise,   Kind::kw_return,   Kind::kw_try,
                             Kind::kw_while,  Kind::kw_with,  Kind::kw_nonlocal};
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

bool is_string_prefix(std::string_view word) {
  auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  if (word.size() == 1) return std::string_view("rbuf").find(lower(word[0])) != std::string_view::npos;
  if (word.size() != 2) return false;
  char first = lower(word[0]);
  char second = lower(word[1]);
  if (second == 'r') std::swap(first, second);
  return first == 'r' && (second == 'b' || second == 'f');
}

class Lexer {
 public:
  Lexer(std::string_view text, Span range, bool is_expression)
      : text_(text.substr(0, range.end)), file_(range.file), pos_(range.begin), is_expression_(is_expression) {
    list_.tokens.reserve((range.end - range.begin) / 4 + 2);
  }

  TokenList run() && {
    size_t invalid = is_expression_ ? text_.size() : find_invalid_utf8(text_);
    if (invalid < text_.size()) {
      fail(static_cast<uint32_t>(invalid), static_cast<uint32_t>(invalid) + 1, Problem::syntax_error,
           "the file is not UTF-8 text", "save it as UTF-8");
      return finish();
    }
    if (!is_expression_ && text_.substr(0, 3) == "\xEF\xBB\xBF") pos_ = 3;
    line_start_ = !is_expression_;
    while (pos_ < text_.size()) {
      if (line_start_ && !read_indentation()) continue;
      if (pos_ < text_.size()) read_token();
    }
    return finish();
  }

 private:
  using Problem = DiagnosticKind;
  struct Indent {
    int column;       // tabs to multiples of 8
    int alternative;  // tabs as 1: the two disagree when tabs and spaces are mixed inconsistently
  };
  struct Bracket {
    char open;
    uint32_t at;
  };

  TokenList finish() {
    auto end = static_cast<uint32_t>(text_.size());
    if (!brackets_.empty() && !stopped_) report_unclosed();
    if (!is_expression_) {
      if (!list_.tokens.empty() && list_.tokens.back().kind != Kind::newline) push(Kind::newline, end, end);
      for (; indents_.size() > 1; indents_.pop_back()) push(Kind::dedent, end, end);
    }
    push(Kind::end, end, end);
    return std::move(list_);
  }

  Token& push(Kind kind, uint32_t begin, uint32_t end) {
    Token& token = list_.tokens.emplace_back();
    token.kind = kind;
    token.begin = begin;
    token.end = end;
    return token;
  }

  Diagnostic& fail(uint32_t begin, uint32_t end, DiagnosticKind kind, std::string message, std::string hint = {}) {
    push(Kind::error, begin, end).error_index = static_cast<uint32_t>(list_.errors.size());
    return list_.errors.emplace_back(Diagnostic{kind, {file_, begin, end}, std::move(message), {}, std::move(hint)});
  }

  // Nothing after this point can be read sensibly.
  void stop() {
    stopped_ = true;
    pos_ = static_cast<uint32_t>(text_.size());
  }

  char peek(uint32_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  bool at_line_end() const { return peek() == '\n' || peek() == '\r'; }

  void skip_line_end() { pos_ += peek() == '\r' && peek(1) == '\n' ? 2 : 1; }
  void skip_comment() {
    while (pos_ < text_.size() && !at_line_end()) ++pos_;
  }

  // At the start of a physical line that starts a logical line. False: the line was blank.
  bool read_indentation() {
    uint32_t begin = pos_;
    Indent indent{0, 0};
    for (;; ++pos_) {
      if (peek() == ' ') {
        ++indent.column, ++indent.alternative;
      } else if (peek() == '\t') {
        indent.column = (indent.column / 8 + 1) * 8, ++indent.alternative;
      } else if (peek() == '\f') {
        indent = {0, 0};
      } else {
        break;
      }
    }
    if (peek() == '#') skip_comment();
    if (pos_ >= text_.size()) return false;
    if (at_line_end()) {
      skip_line_end();
      return false;
    }
    line_start_ = false;
    change_indentation(indent, begin);
    return true;
  }

  void change_indentation(Indent indent, uint32_t begin) {
    const Indent& current = indents_.back();
    if (indent.column == current.column) {
      if (indent.alternative != current.alternative) mixed_tabs(begin);
      indents_.back() = indent;
    } else if (indent.column > current.column) {
      bool mixed = indent.alternative <= current.alternative;
      if (static_cast<int>(indents_.size()) > kMaxNesting) {
        fail(begin, pos_, Problem::nesting_too_deep, fmt::format("more than {} levels of indentation", kMaxNesting));
        return stop();
      }
      indents_.push_back(indent);
      push(Kind::indent, begin, pos_);
      if (mixed) mixed_tabs(begin);
    } else {
      dedent_to(indent, begin);
    }
  }

  void dedent_to(Indent indent, uint32_t begin) {
    while (indents_.back().column > indent.column) {
      indents_.pop_back();
      push(Kind::dedent, pos_, pos_);
    }
    if (indents_.back().column != indent.column) {
      fail(begin, pos_, Problem::bad_indentation, "indentation does not match any outer block");
    } else if (indents_.back().alternative != indent.alternative) {
      mixed_tabs(begin);
    }
  }

  void mixed_tabs(uint32_t begin) {
    fail(begin, pos_, Problem::bad_indentation, "indentation mixes tabs and spaces inconsistently",
         "indent with spaces only");
  }

  void read_token() {
    char c = peek();
    switch (class_of(c)) {
      case letter:
        return read_word();
      case digit:
        return read_number_token();
      case quote:
        return read_string(pos_);
      case operator_char:
        return read_operator();
      case other:
        break;
    }
    if (c == ' ' || c == '\t' || c == '\f') {
      ++pos_;
    } else if (at_line_end()) {
      end_line();
    } else if (c == '#') {
      read_comment();
    } else if (c == '\\') {
      join_line();
    } else {
      bad_character();
    }
  }

  void read_comment() {
    uint32_t begin = pos_;
    skip_comment();
    if (is_expression_)
      fail(begin, pos_, Problem::syntax_error, "a comment cannot stand inside an f-string expression");
  }

  void end_line() {
    uint32_t begin = pos_;
    skip_line_end();
    if (is_expression_ || !brackets_.empty()) {
      fresh_line_ = true;
      fresh_line_at_ = pos_;
      return;
    }
    push(Kind::newline, begin, pos_);
    line_start_ = true;
  }

  void join_line() {
    uint32_t begin = pos_++;
    if (at_line_end() && !is_expression_) return skip_line_end();
    std::string message = is_expression_ ? "a backslash cannot stand inside an f-string expression"
                                         : "a backslash joins lines only as the last character of a line";
    fail(begin, pos_, Problem::syntax_error, std::move(message));
  }

  void read_word() {
    uint32_t begin = pos_;
    bool ascii = true;
    for (; pos_ < text_.size() && is_word(text_[pos_]); ++pos_) ascii &= (text_[pos_] & 0x80) == 0;
    if (!ascii && !check_letters(begin)) return;
    std::string_view word = text_.substr(begin, pos_ - begin);
    if (class_of(peek()) == quote && is_string_prefix(word)) return read_string(begin);
    Kind kind = ascii ? keyword_or_name(word) : Kind::name;
    if (fresh_line_) {
      fresh_line_ = false;
      if (!is_expression_ && starts_only_statements(kind)) return close_brackets_before(fresh_line_at_);
    }
    Token& token = push(kind, begin, pos_);
    if (kind == Kind::name) token.name = Name(word);
  }

  // Cuts the word [begin, pos_) before its first character that is no letter; false if that is its first.
  bool check_letters(uint32_t begin) {
    for (uint32_t at = begin; at < pos_;) {
      CodePoint point = code_point_at(text_, at);
      if (point.value >= 0x80 && !is_letter(point.value)) {
        pos_ = at;
        if (at == begin) bad_character();
        return at != begin;
      }
      at += point.length;
    }
    return true;
  }

  void bad_character() {
    uint32_t begin = pos_;
    CodePoint point = code_point_at(text_, pos_);
    pos_ += point.length;
    bool printable = point.value > 0x20 && !(point.value >= 0x7F && point.value <= 0xA0) && point.value != 0xFEFF;
    std::string shown =
        printable ? fmt::format("`{}`", text_.substr(begin, point.length)) : fmt::format("U+{:04X}", point.value);
    bool curly = point.value >= 0x2018 && point.value <= 0x201F;
    bool blank = point.value == 0xA0 || (point.value >= 0x2000 && point.value <= 0x200F) || point.value == 0x3000;
    std::string hint = curly ? "use the plain quotes `'` and `\"`" : blank ? "replace it by a plain space" : "";
    fail(begin, pos_, Problem::syntax_error, fmt::format("character {} has no meaning here", shown), std::move(hint));
  }

  void read_number_token() {
    fresh_line_ = false;
    NumberToken number = read_number(text_.substr(pos_));
    uint32_t begin = pos_;
    pos_ += number.length;
    if (auto* integer = std::get_if<int64_t>(&number.value)) {
      push(Kind::integer, begin, pos_).integer = *integer;
    } else if (std::holds_alternative<WideInteger>(number.value)) {
      push(Kind::integer, begin, pos_).integer = Token::kWide;
    } else if (auto* real = std::get_if<double>(&number.value)) {
      push(Kind::real, begin, pos_).real = *real;
    } else {
      auto& error = std::get<NumberError>(number.value);
      fail(begin, pos_, error.unsupported ? Problem::unsupported_syntax : Problem::bad_literal,
           std::move(error.message), std::move(error.hint));
    }
  }

  // pos_ is at the opening quote, `begin` at the prefix.
  void read_string(uint32_t begin) {
    fresh_line_ = false;
    char mark = peek();
    bool triple = peek(1) == mark && peek(2) == mark;
    pos_ += triple ? 3 : 1;
    for (; pos_ < text_.size(); ++pos_) {
      char c = text_[pos_];
      if (c == '\\') {
        ++pos_;
        if (peek() == '\r' && peek(1) == '\n') ++pos_;
      } else if (c == mark && (!triple || (peek(1) == mark && peek(2) == mark))) {
        pos_ += triple ? 3 : 1;
        push(Kind::string, begin, pos_);
        return;
      } else if (!triple && at_line_end()) {
        break;
      }
    }
    pos_ = std::min(pos_, static_cast<uint32_t>(text_.size()));
    brackets_.clear();  // the rest of the file is not inside them
    auto quotes = triple ? std::string(3, mark) : std::string(1, mark);
    fail(begin, triple ? begin + 3 : pos_, Problem::bad_literal, "string literal is not closed",
         fmt::format("close it with `{}`", quotes));
  }

  void read_operator() {
    static const std::array<Candidates, 128> table = make_operator_table();
    if (peek() == '.' && class_of(peek(1)) == digit) return read_number_token();
    fresh_line_ = false;
    for (Kind kind : table[static_cast<size_t>(peek())]) {
      if (kind == Kind::end) break;
      std::string_view text = spelling(kind);
      if (text_.substr(pos_, text.size()) != text) continue;
      return accept_operator(kind, static_cast<uint32_t>(text.size()));
    }
    fail(pos_, pos_ + 1, Problem::syntax_error, fmt::format("character `{}` has no meaning here", peek()),
         peek() == '!' ? "write `not` to negate" : "");
    ++pos_;
  }

  void accept_operator(Kind kind, uint32_t length) {
    uint32_t begin = pos_;
    pos_ += length;
    if (kind == Kind::lpar || kind == Kind::lsqb || kind == Kind::lbrace) {
      if (static_cast<int>(brackets_.size()) >= kMaxNesting) {
        fail(begin, pos_, Problem::nesting_too_deep, fmt::format("more than {} nested brackets", kMaxNesting));
        return stop();
      }
      brackets_.push_back({text_[begin], begin});
    } else if (kind == Kind::rpar || kind == Kind::rsqb || kind == Kind::rbrace) {
      if (!close_bracket(begin)) return;
    }
    push(kind, begin, pos_);
  }

  bool close_bracket(uint32_t at) {
    char close = text_[at];
    if (brackets_.empty()) {
      fail(at, at + 1, Problem::syntax_error, fmt::format("`{}` closes nothing", close));
      return false;
    }
    Bracket bracket = brackets_.back();
    brackets_.pop_back();
    if (close == closing(bracket.open)) return true;
    fail(at, at + 1, Problem::syntax_error, fmt::format("`{}` does not match `{}`", close, bracket.open))
        .note({file_, bracket.at, bracket.at + 1}, "opened here");
    return false;
  }

  void report_unclosed() {
    Bracket bracket = brackets_.back();
    fail(bracket.at, bracket.at + 1, Problem::syntax_error, fmt::format("`{}` is never closed", bracket.open));
  }

  // The line at `start` begins a statement although brackets are open: the statement before it ends there.
  void close_brackets_before(uint32_t start) {
    report_unclosed();
    brackets_.clear();
    push(Kind::newline, start, start);
    pos_ = start;
    line_start_ = true;
  }

  std::string_view text_;
  int32_t file_;
  uint32_t pos_;
  bool is_expression_;
  bool line_start_ = false;
  bool fresh_line_ = false;  // nothing but space since the last line end inside brackets
  bool stopped_ = false;
  uint32_t fresh_line_at_ = 0;
  std::vector<Indent> indents_{{0, 0}};
  std::vector<Bracket> brackets_;
  TokenList list_;
};

}  // namespace

TokenList lex(const SourceMap& sources, int32_t file) {
  std::string_view text = sources.text(file);
  return Lexer(text, {file, 0, static_cast<uint32_t>(text.size())}, false).run();
}

TokenList lex_expression(const SourceMap& sources, Span span) {
  return Lexer(sources.text(span.file), span, true).run();
}

}  // namespace tilepilot::syntax
