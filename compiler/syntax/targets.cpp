// What may be assigned to, and parameter lists.
#include <fmt/format.h>

#include <unordered_set>

#include "compiler/syntax/grammar.h"

namespace tilepilot::syntax {
namespace {

using ParameterKind = Parameter::Kind;

struct Describe {
  std::string operator()(const CallExpr&) const { return "the result of a call"; }
  std::string operator()(const NoneLiteral&) const { return "`None`"; }
  std::string operator()(const BoolLiteral& e) const { return e.value ? "`True`" : "`False`"; }
  std::string operator()(const EllipsisLiteral&) const { return "`...`"; }
  std::string operator()(const IntLiteral&) const { return "a number"; }
  std::string operator()(const FloatLiteral&) const { return "a number"; }
  std::string operator()(const StringLiteral&) const { return "a string"; }
  std::string operator()(const FormattedString&) const { return "an f-string"; }
  std::string operator()(const CompareExpr&) const { return "a comparison"; }
  std::string operator()(const ConditionalExpr&) const { return "a conditional expression"; }
  std::string operator()(const LambdaExpr&) const { return "a `lambda`"; }
  std::string operator()(const TupleExpr&) const { return "a tuple"; }
  std::string operator()(const ListExpr&) const { return "a list"; }
  std::string operator()(const SetExpr&) const { return "a set"; }
  std::string operator()(const DictExpr&) const { return "a dictionary"; }
  std::string operator()(const ComprehensionExpr&) const { return "a comprehension"; }
  std::string operator()(const StarredExpr&) const { return "a starred expression"; }
  std::string operator()(const NamedExpr&) const { return "an assignment expression"; }
  std::string operator()(const YieldExpr&) const { return "a `yield` expression"; }
  template <class Other>
  std::string operator()(const Other&) const {
    return "an expression";
  }
};

std::string describe(const Expr& expr) { return std::visit(Describe{}, expr.node); }

bool can_be_single_target(const Expr& expr) {
  return std::holds_alternative<NameExpr>(expr.node) || std::holds_alternative<AttributeExpr>(expr.node) ||
         std::holds_alternative<SubscriptExpr>(expr.node);
}

const std::vector<ExprPtr>* sequence_items(const Expr& expr) {
  if (const auto* tuple = std::get_if<TupleExpr>(&expr.node)) return &tuple->items;
  if (const auto* list = std::get_if<ListExpr>(&expr.node)) return &list->items;
  return nullptr;
}

}  // namespace

void Grammar::check_target(const Expr& target, TargetUse use, bool inside_sequence) {
  if (can_be_single_target(target) || failed_) return;
  bool may_unpack = use == TargetUse::assign || use == TargetUse::remove;
  const std::vector<ExprPtr>* items = may_unpack ? sequence_items(target) : nullptr;
  const auto* starred = std::get_if<StarredExpr>(&target.node);
  if (starred != nullptr && inside_sequence && use == TargetUse::assign) { return check_target(*starred->value, use); }
  if (items == nullptr) {
    std::string_view verb = use == TargetUse::remove      ? "delete"
                            : use == TargetUse::annotated ? "annotate"
                                                          : "assign to";
    bool comparable = use == TargetUse::assign && starred == nullptr;
    return fail_at(target.span, fmt::format("cannot {} {}", verb, describe(target)),
                   comparable ? "to compare, write `==`" : "");
  }
  int stars = 0;
  for (const ExprPtr& item : *items) {
    stars += std::holds_alternative<StarredExpr>(item->node) ? 1 : 0;
    if (stars > 1) return fail_at(item->span, "more than one starred target in an assignment");
    check_target(*item, use, true);
  }
}

ExprPtr Grammar::target_list() {
  uint32_t begin = token().begin;
  auto item = [&] { return at(Kind::star) ? starred() : binary(1); };
  ExprPtr target = item();
  if (at(Kind::comma)) {
    TupleExpr tuple;
    tuple.items.push_back(std::move(target));
    while (accept(Kind::comma) && starts_expression()) tuple.items.push_back(item());
    target = make(std::move(tuple), begin);
  }
  check_target(*target, TargetUse::assign);
  return target;
}

std::vector<Parameter> Grammar::parameters(Kind closing, bool annotated) {
  std::vector<Parameter> list;
  bool bare_star = false;
  while (!at(closing) && !failed_) {
    if (at(Kind::slash)) {
      Token slash = next();
      bool misplaced = list.empty() || bare_star || list.back().kind != ParameterKind::positional ||
                       list.front().kind == ParameterKind::positional_only;
      if (misplaced) fail_at(span_of(slash), "`/` must stand once, behind positional parameters");
      for (Parameter& earlier : list) earlier.kind = ParameterKind::positional_only;
    } else if (at(Kind::star) && (kind_after() == Kind::comma || kind_after() == closing)) {
      Token star = next();
      if (bare_star) fail_at(span_of(star), "`*` stands twice in one parameter list");
      bare_star = true;
      bool follows = at(Kind::comma) && (*tokens_)[at_ + 1].kind == Kind::name;
      if (!follows) fail_at(span_of(star), "named parameters must follow `*`");
    } else {
      parameter(list, annotated);
      if (bare_star && list.back().kind == ParameterKind::positional) list.back().kind = ParameterKind::keyword_only;
      if (bare_star && list.back().kind == ParameterKind::var_positional) {
        fail_at(list.back().span, "`*` stands twice in one parameter list");
      }
      check_last_parameter(list);
    }
    if (!accept(Kind::comma)) break;
  }
  check_unique_names(list);
  return list;
}

void Grammar::parameter(std::vector<Parameter>& list, bool annotated) {
  Parameter& result = list.emplace_back();
  uint32_t begin = token().begin;
  if (accept(Kind::star)) {
    result.kind = ParameterKind::var_positional;
  } else if (accept(Kind::double_star)) {
    result.kind = ParameterKind::var_keyword;
  }
  result.name = expect_name("a parameter name");
  bool variadic = result.kind != ParameterKind::positional;
  if (annotated && accept(Kind::colon)) {
    bool unpacked = result.kind == ParameterKind::var_positional && at(Kind::star);
    result.annotation = unpacked ? starred() : expression();
  }
  if (at(Kind::equal) && variadic) fail_at(span_of(token()), "a `*` or `**` parameter cannot have a default value");
  if (accept(Kind::equal)) result.default_value = expression();
  result.span = span_from(begin);
}

// The last parameter against those before it. May turn it into a keyword-only one.
void Grammar::check_last_parameter(std::vector<Parameter>& list) {
  Parameter& last = list.back();
  if (list.size() < 2) return;
  const Parameter& before = list[list.size() - 2];
  if (before.kind == ParameterKind::var_keyword) {
    return fail_at(last.span, "no parameter may follow the one of `**`");
  }
  bool after_star = before.kind == ParameterKind::var_positional || before.kind == ParameterKind::keyword_only;
  if (after_star && last.kind == ParameterKind::var_positional) {
    return fail_at(last.span, "`*` stands twice in one parameter list");
  }
  if (after_star && last.kind == ParameterKind::positional) last.kind = ParameterKind::keyword_only;
  if (last.kind == ParameterKind::positional && before.default_value && !last.default_value) {
    fail_at(last.span, fmt::format("parameter `{}` has no default value but follows one that has", last.name.text()));
  }
}

void Grammar::check_unique_names(const std::vector<Parameter>& list) {
  std::unordered_set<const void*> seen;
  for (const Parameter& parameter : list) {
    if (!seen.insert(parameter.name.id()).second) {
      return fail_at(parameter.span, fmt::format("parameter `{}` is named twice", parameter.name.text()));
    }
  }
}

}  // namespace tilepilot::syntax
