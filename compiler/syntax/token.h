// Tokens: a kind, a byte range of the file, and what the lexer already worked out (a name, a number, an error).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/syntax/tree.h"

namespace tilepilot::syntax {

enum class TokenKind : uint8_t {
  end,
  newline,
  indent,
  dedent,
  error,  // `error_index` says which
  name,
  integer,
  real,
  string,  // prefix and quotes included; decoded by the parser
#define TP_KEYWORD(kind, spelling) kind,
#define TP_OPERATOR(kind, spelling) kind,
#include "compiler/syntax/tokens.def"
#undef TP_KEYWORD
#undef TP_OPERATOR
};

// The text of a keyword or operator, a word for the other kinds ("name", "newline").
std::string_view spelling(TokenKind kind);
bool is_keyword(TokenKind kind);
// The keyword that a misspelt word may have meant, or "".
std::string_view nearest_keyword(std::string_view word);

struct Token {
  static constexpr int64_t kWide = -1;  // literals have no sign
  TokenKind kind = TokenKind::end;
  uint32_t begin = 0;
  uint32_t end = 0;
  union {
    Name name{};
    int64_t integer;  // kWide: does not fit, its digits are in the text
    double real;
    uint32_t error_index;
  };
};

// A lexical error waits here until the parser meets its token, so that errors come out in the order of the text and a
// statement that is already broken does not report twice.
struct TokenList {
  std::vector<Token> tokens;  // the last one is `end`
  std::vector<Diagnostic> errors;
};

}  // namespace tilepilot::syntax
