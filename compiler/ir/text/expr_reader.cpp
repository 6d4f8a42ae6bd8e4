#include "compiler/ir/text/expr_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace tilepilot::ir {
namespace {

template <class Enum>
std::optional<Enum> find_word(std::string_view word, Enum first, Enum last) {
  for (auto k = int(first); k <= int(last); ++k) {
    if (to_string(Enum(k)) == word) return Enum(k);
  }
  return std::nullopt;
}

}  // namespace

const Token& ExprReader::take() {
  const Token& token = tokens_[at_];
  if (token.kind != TokenKind::end) ++at_;
  return token;
}

bool ExprReader::accept(std::string_view what) {
  if (!peek().is(what)) return false;
  take();
  return true;
}

Status ExprReader::expect(std::string_view what) {
  if (!accept(what)) return wrong(fmt::format("`{}`", what));
  return {};
}

Error ExprReader::wrong(std::string_view expected) const {
  const std::string found = peek().kind == TokenKind::end ? "the end of the text" : fmt::format("`{}`", peek().text);
  return make_error(DiagnosticKind::ir_syntax_error, peek().span,
                    fmt::format("expected {}, found {}", expected, found));
}

Error ExprReader::too_deep() const {
  return make_error(DiagnosticKind::ir_syntax_error, peek().span, "nesting is too deep");
}

Span ExprReader::since(size_t first) const {
  return at_ > first ? cover(tokens_[first].span, tokens_[at_ - 1].span) : tokens_[first].span;
}

Status ExprReader::declare(const Token& name, Named what) {
  const bool fresh = scopes_.back().emplace(std::string(name.text), std::move(what)).second;
  if (fresh) return {};
  return make_error(DiagnosticKind::ir_syntax_error, name.span,
                    fmt::format("`{}` is already declared here", name.text));
}

Result<Token> ExprReader::new_name() {
  if (peek().kind != TokenKind::word || is_reserved_word(peek().text)) return wrong("a new name");
  return take();
}

const ExprReader::Named* ExprReader::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(std::string(name));
    if (found != scope->end()) return &found->second;
  }
  return nullptr;
}

Result<Buffer> ExprReader::buffer() {
  const Named* named = peek().kind == TokenKind::word ? find(peek().text) : nullptr;
  const Buffer* found = named ? std::get_if<Buffer>(named) : nullptr;
  if (!found) return wrong("the name of a buffer");
  take();
  return *found;
}

Result<DType> ExprReader::dtype() {
  const auto type = parse_dtype(peek().text);
  if (!type || to_string(*type) != peek().text) return wrong("an element type");
  take();
  return *type;
}

Result<ExprReader::NewVars> ExprReader::new_vars() {
  NewVars fresh;
  do {
    fresh.names.push_back(TRY(new_name()));
    const DType type = accept(":") ? TRY(dtype()) : kInt32;
    fresh.vars.push_back(make_var(std::string(fresh.names.back().text), type));
  } while (accept(","));
  TRY(expect("in"));
  return fresh;
}

Status ExprReader::declare_all(const NewVars& fresh) {
  for (size_t k = 0; k < fresh.vars.size(); ++k) TRY(declare(fresh.names[k], fresh.vars[k]));
  return {};
}

Result<int64_t> ExprReader::integer() {
  const bool negative = accept("-");
  if (peek().kind != TokenKind::integer || !peek().suffix.empty()) return wrong("an integer");
  const Operand value = TRY(number(negative));
  return *constant_int(value.expr);
}

// expressions ---------------------------------------------------------------------------------------------------------

Expr ExprReader::settle(const Operand& operand, std::optional<DType> place) {
  if (!operand.bare || !place) return operand.expr;
  if (const auto* i = std::get_if<IntImm>(&operand.expr->node); i && place->is_int()) {
    return int_imm(i->value, *place, operand.expr->span);
  }
  if (const auto* f = std::get_if<FloatImm>(&operand.expr->node); f && place->is_float()) {
    return float_imm(f->value, *place, operand.expr->span);
  }
  return operand.expr;
}

void ExprReader::unify(Operand& left, Operand& right) {
  if (!is_literal(right.expr)) left.expr = settle(left, right.expr->type);
  if (!is_literal(left.expr)) right.expr = settle(right, left.expr->type);
}

Result<Expr> ExprReader::expr(std::optional<DType> place) { return settle(TRY(operand(Precedence::lowest)), place); }

Result<std::vector<Expr>> ExprReader::exprs() {
  std::vector<Expr> result;
  do { result.push_back(TRY(expr())); } while (accept(","));
  return result;
}

Result<std::vector<Expr>> ExprReader::exprs_until(std::string_view closing) {
  if (accept(closing)) return std::vector<Expr>{};
  auto result = TRY(exprs());
  TRY(expect(closing));
  return result;
}

std::optional<BinaryOp> ExprReader::infix() const {
  if (peek().kind == TokenKind::integer || peek().kind == TokenKind::real) return std::nullopt;
  const auto op = find_word(peek().text, BinaryOp::add, BinaryOp::logical_or);
  return op && is_call(*op) ? std::nullopt : op;
}

Result<ExprReader::Operand> ExprReader::operand(Precedence least) {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return too_deep();
  const size_t first = position();
  Operand left = TRY(prefix());
  for (auto op = infix(); op && precedence(*op) >= least; op = infix()) {
    take();
    const Precedence own = precedence(*op);
    Operand right = TRY(operand(Precedence(int(own) + 1)));
    unify(left, right);
    left = {binary(*op, left.expr, right.expr, since(first)), false};
    if (own == Precedence::compare) {
      // Comparisons do not chain.
      const auto following = infix();
      if (following && precedence(*following) == Precedence::compare) return wrong("parentheses around a comparison");
    }
  }
  return left;
}

Result<ExprReader::Operand> ExprReader::prefix() {
  const size_t first = position();
  if (accept("not")) {
    const Operand value = TRY(operand(Precedence::logical_not));
    return Operand{unary(UnaryOp::logical_not, value.expr, since(first))};
  }
  if (accept("~")) {
    const Operand value = TRY(operand(Precedence::prefix));
    return Operand{unary(UnaryOp::bit_not, value.expr, since(first))};
  }
  if (!accept("-")) return primary();
  if (peek().kind == TokenKind::integer || peek().kind == TokenKind::real) return number(true);
  if (const auto infinity = special(peek(), true)) {
    take();
    return *infinity;
  }
  const Operand value = TRY(operand(Precedence::prefix));
  return Operand{unary(UnaryOp::neg, value.expr, since(first))};
}

Result<ExprReader::Operand> ExprReader::number(bool negative) {
  const Token& token = take();
  const std::string digits = (negative ? "-" : "") + std::string(token.text);
  const bool bare = token.suffix.empty();
  const auto type =
      bare ? std::optional(token.kind == TokenKind::real ? kFloat32 : kInt32) : type_of_suffix(token.suffix);
  const auto bad = [&](std::string_view why) {
    return make_error(DiagnosticKind::ir_syntax_error, token.span, fmt::format("`{}` {}", digits, why));
  };
  if (!type || type->is_float() != (token.kind == TokenKind::real)) {
    return bad(fmt::format("has no type `{}`", token.suffix));
  }
  if (token.kind == TokenKind::real)
    return Operand{float_imm(std::strtod(digits.c_str(), nullptr), *type, token.span), bare};
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return bad("does not fit 64 bits");
  return Operand{int_imm(value, *type, token.span), bare};
}

// `true`, `inf`, `nan_bf16`
std::optional<ExprReader::Operand> ExprReader::special(const Token& name, bool negative) const {
  if (name.kind != TokenKind::word) return std::nullopt;
  if (!negative && (name.text == "true" || name.text == "false"))
    return Operand{bool_imm(name.text == "true", name.span)};
  const std::string_view stem = name.text.substr(0, 3);
  if (stem != "inf" && stem != "nan") return std::nullopt;
  const double magnitude =
      stem == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  const double value = negative ? -magnitude : magnitude;
  if (name.text.size() == 3) return Operand{float_imm(value, kFloat32, name.span), true};
  const auto type = name.text[3] == '_' ? type_of_suffix(name.text.substr(4)) : std::nullopt;
  if (!type || !type->is_float()) return std::nullopt;
  return Operand{float_imm(value, *type, name.span)};
}

Result<ExprReader::Operand> ExprReader::primary() {
  if (peek().kind == TokenKind::integer || peek().kind == TokenKind::real) return number(false);
  if (peek().kind == TokenKind::word) return word();
  TRY(expect("("));
  const Operand value = TRY(operand(Precedence::lowest));
  TRY(expect(")"));
  return value;
}

Result<ExprReader::Operand> ExprReader::word() {
  if (auto value = special(peek(), false)) {
    take();
    return *value;
  }
  if (!is_reserved_word(peek().text)) return named(peek());
  const size_t first = position();
  const Token name = peek();
  const Expr value = TRY(call(name));
  auto spanned = std::make_shared<ExprNode>(*value);
  spanned->span = since(first);
  return Operand{std::move(spanned)};
}

Result<ExprReader::Operand> ExprReader::named(const Token& name) {
  const Named* found = find(name.text);
  if (!found) {
    return make_error(DiagnosticKind::ir_syntax_error, name.span, fmt::format("`{}` is not declared", name.text));
  }
  const size_t first = position();
  take();
  if (const auto* var = std::get_if<Var>(found)) return Operand{var_ref(*var, name.span)};
  const Buffer buffer = std::get<Buffer>(*found);
  TRY(expect("["));
  auto indices = TRY(exprs_until("]"));
  return Operand{load(buffer, std::move(indices), since(first))};
}

Result<Expr> ExprReader::pair_call(BinaryOp op) {
  Operand left = TRY(operand(Precedence::lowest));
  TRY(expect(","));
  Operand right = TRY(operand(Precedence::lowest));
  unify(left, right);
  return binary(op, left.expr, right.expr);
}

Result<Expr> ExprReader::select_call() {
  const Expr condition = TRY(expr());
  TRY(expect(","));
  Operand then = TRY(operand(Precedence::lowest));
  TRY(expect(","));
  Operand otherwise = TRY(operand(Precedence::lowest));
  unify(then, otherwise);
  return select(condition, then.expr, otherwise.expr);
}

Result<Expr> ExprReader::call(const Token& name) {
  const auto pair = find_word(name.text, BinaryOp::min, BinaryOp::fmod);
  const auto function = find_word(name.text, MathFn::exp, MathFn::isfinite);
  const auto type = parse_dtype(name.text);
  const bool chooses = name.is("select"), keeps_bits = name.is("reinterpret");
  if (!pair && !function && !type && !chooses && !keeps_bits) return wrong("an expression");
  take();
  TRY(expect("("));
  Expr result;
  if (pair) {
    result = TRY(pair_call(*pair));
  } else if (chooses) {
    result = TRY(select_call());
  } else {
    const Expr value = TRY(expr());
    if (function) result = math(*function, value);
    // Not `cast`, which drops a cast to the same type: the text says it is there.
    if (type) result = std::make_shared<ExprNode>(ExprNode{Cast{value}, *type, {}});
    if (keeps_bits) {
      TRY(expect(","));
      const DType bits_as = TRY(dtype());
      result = reinterpret(value, bits_as);
    }
  }
  TRY(expect(")"));
  return result;
}

Result<Region> ExprReader::whole(const Buffer& buffer, Span span) {
  Region r{buffer, {}, {}, span};
  for (const Expr& extent : buffer->shape) {
    const auto size = constant_int(extent);
    if (!size) {
      return make_error(DiagnosticKind::ir_syntax_error, span,
                        "a buffer of symbolic shape needs its region written out");
    }
    r.start.push_back(int_imm(0));
    r.extent.push_back(*size);
  }
  return r;
}

Result<Region> ExprReader::region() {
  const size_t first = position();
  Region r;
  r.buffer = TRY(buffer());
  if (!accept("[")) return whole(r.buffer, since(first));
  while (!accept("]")) {
    if (!r.start.empty()) TRY(expect(","));
    TRY(axis(r));
  }
  r.span = since(first);
  return r;
}

// `start`, `start : +extent` or, both constant, `start : end`.
Status ExprReader::axis(Region& region) {
  const Expr start = TRY(expr());
  int64_t extent = 1;
  if (accept(":")) {
    const auto begin = constant_int(start);
    const bool from_start = accept("+");
    if (!from_start && !begin) return wrong("`+` and an extent");
    extent = TRY(integer()) - (from_start ? 0 : *begin);
  }
  region.start.push_back(start);
  region.extent.push_back(extent);
  return {};
}

}  // namespace tilepilot::ir
