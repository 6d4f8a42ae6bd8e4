// Statements of one line, and how parsing goes on after a bad one.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "compiler/syntax/grammar.h"

namespace tilepilot::syntax {
namespace {

using Kind = TokenKind;

struct AugmentedRow {
  Kind token;
  BinaryOp op;
};
constexpr std::array<AugmentedRow, 13> kAugmented{{{Kind::plus_equal, BinaryOp::add},
                                                   {Kind::minus_equal, BinaryOp::sub},
                                                   {Kind::star_equal, BinaryOp::mul},
                                                   {Kind::at_equal, BinaryOp::matmul},
                                                   {Kind::slash_equal, BinaryOp::div},
                                                   {Kind::double_slash_equal, BinaryOp::floor_div},
                                                   {Kind::percent_equal, BinaryOp::mod},
                                                   {Kind::double_star_equal, BinaryOp::pow},
                                                   {Kind::left_shift_equal, BinaryOp::shl},
                                                   {Kind::right_shift_equal, BinaryOp::shr},
                                                   {Kind::amper_equal, BinaryOp::bit_and},
                                                   {Kind::vbar_equal, BinaryOp::bit_or},
                                                   {Kind::circumflex_equal, BinaryOp::bit_xor}}};

std::optional<BinaryOp> augmented_op(Kind kind) {
  for (const AugmentedRow& row : kAugmented) {
    if (row.token == kind) return row.op;
  }
  return std::nullopt;
}

}  // namespace

void Grammar::statement(Body& body) {
  bool after_failure = std::exchange(failed_, false);
  if (at(Kind::indent)) return stray_block(after_failure);
  if (at(Kind::newline)) {  // only behind a lexical error
    next();
    failed_ = after_failure;
    return;
  }
  uint32_t begin = token().begin;
  if (at_compound()) {
    Stmt::Node node = compound();
    body.push_back({std::move(node), span_from(begin)});
  } else if (at_stray_clause()) {
    stray_clause(after_failure);
  } else {
    simple_line(body);
  }
}

void Grammar::simple_line(Body& body) {
  do {
    uint32_t begin = token().begin;
    Stmt::Node node = simple();
    body.push_back({std::move(node), span_from(begin)});
  } while (accept(Kind::semi) && !at(Kind::newline));
  if (failed_ && !at(Kind::newline)) return;  // a failed statement that skipped its block
  if (!at(Kind::newline)) fail_line_end(body.back());
  accept(Kind::newline);
}

// Something follows a complete statement on its line.
void Grammar::fail_line_end(const Stmt& statement) {
  const auto* expression = std::get_if<ExprStmt>(&statement.node);
  const auto* name = expression != nullptr ? std::get_if<NameExpr>(&expression->value->node) : nullptr;
  if (name == nullptr || at(Kind::error)) return fail_here("an operator or the end of the line");
  std::string_view word = name->name.text();
  if (word == "print" || word == "exec") {
    return fail_at(span_of(token()), fmt::format("expected `(` after `{}`, found {}", word, describe_token()),
                   fmt::format("call it: `{}(...)`", word));
  }
  std::string_view keyword = nearest_keyword(word);
  std::string message = fmt::format("expected an operator or the end of the line, found {}", describe_token());
  fail_at(span_of(token()), std::move(message),
          keyword.empty() ? hint_for_token() : fmt::format("did you mean `{}` instead of `{}`?", keyword, word));
}

void Grammar::stray_block(bool after_failure) {
  if (!after_failure) { report({DiagnosticKind::bad_indentation, span_of(token()), "unexpected indentation", {}, {}}); }
  next();
  // The statement that owns the block is unknown: whatever it may have been, these are allowed inside.
  Context outer = std::exchange(context_, {true, true, true, false});
  Level level(*this);
  Body ignored;
  while (!at(Kind::dedent) && !at(Kind::end)) statement(ignored);
  accept(Kind::dedent);
  context_ = outer;
  failed_ = true;
}

Stmt::Node Grammar::simple() {
  switch (kind()) {
    case Kind::kw_pass:
      next();
      return PassStmt{};
    case Kind::kw_break:
    case Kind::kw_continue:
      return loop_control();
    case Kind::kw_return:
      return return_statement();
    case Kind::kw_raise:
      return raise_statement();
    case Kind::kw_assert:
      return assert_statement();
    case Kind::kw_del:
      return delete_statement();
    case Kind::kw_import:
      return import_statement();
    case Kind::kw_from:
      return import_from_statement();
    case Kind::kw_global:
      next();
      return GlobalStmt{name_list()};
    case Kind::kw_nonlocal:
      return nonlocal_statement();
    default:
      break;
  }
  if (at_compound() || at_stray_clause()) {
    fail_at(span_of(token()), fmt::format("`{}` must start its own line", spelling(kind())));
    return PassStmt{};
  }
  if (at_type_statement()) return type_statement();
  return expression_statement();
}

Stmt::Node Grammar::expression_statement() {
  ExprPtr first = yield_or_tuple();
  if (at(Kind::equal)) return assignment(std::move(first));
  if (at(Kind::colon)) return annotated_assignment(std::move(first));
  std::optional<BinaryOp> op = augmented_op(kind());
  if (!op) return ExprStmt{std::move(first)};
  check_target(*first, TargetUse::augmented);
  next();
  return AugAssignStmt{std::move(first), *op, yield_or_tuple()};
}

Stmt::Node Grammar::assignment(ExprPtr first) {
  AssignStmt result;
  result.value = std::move(first);
  while (at(Kind::equal)) {
    check_target(*result.value, TargetUse::assign);
    accept(Kind::equal);
    result.targets.push_back(std::exchange(result.value, nullptr));
    result.value = yield_or_tuple();
  }
  return result;
}

Stmt::Node Grammar::annotated_assignment(ExprPtr target) {
  if (const auto* name = std::get_if<NameExpr>(&target->node); name != nullptr && kind_after() == Kind::newline) {
    std::string_view keyword = nearest_keyword(name->name.text());
    fail_at(target->span, fmt::format("`{}` does not start a block", name->name.text()),
            keyword.empty() ? "" : fmt::format("did you mean `{}`?", keyword));
    return PassStmt{};
  }
  check_target(*target, TargetUse::annotated);
  next();
  AnnAssignStmt result{std::move(target), expression(), {}};
  if (accept(Kind::equal)) result.value = yield_or_tuple();
  return result;
}

// `type` is an ordinary name elsewhere: only what no expression allows makes it a statement.
bool Grammar::at_type_statement() const {
  return at(Kind::name) && token().name.text() == "type" && kind_after() == Kind::name;
}

Stmt::Node Grammar::type_statement() {
  fail_unsupported(span_of(token()), "`type` statements are not supported", "assign the type to a name");
  return PassStmt{};
}

Stmt::Node Grammar::return_statement() {
  Token keyword = next();
  if (!context_.in_function) fail_at(span_of(keyword), "`return` outside a function");
  ReturnStmt result;
  if (starts_expression()) result.value = tuple_or_single();
  return result;
}

Stmt::Node Grammar::loop_control() {
  Token keyword = next();
  if (!context_.in_loop) fail_at(span_of(keyword), fmt::format("`{}` outside a loop", spelling(keyword.kind)));
  if (keyword.kind == Kind::kw_break) return BreakStmt{};
  return ContinueStmt{};
}

Stmt::Node Grammar::assert_statement() {
  next();
  AssertStmt result{expression(), {}};
  if (accept(Kind::comma)) result.message = expression();
  return result;
}

Stmt::Node Grammar::raise_statement() {
  next();
  RaiseStmt result;
  if (!starts_expression()) return result;
  result.exception = expression();
  if (accept(Kind::kw_from)) result.cause = expression();
  return result;
}

Stmt::Node Grammar::delete_statement() {
  next();
  DeleteStmt result;
  do {
    ExprPtr target = binary(1);
    check_target(*target, TargetUse::remove);
    result.targets.push_back(std::move(target));
  } while (accept(Kind::comma) && starts_expression());
  return result;
}

Stmt::Node Grammar::import_statement() {
  next();
  ImportStmt result;
  do { result.names.push_back(import_alias(true)); } while (accept(Kind::comma));
  return result;
}

Stmt::Node Grammar::import_from_statement() {
  next();
  ImportFromStmt result;
  for (; at(Kind::dot) || at(Kind::ellipsis); next()) result.level += at(Kind::dot) ? 1 : 3;
  if (at(Kind::name) || result.level == 0) result.module = dotted_name();
  expect(Kind::kw_import, "");
  import_names(result);
  return result;
}

void Grammar::import_names(ImportFromStmt& import) {
  if (at(Kind::star)) {
    Span span = span_of(next());
    import.names.push_back({"*", Name(), span});
    return;
  }
  Token opening = token();
  bool parenthesized = accept(Kind::lpar);
  do {
    if (parenthesized && at(Kind::rpar) && !import.names.empty()) break;
    import.names.push_back(import_alias(false));
  } while (accept(Kind::comma) && !failed_);
  if (parenthesized) expect_closing(Kind::rpar, opening);
}

ImportAlias Grammar::import_alias(bool dotted) {
  ImportAlias result;
  uint32_t begin = token().begin;
  result.name = dotted ? dotted_name() : expect_name("a name to import").str();
  if (accept(Kind::kw_as)) result.as = expect_name("a name after `as`");
  result.span = span_from(begin);
  return result;
}

std::string Grammar::dotted_name() {
  std::string name = expect_name("a module name").str();
  while (accept(Kind::dot)) name.append(".").append(expect_name("a module name").text());
  return name;
}

std::vector<Name> Grammar::name_list() {
  std::vector<Name> names;
  do { names.push_back(expect_name("a name")); } while (accept(Kind::comma));
  return names;
}

Stmt::Node Grammar::nonlocal_statement() {
  Token keyword = next();
  if (!context_.in_any_function) fail_at(span_of(keyword), "`nonlocal` outside a function");
  return NonlocalStmt{name_list()};
}

}  // namespace tilepilot::syntax
