// Statements with blocks.
#include <fmt/format.h>

#include "compiler/syntax/grammar.h"
#include "compiler/syntax/pattern.h"

namespace tilepilot::syntax {

bool Grammar::at_compound() const {
  switch (kind()) {
    case Kind::kw_if:
    case Kind::kw_for:
    case Kind::kw_while:
    case Kind::kw_with:
    case Kind::kw_try:
    case Kind::kw_def:
    case Kind::kw_class:
    case Kind::kw_async:
    case Kind::at:
      return true;
    case Kind::name:
      return at_match();
    default:
      return false;
  }
}

bool Grammar::at_stray_clause() const {
  return at(Kind::kw_else) || at(Kind::kw_elif) || at(Kind::kw_except) || at(Kind::kw_finally);
}

Stmt::Node Grammar::compound() {
  switch (kind()) {
    case Kind::kw_if:
      return if_statement();
    case Kind::kw_for:
      return for_statement();
    case Kind::kw_while:
      return while_statement();
    case Kind::kw_with:
      return with_statement();
    case Kind::kw_try:
      return try_statement();
    case Kind::kw_def:
      return function({});
    case Kind::kw_class:
      return class_definition({});
    case Kind::at:
      return decorated();
    case Kind::name:
      return match_statement();
    default:
      break;
  }
  fail_unsupported(span_of(token()), "`async` is not supported", "use a plain `def`, `for` or `with`");
  skip_block();
  return PassStmt{};
}

// `else` and the like without the statement they belong to; behind a failed statement that is no second error.
void Grammar::stray_clause(bool after_failure) {
  if (!after_failure) {
    std::string_view owner = at(Kind::kw_else) ? "`if`, `for`, `while` or `try`" : at(Kind::kw_elif) ? "`if`" : "`try`";
    report({DiagnosticKind::syntax_error,
            span_of(token()),
            fmt::format("`{}` without {} before it", spelling(kind()), owner),
            {},
            {}});
  }
  failed_ = true;
  skip_to_line_end();
  accept(Kind::newline);
}

Body Grammar::block(std::string_view owner, Span header) {
  Body body;
  if (at(Kind::kw_if) && owner == "else")
    fail_at(span_of(token()), "expected `:` after `else`, found `if`", "write `elif`");
  expect(Kind::colon, fmt::format("after `{}`", owner));
  Level level(*this);
  if (!failed_ && !at(Kind::newline)) {
    simple_line(body);
    return body;
  }
  if (!accept(Kind::newline)) return body;
  if (!at(Kind::indent)) {
    if (at(Kind::error)) fail_here("an indented block");
    if (failed_) return body;
    Diagnostic missing{DiagnosticKind::bad_indentation,
                       span_of(token()),
                       fmt::format("expected an indented block after `{}`", owner),
                       {},
                       "`pass` makes an empty block"};
    report(std::move(missing.note(header, fmt::format("`{}` is here", owner))));
    return body;
  }
  next();
  while (!at(Kind::dedent) && !at(Kind::end)) statement(body);
  uint32_t body_end = previous_end_;
  if (!body.empty()) body_end = body.back().span.end;
  accept(Kind::dedent);
  previous_end_ = body_end;
  failed_ = false;
  return body;
}

Body Grammar::loop_body(std::string_view owner, Span header) {
  bool outer = std::exchange(context_.in_loop, true);
  Body body = block(owner, header);
  context_.in_loop = outer;
  return body;
}

Body Grammar::else_block() {
  if (!at(Kind::kw_else)) return {};
  Span header = span_of(next());
  return block("else", header);
}

Stmt::Node Grammar::if_statement() {
  Token keyword = next();
  IfStmt result;
  result.condition = named_expression();
  result.then = block(spelling(keyword.kind), span_of(keyword));
  if (!at(Kind::kw_elif)) {
    result.otherwise = else_block();
    return result;
  }
  Level level(*this);
  uint32_t begin = token().begin;
  if (nesting_ > kMaxLevels) return result;
  Stmt::Node chained = if_statement();
  result.otherwise.push_back({std::move(chained), span_from(begin)});
  return result;
}

Stmt::Node Grammar::for_statement() {
  Span header = span_of(next());
  ForStmt result;
  result.target = target_list();
  expect(Kind::kw_in, "after the target of `for`");
  result.iterable = tuple_or_single();
  result.body = loop_body("for", header);
  result.otherwise = else_block();
  return result;
}

Stmt::Node Grammar::while_statement() {
  Span header = span_of(next());
  WhileStmt result;
  result.condition = named_expression();
  result.body = loop_body("while", header);
  result.otherwise = else_block();
  return result;
}

Stmt::Node Grammar::with_statement() {
  Span header = span_of(next());
  WithStmt result;
  Token opening = token();
  bool parenthesized = at_parenthesized_with_items();
  if (parenthesized) next();
  do {
    if (parenthesized && at(Kind::rpar)) break;
    result.items.push_back(with_item());
  } while (accept(Kind::comma) && !failed_);
  if (parenthesized) expect_closing(Kind::rpar, opening);
  result.body = block("with", header);
  return result;
}

// `with (a as b, c):`, unlike `with (a, b) as c:` or `with (a):`.
bool Grammar::at_parenthesized_with_items() const {
  if (!at(Kind::lpar)) return false;
  int depth = 0;
  bool items = false, generator = false;
  for (size_t i = at_; i < tokens_->size(); ++i) {
    Kind kind = (*tokens_)[i].kind;
    if (kind == Kind::newline) return false;
    if (kind == Kind::lpar || kind == Kind::lsqb || kind == Kind::lbrace) ++depth;
    if (kind == Kind::rpar || kind == Kind::rsqb || kind == Kind::rbrace) --depth;
    if (depth == 0) return (*tokens_)[i + 1].kind == Kind::colon && items && !generator;
    if (depth == 1) {
      items |= kind == Kind::comma || kind == Kind::kw_as;
      generator |= kind == Kind::kw_for;
    }
  }
  return false;
}

WithItem Grammar::with_item() {
  WithItem item{expression(), {}};
  if (!accept(Kind::kw_as)) return item;
  item.target = primary();
  check_target(*item.target, TargetUse::assign);
  return item;
}

Stmt::Node Grammar::try_statement() {
  Token keyword = next();
  TryStmt result;
  result.body = block("try", span_of(keyword));
  bool behind_bare = false;
  while (at(Kind::kw_except)) {
    if (behind_bare) {
      Span last = result.handlers.back().span;
      report({DiagnosticKind::syntax_error, last, "an `except` without a type must be the last one", {}, {}});
    }
    behind_bare = kind_after() == Kind::colon;
    result.handlers.push_back(except_handler());
  }
  if (!result.handlers.empty()) result.otherwise = else_block();
  if (at(Kind::kw_finally)) {
    Span header = span_of(next());
    result.finally = block("finally", header);
  } else if (result.handlers.empty()) {
    report({DiagnosticKind::syntax_error, span_of(keyword), "`try` without `except` or `finally`", {}, {}});
  }
  return result;
}

ExceptHandler Grammar::except_handler() {
  Token keyword = next();
  ExceptHandler result;
  if (at(Kind::star)) {
    fail_unsupported(span_of(token()), "`except*` is not supported", "use a plain `except`");
  } else if (!at(Kind::colon)) {
    result.type = expression();
    if (accept(Kind::kw_as)) result.name = expect_name("a name after `as`");
    if (at(Kind::comma)) {
      fail_at(span_of(token()), "expected `:` after `except`, found `,`", "put several exception types in parentheses");
    }
  }
  result.span = span_from(keyword.begin);
  result.body = block("except", span_of(keyword));
  return result;
}

// `match` is an ordinary name elsewhere: only the block of `case` makes it a statement.
bool Grammar::at_match() const {
  if (!at(Kind::name) || token().name.text() != "match") return false;
  size_t line_end = at_;
  while ((*tokens_)[line_end].kind != Kind::newline && (*tokens_)[line_end].kind != Kind::end) ++line_end;
  if (line_end + 2 >= tokens_->size() || (*tokens_)[line_end - 1].kind != Kind::colon) return false;
  const Token& inside = (*tokens_)[line_end + 2];
  return (*tokens_)[line_end + 1].kind == Kind::indent && inside.kind == Kind::name && inside.name.text() == "case";
}

bool Grammar::at_case() const { return at(Kind::name) && token().name.text() == "case"; }

Stmt::Node Grammar::match_statement() {
  next();
  MatchStmt result;
  const bool is_tuple = at(Kind::star);
  result.subject = is_tuple ? tuple_or_single() : named_expression();
  if (!is_tuple && at(Kind::comma)) {
    TupleExpr tuple;
    const uint32_t begin = result.subject->span.begin;
    tuple.items.push_back(std::move(result.subject));
    while (accept(Kind::comma) && starts_expression()) tuple.items.push_back(starred_or_named());
    result.subject = make(std::move(tuple), begin);
  }
  expect(Kind::colon, "after the subject of `match`");
  if (failed_) {
    skip_block();
    return result;
  }
  accept(Kind::newline);
  next();
  Level level(*this);
  while (at_case()) result.cases.push_back(match_case());
  if (!at(Kind::dedent) && !at(Kind::end)) fail_here("`case`");
  Body ignored;
  while (!at(Kind::dedent) && !at(Kind::end)) statement(ignored);
  const uint32_t body_end = result.cases.empty() ? previous_end_ : result.cases.back().span.end;
  for (size_t i = 0; i + 1 < result.cases.size(); ++i) {
    const MatchCase& each = result.cases[i];
    if (each.guard || !matches_all(*each.pattern)) continue;
    report({DiagnosticKind::syntax_error,
            each.pattern->span,
            "this pattern matches everything, so no `case` behind it is ever reached",
            {},
            "put it last"});
  }
  accept(Kind::dedent);
  previous_end_ = body_end;
  failed_ = false;
  return result;
}

MatchCase Grammar::match_case() {
  Token keyword = next();
  MatchCase result;
  result.pattern = open_pattern();
  check_pattern(*result.pattern);
  if (accept(Kind::kw_if)) result.guard = named_expression();
  result.body = block("case", span_of(keyword));
  result.span = span_from(keyword.begin);
  if (!result.body.empty()) result.span.end = result.body.back().span.end;
  return result;
}

Stmt::Node Grammar::decorated() {
  std::vector<ExprPtr> decorators;
  while (accept(Kind::at)) {
    decorators.push_back(named_expression());
    if (!at(Kind::newline)) fail_here("the end of the line after a decorator");
    accept(Kind::newline);
  }
  if (at(Kind::kw_def)) return function(std::move(decorators));
  if (at(Kind::kw_class)) return class_definition(std::move(decorators));
  if (at(Kind::kw_async)) return compound();
  fail_here("`def` or `class` after a decorator");
  return PassStmt{};
}

void Grammar::refuse_type_parameters() {
  if (at(Kind::lsqb)) fail_unsupported(span_of(token()), "type parameters are not supported", "leave them out");
}

Stmt::Node Grammar::function(std::vector<ExprPtr> decorators) {
  Token keyword = next();
  FunctionDef result;
  result.decorators = std::move(decorators);
  result.name_span = span_of(token());
  result.name = expect_name("a function name");
  refuse_type_parameters();
  Token opening = token();
  expect(Kind::lpar, "after the function name");
  result.parameters = parameters(Kind::rpar, true);
  expect_closing(Kind::rpar, opening);
  if (accept(Kind::arrow)) result.returns = expression();
  Context outer = std::exchange(context_, {true, true, false, false});
  result.body = block("def", span_of(keyword));
  result.is_generator = context_.is_generator;
  context_ = outer;
  return result;
}

Stmt::Node Grammar::class_definition(std::vector<ExprPtr> decorators) {
  Token keyword = next();
  ClassDef result;
  result.decorators = std::move(decorators);
  result.name_span = span_of(token());
  result.name = expect_name("a class name");
  refuse_type_parameters();
  if (at(Kind::lpar)) {
    ExprPtr arguments = call(placeholder(), token().begin);
    if (auto* bases = std::get_if<CallExpr>(&arguments->node)) {
      result.bases = std::move(bases->args);
      result.keywords = std::move(bases->keywords);
    }
    for (const ExprPtr& base : result.bases) {
      bool computed = std::holds_alternative<ComprehensionExpr>(base->node);
      if (computed) fail_at(base->span, "a comprehension cannot be a base class");
    }
  }
  Context outer = std::exchange(context_, {false, context_.in_any_function, false, false});
  result.body = block("class", span_of(keyword));
  context_ = outer;
  return result;
}

}  // namespace tilepilot::syntax
