// String literals: joining, escapes, and the fields of f-strings.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/syntax/bytes_literal.h"
#include "compiler/syntax/grammar.h"
#include "compiler/syntax/lexer.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::syntax {

// Adjacent literals on their way to becoming one.
struct Grammar::StringParts {
  std::vector<FormattedPart> parts;
  std::string text;  // behind the last part
  bool formatted = false;
  bool bytes = false;
};

// What stands between the quotes: a byte range of the file. Functions that read a piece of it get a narrower one.
struct Grammar::LiteralBody {
  std::string_view source;  // the whole file, up to `end`
  uint32_t begin;
  uint32_t end;
  bool raw;
  bool bytes = false;
};

namespace {

constexpr int kMaxFormatLevel = 2;  // as in Python: fields may nest in a format, and no deeper

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// The character behind a backslash that stands for one other character, or 0.
char simple_escape(char c) {
  constexpr std::string_view names = "\\'\"abfnrtv";
  constexpr std::string_view values = "\\'\"\a\b\f\n\r\t\v";
  size_t at = names.find(c);
  return at == std::string_view::npos ? '\0' : values[at];
}

// The end of the string literal that starts at `at` inside a field.
uint32_t skip_inner_string(std::string_view text, uint32_t at, uint32_t end) {
  char mark = text[at];
  bool triple = at + 2 < end && text[at + 1] == mark && text[at + 2] == mark;
  std::string_view closing = text.substr(at, triple ? 3 : 1);
  size_t found = text.find(closing, at + closing.size());
  return found == std::string_view::npos ? end : std::min(end, static_cast<uint32_t>(found + closing.size()));
}

}  // namespace

ExprPtr Grammar::strings() {
  uint32_t begin = token().begin;
  StringParts parts;
  for (bool first = true; at(Kind::string); first = false) {
    Token literal = next();
    const bool bytes = std::exchange(parts.bytes, false);
    string_token(literal, parts);
    if (!first && bytes != parts.bytes)
      fail({DiagnosticKind::syntax_error, span_of(literal), "cannot mix bytes and nonbytes literals", {}, {}});
  }
  if (parts.bytes) return bytes_literal(std::move(parts.text), begin);
  if (!parts.formatted) return make(StringLiteral{std::move(parts.text)}, begin);
  if (!parts.text.empty()) parts.parts.emplace_back().text = std::move(parts.text);
  return make(FormattedString{std::move(parts.parts)}, begin);
}

// A call of a built-in function that no program can name: its argument has one character a byte.
ExprPtr Grammar::bytes_literal(std::string characters, uint32_t begin) {
  CallExpr call;
  call.callee = make(NameExpr{Name(kBytesLiteral)}, begin);
  call.args.push_back(make(StringLiteral{std::move(characters)}, begin));
  return make(std::move(call), begin);
}

void Grammar::string_token(const Token& token, StringParts& parts) {
  std::string_view source = sources_.text(file_);
  LiteralBody body{source.substr(0, token.end), token.begin, token.end, false};
  bool formatted = false;
  for (; source[body.begin] != '"' && source[body.begin] != '\''; ++body.begin) {
    char prefix = static_cast<char>(source[body.begin] | 0x20);
    body.raw |= prefix == 'r';
    formatted |= prefix == 'f';
    body.bytes |= prefix == 'b';
  }
  parts.bytes = body.bytes;
  const std::string_view all = source.substr(body.begin, token.end - body.begin);
  if (body.bytes && std::any_of(all.begin(), all.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7F; })) {
    return fail(
        {DiagnosticKind::syntax_error, span_of(token), "bytes can only contain ASCII literal characters", {}, {}});
  }
  char mark = source[body.begin];
  bool triple = body.end - body.begin >= 6 && source[body.begin + 1] == mark && source[body.begin + 2] == mark;
  body.begin += triple ? 3 : 1;
  body.end -= triple ? 3 : 1;
  if (!formatted) return decode(body, parts.text);
  parts.formatted = true;
  format_text(body, 0, parts);
}

void Grammar::decode(const LiteralBody& body, std::string& out) {
  for (uint32_t at = body.begin; at < body.end && !failed_;) {
    std::string_view rest = body.source.substr(at, body.end - at);
    size_t plain = std::min(rest.find_first_of(body.raw ? "\r" : "\\\r"), rest.size());
    out.append(rest.substr(0, plain));
    at += static_cast<uint32_t>(plain);
    if (at >= body.end) break;
    if (body.source[at] == '\\') {
      escape(body, at, out);
    } else {
      out.push_back('\n');
      at += at + 1 < body.end && body.source[at + 1] == '\n' ? 2 : 1;
    }
  }
}

// `at` is at a backslash and moves behind what it escapes.
void Grammar::escape(const LiteralBody& body, uint32_t& at, std::string& out) {
  if (at + 1 >= body.end) {
    out.push_back('\\');
    ++at;
    return;
  }
  char c = body.source[at + 1];
  if (char simple = simple_escape(c); simple != '\0') {
    out.push_back(simple);
    at += 2;
  } else if (c == '\n') {
    at += 2;
  } else if (c == '\r') {
    at += at + 2 < body.end && body.source[at + 2] == '\n' ? 3 : 2;
  } else if (is_octal(c)) {
    uint32_t value = 0;
    uint32_t last = std::min(at + 4, body.end);
    for (++at; at < last && is_octal(body.source[at]); ++at)
      value = value * 8 + static_cast<uint32_t>(body.source[at] - '0');
    append_utf8(out, body.bytes ? value & 0xFF : value);
  } else if (c == 'x' || (!body.bytes && (c == 'u' || c == 'U'))) {
    hex_escape(body, at, out);
  } else if (c == 'N' && !body.bytes) {
    fail_unsupported({file_, at, at + 2}, "named characters `\\N{...}` are not supported",
                     "write the character itself, or `\\u` and its code");
  } else {
    out.push_back('\\');  // not an escape: Python keeps both characters
    ++at;
  }
}

void Grammar::hex_escape(const LiteralBody& body, uint32_t& at, std::string& out) {
  char form = body.source[at + 1];
  uint32_t digits = form == 'x' ? 2 : form == 'u' ? 4 : 8;
  uint32_t value = 0;
  uint32_t stop = at + 2;
  for (; stop < body.end && stop < at + 2 + digits && hex_value(body.source[stop]) >= 0; ++stop) {
    value = value * 16 + static_cast<uint32_t>(hex_value(body.source[stop]));
  }
  Span span{file_, at, stop};
  bool complete = stop == at + 2 + digits;
  bool valid = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
  at = stop;
  if (complete && valid) return append_utf8(out, value);
  std::string message = complete ? fmt::format("U+{:04X} is not a character", value)
                                 : fmt::format("`\\{}` needs {} hexadecimal digits", form, digits);
  fail({DiagnosticKind::bad_literal, span, std::move(message), {}, {}});
}

// The text of an f-string (level 0), or of a format inside a field (level 1 and 2), which ends before its `}`. Returns
// where it stopped.
uint32_t Grammar::format_text(const LiteralBody& body, int level, StringParts& parts) {
  uint32_t begin = body.begin;
  uint32_t at = begin;
  auto take = [&](uint32_t end) { decode({body.source, begin, end, body.raw}, parts.text); };
  while (at < body.end && !failed_) {
    char c = body.source[at];
    char after = at + 1 < body.end ? body.source[at + 1] : '\0';
    bool doubled = level == 0 && after == c;
    if (c == '\\' && !body.raw) {
      at += after == '{' || after == '}' ? 1 : 2;
    } else if ((c == '{' || c == '}') && doubled) {
      take(at + 1);
      begin = at += 2;
    } else if (c == '{') {
      take(at);
      FormattedPart part;
      part.text = std::exchange(parts.text, {});
      at = begin = format_field({body.source, at + 1, body.end, body.raw}, level, part);
      parts.parts.push_back(std::move(part));
    } else if (c == '}') {
      if (level > 0) break;
      fail_at({file_, at, at + 1}, "a single `}` in an f-string", "write `}}` for the character itself");
    } else {
      ++at;
    }
  }
  at = std::min(at, body.end);
  take(at);
  return at;
}

// A field `{value=!conversion:format}`; body.begin is behind its brace. Returns where the text goes on.
uint32_t Grammar::format_field(const LiteralBody& body, int level, FormattedPart& part) {
  Span brace{file_, body.begin - 1, body.begin};
  auto unclosed = [&] {
    fail_at(brace, "`{` in an f-string is never closed", "write `{{` for the character itself");
    return body.end;
  };
  auto peek = [&](uint32_t at) { return at < body.end ? body.source[at] : '\0'; };
  if (level >= kMaxFormatLevel) {
    fail_at(brace, "fields of an f-string nest too deeply");
    return body.end;
  }
  uint32_t at = field_expression_end(body);
  if (at >= body.end) return unclosed();
  part.value = embedded_expression({file_, body.begin, at});
  if (peek(at) == '=') {
    for (++at; peek(at) == ' ';) ++at;
    part.self_text = std::string(body.source.substr(body.begin, at - body.begin));
  }
  if (peek(at) == '!') {
    part.conversion = peek(at + 1);
    if (std::string_view("rsa").find(part.conversion) == std::string_view::npos || part.conversion == '\0') {
      fail_at({file_, at, at + 1}, "expected `r`, `s` or `a` after `!` in an f-string");
    }
    at += 2;
  }
  if (peek(at) == ':') {
    StringParts format;
    uint32_t begin = at + 1;
    at = format_text({body.source, begin, body.end, body.raw}, level + 1, format);
    if (!format.text.empty()) format.parts.emplace_back().text = std::move(format.text);
    part.format = std::make_unique<Expr>(Expr{FormattedString{std::move(format.parts)}, {file_, begin, at}});
  } else if (!part.self_text.empty() && part.conversion == '\0') {
    part.conversion = 'r';
  }
  if (peek(at) == '}') return at + 1;
  if (at < body.end) {
    fail_at({file_, at, at + 1}, fmt::format("expected `}}` in an f-string, found `{}`", body.source[at]));
    return body.end;
  }
  return unclosed();
}

// Where the expression of a field ends: at `=`, `!`, `:` or `}` outside brackets and strings.
uint32_t Grammar::field_expression_end(const LiteralBody& body) {
  int depth = 0;
  uint32_t at = body.begin;
  while (at < body.end) {
    char c = body.source[at];
    char after = at + 1 < body.end ? body.source[at + 1] : '\0';
    bool comparison = after == '=' && std::string_view("=!<>").find(c) != std::string_view::npos;
    if (c == '"' || c == '\'') {
      at = skip_inner_string(body.source, at, body.end);
    } else if (comparison) {
      at += 2;
    } else if (depth == 0 && std::string_view("=!:}").find(c) != std::string_view::npos) {
      return at;
    } else {
      depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
      ++at;
    }
  }
  return body.end;
}

ExprPtr Grammar::embedded_expression(Span span) {
  if (sources_.text(span).find_first_not_of(" \t\r\n\f") == std::string_view::npos) {
    fail_at({file_, span.begin - 1, span.end + 1}, "a field of an f-string is empty",
            "write `{{` and `}}` for the characters themselves");
    return placeholder();
  }
  TokenList inner = lex_expression(sources_, span);
  const auto* outer_tokens = std::exchange(tokens_, &inner.tokens);
  auto* outer_errors = std::exchange(lexical_errors_, &inner.errors);
  size_t outer_at = std::exchange(at_, 0);
  uint32_t outer_end = previous_end_;
  ExprPtr value = yield_or_tuple();
  if (!at(Kind::end)) fail_here("the end of the field");
  tokens_ = outer_tokens;
  lexical_errors_ = outer_errors;
  at_ = outer_at;
  previous_end_ = outer_end;
  if (failed_) skip_to_line_end();
  return value;
}

}  // namespace tilepilot::syntax
