// What may stand behind `case`.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/syntax/grammar.h"
#include "compiler/syntax/pattern.h"

namespace tilepilot::syntax {

namespace {

std::vector<Name> sorted_names(const Pattern& pattern) {
  std::vector<Name> names = names_bound_by(pattern);
  std::sort(names.begin(), names.end(), [](Name a, Name b) { return a.text() < b.text(); });
  return names;
}

}  // namespace

PatternPtr Grammar::make_pattern(Pattern node) {
  if (auto* sequence = std::get_if<SequencePattern>(&node.node)) {
    const auto stars = std::count_if(sequence->items.begin(), sequence->items.end(), [](const PatternPtr& item) {
      return std::holds_alternative<StarPattern>(item->node);
    });
    if (stars > 1 && !failed_)
      report({DiagnosticKind::syntax_error, node.span, "a sequence pattern has more than one starred name", {}, {}});
  }
  return std::make_shared<const Pattern>(std::move(node));
}

PatternPtr Grammar::any_pattern() { return make_pattern({CapturePattern{}, span_of(token())}); }

// A sequence may stand without brackets: `case x, *rest:`.
PatternPtr Grammar::open_pattern() {
  const uint32_t begin = token().begin;
  const bool is_star = at(Kind::star);
  PatternPtr first = sequence_item();
  if (!at(Kind::comma)) {
    if (is_star) fail_at(first->span, "a starred pattern cannot stand alone", "`*x,` with a comma makes a sequence");
    return first;
  }
  SequencePattern sequence;
  sequence.items.push_back(std::move(first));
  while (accept(Kind::comma) && !at(Kind::colon) && !at(Kind::kw_if)) sequence.items.push_back(sequence_item());
  return make_pattern({std::move(sequence), span_from(begin)});
}

PatternPtr Grammar::sequence_item() {
  const uint32_t begin = token().begin;
  if (!accept(Kind::star)) return pattern();
  const Name name = at(Kind::name) && token().name.text() == "_" ? (next(), Name()) : pattern_target();
  return make_pattern({StarPattern{name}, span_from(begin)});
}

PatternPtr Grammar::pattern() {
  const uint32_t begin = token().begin;
  PatternPtr inner = alternatives();
  if (!accept(Kind::kw_as)) return inner;
  CapturePattern capture{std::move(inner), pattern_target()};
  return make_pattern({std::move(capture), span_from(begin)});
}

PatternPtr Grammar::alternatives() {
  const uint32_t begin = token().begin;
  PatternPtr first = closed_pattern();
  if (!at(Kind::vbar)) return first;
  AlternativesPattern node;
  node.choices.push_back(std::move(first));
  while (accept(Kind::vbar)) {
    const Pattern& before = *node.choices.back();
    const bool hides_the_rest = matches_all(before);
    if (hides_the_rest && !failed_)
      report({DiagnosticKind::syntax_error,
              before.span,
              "this pattern matches everything, so no alternative behind it is ever reached",
              {},
              "put it last"});
    node.choices.push_back(closed_pattern());
    const bool same_names = hides_the_rest || sorted_names(*node.choices.front()) == sorted_names(*node.choices.back());
    if (!failed_ && !same_names)
      report({DiagnosticKind::syntax_error,
              node.choices.back()->span,
              "alternative patterns bind different names",
              {},
              {}});
  }
  return make_pattern({std::move(node), span_from(begin)});
}

PatternPtr Grammar::closed_pattern() {
  Level level(*this);
  if (failed_) return any_pattern();
  switch (kind()) {
    case Kind::name:
      return name_pattern();
    case Kind::lpar:
    case Kind::lsqb:
      return bracketed_pattern();
    case Kind::lbrace:
      return mapping_pattern();
    default:
      break;
  }
  const uint32_t begin = token().begin;
  ExprPtr value = pattern_value();
  return make_pattern({ValuePattern{std::move(value)}, span_from(begin)});
}

// A name is bound; with dots it is a value, with parentheses a class.
PatternPtr Grammar::name_pattern() {
  const uint32_t begin = token().begin;
  const Name name = next().name;
  if (!at(Kind::dot) && !at(Kind::lpar)) {
    CapturePattern capture{nullptr, name.text() == "_" ? Name() : name};
    return make_pattern({std::move(capture), span_from(begin)});
  }
  ExprPtr value = make(NameExpr{name}, begin);
  while (accept(Kind::dot)) {
    const Span span = span_of(token());
    value = make(AttributeExpr{std::move(value), expect_name("a name after `.`"), span}, begin);
  }
  if (at(Kind::lpar)) return class_pattern(std::move(value), begin);
  return make_pattern({ValuePattern{std::move(value)}, span_from(begin)});
}

PatternPtr Grammar::class_pattern(ExprPtr type, uint32_t begin) {
  const Token opening = next();
  ClassPattern node;
  node.type = std::move(type);
  while (!at(Kind::rpar) && !failed_) {
    if (at(Kind::name) && kind_after() == Kind::equal) {
      const Token name = next();
      next();
      const bool twice = std::any_of(node.keywords.begin(), node.keywords.end(),
                                     [&](const auto& each) { return each.first == name.name; });
      if (twice) fail_at(span_of(name), fmt::format("attribute `{}` is named twice in the pattern", name.name.text()));
      node.keywords.emplace_back(name.name, pattern());
    } else if (!node.keywords.empty()) {
      fail_at(span_of(token()), "a positional pattern cannot follow keyword patterns");
    } else {
      node.positional.push_back(pattern());
    }
    if (!accept(Kind::comma)) break;
  }
  expect_closing(Kind::rpar, opening);
  return make_pattern({std::move(node), span_from(begin)});
}

PatternPtr Grammar::mapping_pattern() {
  const Token opening = next();
  MappingPattern node;
  while (!at(Kind::rbrace) && !failed_) {
    if (node.rest.id()) {
      fail_at(span_of(token()), "`**rest` must be the last entry of the pattern");
    } else if (accept(Kind::double_star)) {
      node.rest = pattern_target();
    } else {
      const uint32_t begin = token().begin;
      ExprPtr key;
      if (at(Kind::name)) {
        key = make(NameExpr{next().name}, begin);
        if (!at(Kind::dot)) fail_at(key->span, "a key of a mapping pattern is a literal or a dotted name");
        while (accept(Kind::dot)) {
          const Span span = span_of(token());
          key = make(AttributeExpr{std::move(key), expect_name("a name after `.`"), span}, begin);
        }
      } else {
        key = pattern_value();
      }
      expect(Kind::colon, "after the key");
      node.items.emplace_back(std::move(key), pattern());
    }
    if (!accept(Kind::comma)) break;
  }
  expect_closing(Kind::rbrace, opening);
  return make_pattern({std::move(node), span_from(opening.begin)});
}

// `[...]` and `(a, b)` are sequences; `(a)` is only a group.
PatternPtr Grammar::bracketed_pattern() {
  const Token opening = next();
  const bool is_list = opening.kind == Kind::lsqb;
  bool has_comma = false;
  SequencePattern sequence;
  sequence.items = pattern_list(is_list ? Kind::rsqb : Kind::rpar, opening, has_comma);
  const bool is_group = !is_list && !has_comma && sequence.items.size() == 1;
  if (is_group && !std::holds_alternative<StarPattern>(sequence.items[0]->node)) return std::move(sequence.items[0]);
  if (is_group) fail_at(sequence.items[0]->span, "a starred pattern cannot stand alone");
  return make_pattern({std::move(sequence), span_from(opening.begin)});
}

std::vector<PatternPtr> Grammar::pattern_list(Kind closing, const Token& opening, bool& has_comma) {
  std::vector<PatternPtr> items;
  while (!at(closing) && !failed_) {
    items.push_back(sequence_item());
    if (!accept(Kind::comma)) break;
    has_comma = true;
  }
  expect_closing(closing, opening);
  return items;
}

// A literal: a number with a sign perhaps, a string, None, True or False.
ExprPtr Grammar::pattern_value() {
  const Kind first = at(Kind::minus) ? kind_after() : kind();
  const bool is_number = first == Kind::integer || first == Kind::real;
  const bool is_word = at(Kind::string) || at(Kind::kw_none) || at(Kind::kw_true) || at(Kind::kw_false);
  if (!is_number && !is_word) {
    fail_here("a pattern");
    return placeholder();
  }
  const uint32_t begin = token().begin;
  const bool negative = accept(Kind::minus);
  ExprPtr value = atom();
  if (std::holds_alternative<FormattedString>(value->node))
    fail_at(value->span, "an f-string cannot be a pattern", "compare under `if` behind the pattern");
  return negative ? make(UnaryExpr{UnaryOp::minus, std::move(value)}, begin) : std::move(value);
}

Name Grammar::pattern_target() {
  const Span span = span_of(token());
  const Name name = expect_name("a name to bind");
  if (name.text() == "_" && !failed_) fail_at(span, "`_` cannot be bound here");
  return name;
}

void Grammar::check_pattern(const Pattern& pattern) {
  if (failed_) return;
  const std::vector<Name> names = sorted_names(pattern);
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    report({DiagnosticKind::syntax_error,
            pattern.span,
            fmt::format("`{}` is bound twice in the pattern", twice->text()),
            {},
            {}});
}

}  // namespace tilepilot::syntax
