// Atoms: names, literals, and what stands in brackets.
#include "compiler/syntax/grammar.h"

namespace tilepilot::syntax {

ExprPtr Grammar::atom() {
  uint32_t begin = token().begin;
  switch (kind()) {
    case Kind::name: {
      Name name = next().name;
      return make(NameExpr{name}, begin);
    }
    case Kind::integer:
      return integer();
    case Kind::real: {
      double value = next().real;
      return make(FloatLiteral{value}, begin);
    }
    case Kind::string:
      return strings();
    case Kind::kw_none:
      next();
      return make(NoneLiteral{}, begin);
    case Kind::kw_true:
      next();
      return make(BoolLiteral{true}, begin);
    case Kind::kw_false:
      next();
      return make(BoolLiteral{false}, begin);
    case Kind::ellipsis:
      next();
      return make(EllipsisLiteral{}, begin);
    case Kind::lpar:
      return parenthesized();
    case Kind::lsqb:
      return list_display();
    case Kind::lbrace:
      return brace_display();
    case Kind::kw_await:
      fail_unsupported(span_of(token()), "`await` is not supported", "call the function directly");
      break;
    case Kind::kw_yield:
      fail_at(span_of(token()), "`yield` here needs parentheses");
      break;
    case Kind::star:
      fail_at(span_of(token()), "a starred expression cannot stand here");
      break;
    default:
      fail_here("an expression");
      break;
  }
  return placeholder();
}

ExprPtr Grammar::integer() {
  Token number = next();
  if (number.integer != Token::kWide) return make(IntLiteral{number.integer, nullptr}, number.begin);
  NumberToken literal = read_number(sources_.text(span_of(number)));
  auto wide = std::make_shared<WideInteger>(std::get<WideInteger>(std::move(literal.value)));
  return make(IntLiteral{0, std::move(wide)}, number.begin);
}

ExprPtr Grammar::parenthesized() {
  size_t yields = yields_;
  Token opening = next();
  if (accept(Kind::rpar)) return make(TupleExpr{}, opening.begin);
  if (at(Kind::kw_yield)) {
    ExprPtr yield = yield_expression();
    expect_closing(Kind::rpar, opening);
    return yield;
  }
  ExprPtr first = starred_or_named();
  if (at(Kind::kw_for) || at(Kind::kw_async)) {
    ComprehensionExpr head{ComprehensionExpr::Kind::generator, std::move(first), {}, comprehension_clauses(yields)};
    expect_closing(Kind::rpar, opening);
    return comprehension(std::move(head), opening.begin);
  }
  if (!at(Kind::comma)) {
    bool starred = std::holds_alternative<StarredExpr>(first->node);
    expect_closing(Kind::rpar, opening);
    if (starred) fail_at(first->span, "a starred expression cannot stand alone", "`(*x,)` with a comma makes a tuple");
    return first;
  }
  TupleExpr tuple;
  tuple.items.push_back(std::move(first));
  while (accept(Kind::comma) && !at(Kind::rpar) && !failed_) tuple.items.push_back(starred_or_named());
  expect_closing(Kind::rpar, opening);
  return make(std::move(tuple), opening.begin);
}

ExprPtr Grammar::list_display() {
  size_t yields = yields_;
  Token opening = next();
  ListExpr list;
  if (accept(Kind::rsqb)) return make(std::move(list), opening.begin);
  ExprPtr first = starred_or_named();
  if (at(Kind::kw_for) || at(Kind::kw_async)) {
    ComprehensionExpr head{ComprehensionExpr::Kind::list, std::move(first), {}, comprehension_clauses(yields)};
    expect_closing(Kind::rsqb, opening);
    return comprehension(std::move(head), opening.begin);
  }
  list.items.push_back(std::move(first));
  while (accept(Kind::comma) && !at(Kind::rsqb) && !failed_) list.items.push_back(starred_or_named());
  expect_closing(Kind::rsqb, opening);
  return make(std::move(list), opening.begin);
}

ExprPtr Grammar::brace_display() {
  size_t yields = yields_;
  Token opening = next();
  if (accept(Kind::rbrace)) return make(DictExpr{}, opening.begin);
  if (at(Kind::double_star)) return dict_display(dict_item(), opening);
  bool plain = !at(Kind::star) && kind_after() != Kind::colon_equal;
  ExprPtr first = starred_or_named();
  if (at(Kind::colon) && !plain) fail_at(first->span, "a dictionary key needs parentheses around this");
  if (accept(Kind::colon)) {
    ExprPtr value = expression();
    return dict_display({std::move(first), std::move(value)}, opening);
  }
  if (at(Kind::kw_for) || at(Kind::kw_async)) {
    ComprehensionExpr head{ComprehensionExpr::Kind::set, std::move(first), {}, comprehension_clauses(yields)};
    expect_closing(Kind::rbrace, opening);
    return comprehension(std::move(head), opening.begin);
  }
  SetExpr set;
  set.items.push_back(std::move(first));
  while (accept(Kind::comma) && !at(Kind::rbrace) && !failed_) set.items.push_back(starred_or_named());
  expect_closing(Kind::rbrace, opening);
  return make(std::move(set), opening.begin);
}

std::pair<ExprPtr, ExprPtr> Grammar::dict_item() {
  if (accept(Kind::double_star)) return {nullptr, binary(1)};
  ExprPtr key = expression();
  expect(Kind::colon, "after a dictionary key");
  ExprPtr value = expression();
  return {std::move(key), std::move(value)};
}

ExprPtr Grammar::dict_display(std::pair<ExprPtr, ExprPtr> first, const Token& opening) {
  size_t yields = yields_;
  if (first.first && (at(Kind::kw_for) || at(Kind::kw_async))) {
    ComprehensionExpr head{ComprehensionExpr::Kind::dict, std::move(first.first), std::move(first.second),
                           comprehension_clauses(yields)};
    expect_closing(Kind::rbrace, opening);
    return comprehension(std::move(head), opening.begin);
  }
  DictExpr dict;
  dict.items.push_back(std::move(first));
  while (accept(Kind::comma) && !at(Kind::rbrace) && !failed_) dict.items.push_back(dict_item());
  expect_closing(Kind::rbrace, opening);
  return make(std::move(dict), opening.begin);
}

ExprPtr Grammar::comprehension(ComprehensionExpr parts, uint32_t begin) {
  Span element = parts.element->span;
  if (std::holds_alternative<StarredExpr>(parts.element->node)) {
    fail_at(element, "a starred expression cannot be the element of a comprehension");
  }
  return make(std::move(parts), begin);
}

std::vector<ComprehensionClause> Grammar::comprehension_clauses(size_t yields_before) {
  std::vector<ComprehensionClause> clauses;
  while (at(Kind::kw_for) || at(Kind::kw_async)) {
    if (at(Kind::kw_async)) fail_unsupported(span_of(token()), "`async` is not supported", "use a plain `for`");
    if (failed_) break;
    next();
    ComprehensionClause& clause = clauses.emplace_back();
    clause.target = target_list();
    expect(Kind::kw_in, "in a comprehension");
    size_t yields = yields_;
    clause.iterable = disjunction();
    if (clauses.size() == 1) yields_ = yields;  // the first iterable belongs to the function around
    while (accept(Kind::kw_if)) clause.conditions.push_back(disjunction());
  }
  if (yields_ > yields_before) fail_at(span_of(token()), "`yield` cannot stand inside a comprehension");
  return clauses;
}

}  // namespace tilepilot::syntax
