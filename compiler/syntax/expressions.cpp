// Operators, calls, subscripts: everything between an atom and a statement.
#include <fmt/format.h>

#include <array>
#include "compiler/syntax/grammar.h"

namespace tilepilot::syntax {
namespace {

using Kind = TokenKind;

struct BinaryRow {
  Kind token;
  int precedence;
  BinaryOp op;
};
constexpr std::array<BinaryRow, 12> kBinaryRows{{{Kind::vbar, 1, BinaryOp::bit_or},
                                                 {Kind::circumflex, 2, BinaryOp::bit_xor},
                                                 {Kind::amper, 3, BinaryOp::bit_and},
                                                 {Kind::left_shift, 4, BinaryOp::shl},
                                                 {Kind::right_shift, 4, BinaryOp::shr},
                                                 {Kind::plus, 5, BinaryOp::add},
                                                 {Kind::minus, 5, BinaryOp::sub},
                                                 {Kind::star, 6, BinaryOp::mul},
                                                 {Kind::slash, 6, BinaryOp::div},
                                                 {Kind::double_slash, 6, BinaryOp::floor_div},
                                                 {Kind::percent, 6, BinaryOp::mod},
                                                 {Kind::at, 6, BinaryOp::matmul}}};

struct Binary {
  int precedence = 0;  // 0: not a binary operator
  BinaryOp op{};
};

constexpr std::array<Binary, 128> make_binary_table() {
  std::array<Binary, 128> table{};
  for (const BinaryRow& row : kBinaryRows) table[static_cast<size_t>(row.token)] = {row.precedence, row.op};
  return table;
}
constexpr std::array<Binary, 128> kBinary = make_binary_table();

constexpr std::array<bool, 128> make_expression_starts() {
  std::array<bool, 128> starts{};
  for (Kind kind : {Kind::name, Kind::integer, Kind::real, Kind::string, Kind::lpar, Kind::lsqb, Kind::lbrace,
                    Kind::plus, Kind::minus, Kind::tilde, Kind::kw_not, Kind::kw_lambda, Kind::kw_none, Kind::kw_true,
                    Kind::kw_false, Kind::ellipsis, Kind::star, Kind::kw_await, Kind::error}) {
    starts[static_cast<size_t>(kind)] = true;
  }
  return starts;
}
constexpr std::array<bool, 128> kStartsExpression = make_expression_starts();

}  // namespace

bool Grammar::starts_expression() const { return kStartsExpression[static_cast<size_t>(kind())]; }

ExprPtr Grammar::expression() {
  Level level(*this);
  if (at(Kind::kw_lambda)) return lambda();
  uint32_t begin = token().begin;
  ExprPtr then = disjunction();
  if (!accept(Kind::kw_if)) return then;
  ExprPtr condition = disjunction();
  expect(Kind::kw_else, "in a conditional expression");
  ExprPtr otherwise = expression();
  return make(ConditionalExpr{std::move(condition), std::move(then), std::move(otherwise)}, begin);
}

ExprPtr Grammar::named_expression() {
  if (!at(Kind::name) || kind_after() != Kind::colon_equal) return expression();
  uint32_t begin = token().begin;
  Name name = next().name;
  next();
  ExprPtr value = expression();
  return make(NamedExpr{name, std::move(value)}, begin);
}

ExprPtr Grammar::starred() {
  uint32_t begin = next().begin;
  ExprPtr value = binary(1);
  return make(StarredExpr{std::move(value)}, begin);
}

ExprPtr Grammar::starred_or_named() { return at(Kind::star) ? starred() : named_expression(); }

ExprPtr Grammar::tuple_or_single() {
  uint32_t begin = token().begin;
  ExprPtr first = at(Kind::star) ? starred() : expression();
  if (!at(Kind::comma)) {
    if (std::holds_alternative<StarredExpr>(first->node)) {
      fail_at(first->span, "a starred expression cannot stand alone", "`*x,` with a comma makes a tuple");
    }
    return first;
  }
  TupleExpr tuple;
  tuple.items.push_back(std::move(first));
  while (accept(Kind::comma) && starts_expression()) {
    tuple.items.push_back(at(Kind::star) ? starred() : expression());
  }
  return make(std::move(tuple), begin);
}

ExprPtr Grammar::yield_or_tuple() { return at(Kind::kw_yield) ? yield_expression() : tuple_or_single(); }

ExprPtr Grammar::yield_expression() {
  Token keyword = next();
  if (!context_.in_function) fail_at(span_of(keyword), "`yield` outside a function");
  context_.is_generator = true;
  ++yields_;
  YieldExpr yield;
  yield.from = accept(Kind::kw_from);
  if (yield.from) {
    yield.value = expression();
  } else if (starts_expression()) {
    yield.value = tuple_or_single();
  }
  return make(std::move(yield), keyword.begin);
}

ExprPtr Grammar::disjunction() {
  uint32_t begin = token().begin;
  ExprPtr first = conjunction();
  if (!at(Kind::kw_or)) return first;
  BoolExpr result{false, {}};
  result.operands.push_back(std::move(first));
  while (accept(Kind::kw_or)) result.operands.push_back(conjunction());
  return make(std::move(result), begin);
}

ExprPtr Grammar::conjunction() {
  uint32_t begin = token().begin;
  ExprPtr first = inversion();
  if (!at(Kind::kw_and)) return first;
  BoolExpr result{true, {}};
  result.operands.push_back(std::move(first));
  while (accept(Kind::kw_and)) result.operands.push_back(inversion());
  return make(std::move(result), begin);
}

ExprPtr Grammar::inversion() {
  if (!at(Kind::kw_not)) return comparison();
  Level level(*this);
  if (failed_) return placeholder();
  uint32_t begin = next().begin;
  ExprPtr operand = inversion();
  return make(UnaryExpr{UnaryOp::logical_not, std::move(operand)}, begin);
}

bool Grammar::accept_comparison(CompareOp& op) {
  switch (kind()) {
    case Kind::equal_equal:
      op = CompareOp::eq;
      break;
    case Kind::not_equal:
      op = CompareOp::ne;
      break;
    case Kind::less:
      op = CompareOp::lt;
      break;
    case Kind::less_equal:
      op = CompareOp::le;
      break;
    case Kind::greater:
      op = CompareOp::gt;
      break;
    case Kind::greater_equal:
      op = CompareOp::ge;
      break;
    case Kind::kw_in:
      op = CompareOp::in;
      break;
    case Kind::kw_not:
      if (kind_after() != Kind::kw_in) return false;
      next();
      op = CompareOp::not_in;
      break;
    case Kind::kw_is:
      if (kind_after() == Kind::kw_not) next();
      op = at(Kind::kw_not) ? CompareOp::is_not : CompareOp::is;
      break;
    default:
      return false;
  }
  next();
  return true;
}

ExprPtr Grammar::comparison() {
  uint32_t begin = token().begin;
  ExprPtr first = binary(1);
  CompareOp op{};
  if (!accept_comparison(op)) return first;
  CompareExpr result{std::move(first), {}, {}};
  do {
    result.ops.push_back(op);
    result.rest.push_back(binary(1));
  } while (accept_comparison(op));
  return make(std::move(result), begin);
}

// Precedence climbing: operators of at least `min_precedence`, all of them left-associative.
ExprPtr Grammar::binary(int min_precedence) {
  uint32_t begin = token().begin;
  ExprPtr left = unary();
  for (;;) {
    Binary row = kBinary[static_cast<size_t>(kind())];
    if (row.precedence < min_precedence || row.precedence == 0) return left;
    next();
    ExprPtr right = binary(row.precedence + 1);
    left = make(BinaryExpr{row.op, std::move(left), std::move(right)}, begin);
  }
}

ExprPtr Grammar::unary() {
  UnaryOp op{};
  switch (kind()) {
    case Kind::minus:
      op = UnaryOp::minus;
      break;
    case Kind::plus:
      op = UnaryOp::plus;
      break;
    case Kind::tilde:
      op = UnaryOp::invert;
      break;
    default:
      return power();
  }
  Level level(*this);
  if (failed_) return placeholder();
  uint32_t begin = next().begin;
  ExprPtr operand = unary();
  return make(UnaryExpr{op, std::move(operand)}, begin);
}

ExprPtr Grammar::power() {
  uint32_t begin = token().begin;
  ExprPtr base = primary();
  if (!at(Kind::double_star)) return base;
  Level level(*this);
  if (failed_) return base;
  next();
  ExprPtr exponent = unary();
  return make(BinaryExpr{BinaryOp::pow, std::move(base), std::move(exponent)}, begin);
}

ExprPtr Grammar::primary() {
  uint32_t begin = token().begin;
  ExprPtr result = atom();
  for (;;) {
    if (accept(Kind::dot)) {
      Span name_span = span_of(token());
      Name name = expect_name("an attribute name after `.`");
      result = make(AttributeExpr{std::move(result), name, name_span}, begin);
    } else if (at(Kind::lpar)) {
      result = call(std::move(result), begin);
    } else if (at(Kind::lsqb)) {
      result = subscript(std::move(result), begin);
    } else {
      return result;
    }
  }
}

ExprPtr Grammar::subscript(ExprPtr object, uint32_t begin) {
  Token opening = next();
  uint32_t index_begin = token().begin;
  ExprPtr index = subscript_item();
  if (at(Kind::comma) || std::holds_alternative<StarredExpr>(index->node)) {
    TupleExpr tuple;
    tuple.items.push_back(std::move(index));
    while (accept(Kind::comma) && !at(Kind::rsqb) && !failed_) tuple.items.push_back(subscript_item());
    index = make(std::move(tuple), index_begin);
  }
  expect_closing(Kind::rsqb, opening);
  return make(SubscriptExpr{std::move(object), std::move(index)}, begin);
}

ExprPtr Grammar::subscript_item() {
  uint32_t begin = token().begin;
  ExprPtr start;
  if (!at(Kind::colon)) {
    bool plain = !at(Kind::star) && kind_after() != Kind::colon_equal;
    start = starred_or_named();
    if (!at(Kind::colon)) return start;
    if (!plain) fail_at(start->span, "the start of a slice needs parentheses around this");
  }
  next();
  auto ends = [&] { return at(Kind::colon) || at(Kind::comma) || at(Kind::rsqb); };
  SliceExpr slice{std::move(start), {}, {}};
  if (!ends()) slice.stop = expression();
  if (accept(Kind::colon) && !ends()) slice.step = expression();
  return make(std::move(slice), begin);
}

ExprPtr Grammar::call(ExprPtr callee, uint32_t begin) {
  Token opening = next();
  CallExpr result{std::move(callee), {}, {}};
  while (!at(Kind::rpar) && !failed_) {
    argument(result);
    if (!accept(Kind::comma)) break;
  }
  expect_closing(Kind::rpar, opening);
  return make(std::move(result), begin);
}

void Grammar::argument(CallExpr& call) {
  uint32_t begin = token().begin;
  bool unpacked_keywords = !call.keywords.empty() && call.keywords.back().name.id() == nullptr;
  if (accept(Kind::double_star)) {
    ExprPtr value = expression();
    call.keywords.push_back({Name(), std::move(value), span_from(begin)});
    return;
  }
  if (at(Kind::name) && kind_after() == Kind::equal) return keyword_argument(call, begin);
  if (accept(Kind::star)) {
    ExprPtr value = expression();
    call.args.push_back(make(StarredExpr{std::move(value)}, begin));
    if (unpacked_keywords) fail_at(span_from(begin), "an argument of `*` follows one of `**`");
    return;
  }
  size_t yields = yields_;
  ExprPtr value = named_expression();
  if (at(Kind::kw_for) || at(Kind::kw_async)) {
    ComprehensionExpr head{ComprehensionExpr::Kind::generator, std::move(value), {}, comprehension_clauses(yields)};
    value = comprehension(std::move(head), begin);
    bool alone = call.args.empty() && call.keywords.empty() && !at(Kind::comma);
    if (!alone) fail_at(value->span, "a generator beside other arguments needs its own parentheses");
  }
  if (!call.keywords.empty()) fail_at(value->span, "a positional argument follows a keyword argument");
  if (at(Kind::equal)) {
    fail_at(cover(value->span, span_of(token())), "the left side of `=` in a call must be a parameter name",
            "to compare, write `==`");
  }
  call.args.push_back(std::move(value));
}

void Grammar::keyword_argument(CallExpr& call, uint32_t begin) {
  Token name = next();
  next();
  for (const Keyword& earlier : call.keywords) {
    if (earlier.name == name.name) {
      return fail_at(span_of(name), fmt::format("keyword argument `{}` is given twice", name.name.text()));
    }
  }
  ExprPtr value = expression();
  call.keywords.push_back({name.name, std::move(value), span_from(begin)});
}

ExprPtr Grammar::lambda() {
  uint32_t begin = next().begin;
  LambdaExpr result;
  result.parameters = parameters(Kind::colon, false);
  expect(Kind::colon, "after the parameters of `lambda`");
  size_t yields = yields_;
  Context outer = std::exchange(context_, {true, true, false, false});
  result.body = expression();
  context_ = outer;
  if (yields_ > yields) fail_unsupported(result.body->span, "`yield` in a `lambda` is not supported", "write a `def`");
  return make(std::move(result), begin);
}

}  // namespace tilepilot::syntax
