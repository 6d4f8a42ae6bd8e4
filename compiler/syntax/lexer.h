// Text to tokens, by the lexical rules of Python 3.11: logical lines, indentation, names, numbers, strings, operators.
#pragma once

#include "compiler/syntax/token.h"

namespace tilepilot::syntax {

// The tokens of a file. Lexical errors become `error` tokens.
TokenList lex(const SourceMap& sources, int32_t file);

// The tokens of an expression inside an f-string: line ends and indentation mean nothing there.
TokenList lex_expression(const SourceMap& sources, Span span);

}  // namespace tilepilot::syntax
