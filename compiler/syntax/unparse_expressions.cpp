#include <array>

#include "compiler/syntax/bytes_literal.h"
#include "compiler/syntax/literal_text.h"
#include "compiler/syntax/print.h"
#include "compiler/syntax/unparser.h"

namespace tilepilot::syntax {
namespace {

constexpr std::array<Binding, 13> kBinaryBinding{Binding::sum,     Binding::sum,     Binding::product, Binding::product,
                                                 Binding::product, Binding::product, Binding::product, Binding::power,
                                                 Binding::shift,   Binding::shift,   Binding::bit_and, Binding::bit_or,
                                                 Binding::bit_xor};

Binding binding_of(BinaryOp op) { return kBinaryBinding[static_cast<size_t>(op)]; }
Binding tighter(Binding binding) { return static_cast<Binding>(static_cast<int>(binding) + 1); }

struct BindingOf {
  Binding operator()(const UnaryExpr& e) const {
    return e.op == UnaryOp::logical_not ? Binding::logical_not : Binding::unary;
  }
  Binding operator()(const BinaryExpr& e) const { return binding_of(e.op); }
  Binding operator()(const BoolExpr& e) const { return e.is_and ? Binding::logical_and : Binding::logical_or; }
  Binding operator()(const CompareExpr&) const { return Binding::comparison; }
  Binding operator()(const ConditionalExpr&) const { return Binding::conditional; }
  Binding operator()(const LambdaExpr&) const { return Binding::conditional; }
  Binding operator()(const NamedExpr&) const { return Binding::named; }
  Binding operator()(const YieldExpr&) const { return Binding::statement; }
  Binding operator()(const TupleExpr& e) const { return e.items.empty() ? Binding::primary : Binding::tuple; }
  // A negative literal reads back as one, but binds like its sign.
  Binding operator()(const FloatLiteral& e) const { return e.value < 0 ? Binding::unary : Binding::primary; }
  template <class Other>
  Binding operator()(const Other&) const {
    return Binding::primary;
  }
};

bool fits(const Expr& e, Binding place) {
  // A bare tuple is followed by a comma or the end of the line, where `:=` may not stand.
  if (std::holds_alternative<NamedExpr>(e.node)) return place == Binding::named;
  return std::visit(BindingOf{}, e.node) >= place;
}

}  // namespace

void Unparser::expr(const Expr& e, Binding place) {
  bool bare = fits(e, place);
  const auto* tuple = std::get_if<TupleExpr>(&e.node);
  if (!bare) write("(");
  if (!bare && tuple != nullptr) {
    list(tuple->items, Binding::named);
    if (tuple->items.size() == 1) write(",");
  } else {
    std::visit(*this, e.node);
  }
  if (!bare) write(")");
}

void Unparser::list(const std::vector<ExprPtr>& items, Binding place) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) write(", ");
    expr(*items[i], place);
  }
}

void Unparser::operator()(const FloatLiteral& e) { write(float_text(e.value)); }

void Unparser::operator()(const AttributeExpr& e) {
  bool is_integer = std::holds_alternative<IntLiteral>(e.object->node);  // `1.real` would read as a float
  if (is_integer) write("(");
  expr(*e.object, is_integer ? Binding::conditional : Binding::primary);
  if (is_integer) write(")");
  write(".");
  write(e.name.text());
}

void Unparser::operator()(const SubscriptExpr& e) {
  expr(*e.object, Binding::primary);
  write("[");
  const auto* tuple = std::get_if<TupleExpr>(&e.index->node);
  if (tuple != nullptr && !tuple->items.empty()) {
    list(tuple->items, Binding::named);
    if (tuple->items.size() == 1) write(",");
  } else {
    expr(*e.index, Binding::named);
  }
  write("]");
}

void Unparser::operator()(const SliceExpr& e) {
  if (e.start) expr(*e.start, Binding::conditional);
  write(":");
  if (e.stop) expr(*e.stop, Binding::conditional);
  if (!e.step) return;
  write(":");
  expr(*e.step, Binding::conditional);
}

void Unparser::operator()(const CallExpr& e) {
  const auto* callee = std::get_if<NameExpr>(&e.callee->node);
  if (callee != nullptr && callee->name.text() == kBytesLiteral) return bytes(std::get<StringLiteral>(e.args[0]->node));
  expr(*e.callee, Binding::primary);
  const auto* only =
      e.args.size() == 1 && e.keywords.empty() ? std::get_if<ComprehensionExpr>(&e.args[0]->node) : nullptr;
  bool generator = only != nullptr && only->kind == ComprehensionExpr::Kind::generator;
  if (generator) return (*this)(*only);
  write("(");
  arguments(e.args, e.keywords);
  write(")");
}

void Unparser::arguments(const std::vector<ExprPtr>& args, const std::vector<Keyword>& keywords) {
  std::string_view separator;
  for (const ExprPtr& arg : args) {
    write(separator);
    separator = ", ";
    if (const auto* starred = std::get_if<StarredExpr>(&arg->node)) {
      write("*");
      expr(*starred->value, Binding::conditional);
    } else {
      expr(*arg, Binding::named);
    }
  }
  for (const Keyword& keyword : keywords) {
    write(separator);
    separator = ", ";
    if (keyword.name.id() != nullptr) write(keyword.name.text());
    write(keyword.name.id() != nullptr ? "=" : "**");
    expr(*keyword.value, Binding::conditional);
  }
}

void Unparser::operator()(const UnaryExpr& e) {
  write(spelling(e.op));
  if (e.op == UnaryOp::logical_not) write(" ");
  expr(*e.operand, e.op == UnaryOp::logical_not ? Binding::logical_not : Binding::unary);
}

void Unparser::operator()(const BinaryExpr& e) {
  Binding binding = binding_of(e.op);
  bool power = e.op == BinaryOp::pow;
  expr(*e.left, power ? Binding::primary : binding);
  write(" ");
  write(spelling(e.op));
  write(" ");
  expr(*e.right, power ? Binding::unary : tighter(binding));
}

void Unparser::operator()(const BoolExpr& e) {
  Binding operand = e.is_and ? Binding::logical_not : Binding::logical_and;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    if (i > 0) write(e.is_and ? " and " : " or ");
    expr(*e.operands[i], operand);
  }
}

void Unparser::operator()(const CompareExpr& e) {
  expr(*e.first, Binding::bit_or);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    write(" ");
    write(spelling(e.ops[i]));
    write(" ");
    expr(*e.rest[i], Binding::bit_or);
  }
}

void Unparser::operator()(const ConditionalExpr& e) {
  expr(*e.then, Binding::logical_or);
  write(" if ");
  expr(*e.condition, Binding::logical_or);
  write(" else ");
  expr(*e.otherwise, Binding::conditional);
}

void Unparser::operator()(const TupleExpr& e) {
  if (e.items.empty()) return write("()");
  list(e.items, Binding::conditional);
  if (e.items.size() == 1) write(",");
}

void Unparser::operator()(const ListExpr& e) {
  write("[");
  list(e.items, Binding::named);
  write("]");
}

void Unparser::operator()(const SetExpr& e) {
  write("{");
  list(e.items, Binding::named);
  write("}");
}

void Unparser::operator()(const DictExpr& e) {
  write("{");
  std::string_view separator;
  for (const auto& [key, value] : e.items) {
    write(separator);
    separator = ", ";
    if (key) expr(*key, Binding::conditional);
    write(key ? ": " : "**");
    expr(*value, key ? Binding::conditional : Binding::bit_or);
  }
  write("}");
}

void Unparser::operator()(const StarredExpr& e) {
  write("*");
  expr(*e.value, Binding::bit_or);
}

void Unparser::operator()(const NamedExpr& e) {
  write(e.name.text());
  write(" := ");
  expr(*e.value, Binding::conditional);
}

void Unparser::operator()(const YieldExpr& e) {
  write(e.from ? "yield from" : "yield");
  if (!e.value) return;
  write(" ");
  expr(*e.value, e.from ? Binding::conditional : Binding::tuple);
}

void Unparser::operator()(const ComprehensionExpr& e) {
  constexpr std::array<std::string_view, 4> kBrackets{"[]", "{}", "{}", "()"};
  std::string_view brackets = kBrackets[static_cast<size_t>(e.kind)];
  write(brackets.substr(0, 1));
  expr(*e.element, e.value ? Binding::conditional : Binding::named);
  if (e.value) {
    write(": ");
    expr(*e.value, Binding::conditional);
  }
  for (const ComprehensionClause& clause : e.clauses) {
    write(" for ");
    expr(*clause.target, Binding::tuple);
    write(" in ");
    expr(*clause.iterable, Binding::logical_or);
    for (const ExprPtr& condition : clause.conditions) {
      write(" if ");
      expr(*condition, Binding::logical_or);
    }
  }
  write(brackets.substr(1));
}

void Unparser::operator()(const LambdaExpr& e) {
  write(e.parameters.empty() ? "lambda" : "lambda ");
  parameters(e.parameters);
  write(": ");
  expr(*e.body, Binding::conditional);
}

void Unparser::parameters(const std::vector<Parameter>& list) {
  using ParameterKind = Parameter::Kind;
  bool starred = false;
  for (size_t i = 0; i < list.size(); ++i) {
    ParameterKind kind = list[i].kind;
    if (i > 0) write(", ");
    if (kind == ParameterKind::keyword_only && !starred) write("*, ");
    starred |= kind == ParameterKind::keyword_only || kind == ParameterKind::var_positional;
    parameter(list[i]);
    bool last_positional_only = kind == ParameterKind::positional_only &&
                                (i + 1 == list.size() || list[i + 1].kind != ParameterKind::positional_only);
    if (last_positional_only) write(", /");
  }
}

void Unparser::parameter(const Parameter& parameter) {
  if (parameter.kind == Parameter::Kind::var_positional) write("*");
  if (parameter.kind == Parameter::Kind::var_keyword) write("**");
  write(parameter.name.text());
  if (parameter.annotation) {
    write(": ");
    expr(*parameter.annotation, Binding::conditional);
  }
  if (!parameter.default_value) return;
  write(parameter.annotation ? " = " : "=");
  expr(*parameter.default_value, Binding::conditional);
}

std::string to_source(const Expr& expr) {
  Unparser unparser;
  unparser.expr(expr, Binding::named);
  return std::move(unparser).take();
}

}  // namespace tilepilot::syntax
