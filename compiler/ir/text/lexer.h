// Tokens of the IR's text form.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::ir {

enum class TokenKind : uint8_t { word, integer, real, string, punctuation, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;    // a number's without its suffix, a string's with quotes and escapes
  std::string_view suffix;  // of a number: "i64" of "5i64"
  Span span;

  bool is(std::string_view what) const { return kind != TokenKind::end && kind != TokenKind::string && text == what; }
};

// All tokens of the file, an `end` last. `#` starts a comment that ends with its line.
Result<std::vector<Token>> lex(const SourceMap& sources, int32_t file);

}  // namespace tilepilot::ir
