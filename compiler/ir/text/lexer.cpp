#include "compiler/ir/text/lexer.h"

#include <fmt/format.h>

#include <array>

namespace tilepilot::ir {
namespace {

// Longer marks before their prefixes.
constexpr std::array<std::string_view, 33> kPunctuation{
    "->", "+=", "//", "<<", ">>", "==", "!=", "<=", ">=", ".T", "+", "-", "*", "/", "%", "&", "|",
    "^",  "~",  "<",  ">",  "=",  "(",  ")",  "[",  "]",  "{",  "}", ",", ":", "@", ";", "."};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_word(char c) { return starts_word(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Lexer {
 public:
  Lexer(std::string_view text, int32_t file) : text_(text), file_(file) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      const auto token = next();
      if (!token) {
        const auto here = uint32_t(at_);
        return make_error(DiagnosticKind::ir_syntax_error, {file_, here, here + 1},
                          "a character that the IR's text form does not use");
      }
      tokens.push_back(*token);
    }
    tokens.push_back({TokenKind::end, "end of text", {}, span(at_)});
    return tokens;
  }

 private:
  std::string_view text_;
  int32_t file_;
  size_t at_ = 0;

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Span span(size_t begin) const { return {file_, uint32_t(begin), uint32_t(at_)}; }
  std::string_view since(size_t begin) const { return text_.substr(begin, at_ - begin); }

  void skip_while(bool (*accepts)(char)) {
    while (at_ < text_.size() && accepts(text_[at_])) ++at_;
  }

  void skip_blanks() {
    skip_while(is_space);
    while (peek() == '#') {
      skip_while([](char c) { return c != '\n'; });
      skip_while(is_space);
    }
  }

  std::optional<Token> next() {
    const size_t begin = at_;
    if (is_digit(peek())) return number();
    if (peek() == '"') return string();
    if (starts_word(peek())) {
      skip_while(in_word);
      return Token{TokenKind::word, since(begin), {}, span(begin)};
    }
    for (const std::string_view mark : kPunctuation) {
      if (text_.substr(at_, mark.size()) != mark) continue;
      at_ += mark.size();
      return Token{TokenKind::punctuation, since(begin), {}, span(begin)};
    }
    return std::nullopt;
  }

  // Up to the quote that no backslash precedes; nullopt without one.
  std::optional<Token> string() {
    const size_t begin = at_++;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ >= text_.size()) {
      at_ = begin;
      return std::nullopt;
    }
    ++at_;
    return Token{TokenKind::string, since(begin), {}, span(begin)};
  }

  Token number() {
    const size_t begin = at_;
    TokenKind kind = TokenKind::integer;
    skip_while(is_digit);
    if (peek() == '.' && is_digit(peek(1))) {
      kind = TokenKind::real;
      ++at_;
      skip_while(is_digit);
    }
    const bool sign = peek(1) == '+' || peek(1) == '-';
    if (peek() == 'e' && is_digit(peek(sign ? 2 : 1))) {
      kind = TokenKind::real;
      at_ += sign ? 2 : 1;
      skip_while(is_digit);
    }
    const std::string_view digits = since(begin);
    const size_t suffix = at_;
    skip_while(in_word);
    return {kind, digits, since(suffix), span(begin)};
  }
};

}  // namespace

Result<std::vector<Token>> lex(const SourceMap& sources, int32_t file) { return Lexer(sources.text(file), file).run(); }

}  // namespace tilepilot::ir
