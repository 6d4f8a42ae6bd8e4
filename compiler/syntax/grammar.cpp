#include "compiler/syntax/grammar.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/syntax/children.h"
#include "compiler/syntax/lexer.h"

namespace tilepilot::syntax {

Grammar::Grammar(const SourceMap& sources, int32_t file, DiagnosticList& diagnostics, TokenList tokens)
    : sources_(sources),
      file_(file),
      diagnostics_(diagnostics),
      file_tokens_(std::move(tokens)),
      tokens_(&file_tokens_.tokens),
      lexical_errors_(&file_tokens_.errors) {}

Body Grammar::module() {
  Body body;
  while (!at(Kind::end)) statement(body);
  return body;
}

Token Grammar::next() {
  Token current = token();
  previous_end_ = current.end;
  if (current.kind != Kind::end) ++at_;
  return current;
}

bool Grammar::accept(Kind expected) {
  if (!at(expected)) return false;
  next();
  return true;
}

void Grammar::expect(Kind expected, std::string_view where) {
  if (accept(expected)) return;
  fail_here(fmt::format("`{}`{}{}", spelling(expected), where.empty() ? "" : " ", where));
}

void Grammar::expect_closing(Kind expected, const Token& opening) {
  if (accept(expected)) return;
  if (failed_ || at(Kind::error)) return fail_here("");
  std::string message = fmt::format("expected `,` or `{}`, found {}", spelling(expected), describe_token());
  Diagnostic diagnostic{DiagnosticKind::syntax_error, span_of(token()), std::move(message), {}, hint_for_token()};
  diagnostic.note(span_of(opening), fmt::format("`{}` opened here", spelling(opening.kind)));
  fail(std::move(diagnostic));
}

Name Grammar::expect_name(std::string_view what) {
  if (at(Kind::name)) return next().name;
  fail_here(std::string(what));
  return Name("_");
}

void Grammar::report(Diagnostic diagnostic) {
  ++errors_;
  bool too_deep = diagnostic.kind == DiagnosticKind::nesting_too_deep;
  if (too_deep && std::exchange(reported_nesting_, true)) return;  // every line further in would repeat it
  diagnostics_.add(std::move(diagnostic));
}

void Grammar::fail(Diagnostic diagnostic) {
  if (!failed_) report(std::move(diagnostic));
  failed_ = true;
  skip_to_line_end();
}

void Grammar::fail_at(Span span, std::string message, std::string hint) {
  fail({DiagnosticKind::syntax_error, span, std::move(message), {}, std::move(hint)});
}

void Grammar::fail_here(std::string expected) {
  if (at(Kind::error)) return fail(std::move((*lexical_errors_)[token().error_index]));
  fail_at(span_of(token()), fmt::format("expected {}, found {}", expected, describe_token()), hint_for_token());
}

void Grammar::fail_unsupported(Span span, std::string message, std::string hint) {
  fail({DiagnosticKind::unsupported_syntax, span, std::move(message), {}, std::move(hint)});
}

void Grammar::nested_too_deeply() {
  fail({DiagnosticKind::nesting_too_deep,
        span_of(token()),
        fmt::format("more than {} levels of nesting", kMaxNesting),
        {},
        "split it with intermediate variables or functions"});
}

void Grammar::skip_to_line_end() {
  while (!at(Kind::newline) && !at(Kind::end)) ++at_;
}

void Grammar::skip_block() {
  if (!at(Kind::newline) || kind_after() != Kind::indent) return;
  next();
  int depth = 0;
  do {
    depth += at(Kind::indent) ? 1 : at(Kind::dedent) ? -1 : 0;
    next();
  } while (depth > 0 && !at(Kind::end));
}

std::string Grammar::describe_token() const {
  switch (kind()) {
    case Kind::newline:
      return "end of line";
    case Kind::end:
      return tokens_ == &file_tokens_.tokens ? "end of file" : "end of the expression";
    case Kind::indent:
      return "an indented line";
    case Kind::dedent:
      return "the end of the block";
    case Kind::string:
      return "a string";
    default:
      return fmt::format("`{}`", sources_.text(span_of(token())));
  }
}

std::string Grammar::hint_for_token() const {
  bool doubled = at_ > 0 && (*tokens_)[at_ - 1].kind == kind();
  switch (kind()) {
    case Kind::equal:
      return "to compare, write `==`";
    case Kind::colon_equal:
      return "put an assignment expression in parentheses";
    case Kind::amper:
      return doubled ? "write `and` for a logical and" : "";
    case Kind::vbar:
      return doubled ? "write `or` for a logical or" : "";
    default:
      return is_keyword(kind()) ? fmt::format("`{}` is a keyword", spelling(kind())) : "";
  }
}

ExprPtr Grammar::make(Expr::Node node, uint32_t begin) {
  int height = 0;
  for_each_child(node, [&](const Expr& child) { height = std::max<int>(height, child.height); });
  Span span = span_from(begin);
  if (height >= kMaxTreeHeight) {
    fail({DiagnosticKind::nesting_too_deep,
          span,
          fmt::format("the expression chains more than {} operators", kMaxTreeHeight),
          {},
          "split it with intermediate variables"});
    return std::make_unique<Expr>(Expr{NoneLiteral{}, span});
  }
  return std::make_unique<Expr>(Expr{std::move(node), span, static_cast<uint16_t>(height + 1)});
}

ModuleRef parse(const SourceMap& sources, int32_t file, DiagnosticList& diagnostics) {
  Grammar grammar(sources, file, diagnostics, lex(sources, file));
  auto module = std::make_shared<Module>(Module{file, grammar.module()});
  return grammar.has_errors() ? nullptr : module;
}

}  // namespace tilepilot::syntax
