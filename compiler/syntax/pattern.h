// What stands behind `case`: the patterns of a `match` statement.
#pragma once

#include <functional>

#include "compiler/syntax/tree.h"

namespace tilepilot::syntax {

// `name`, or `pattern as name`. Without a name and a pattern it is `_`.
struct CapturePattern {
  PatternPtr pattern;  // null: anything
  Name name;           // empty: bound to nothing
};
// A literal or a dotted name: compared with `==`; None, True and False with `is`.
struct ValuePattern {
  ExprPtr value;
};
// `*rest` in a sequence; an empty name is `*_`.
struct StarPattern {
  Name name;
};
struct SequencePattern {
  std::vector<PatternPtr> items;
};
// `{key: pattern, **rest}`
struct MappingPattern {
  std::vector<std::pair<ExprPtr, PatternPtr>> items;
  Name rest;  // empty: none
};
struct ClassPattern {
  ExprPtr type;
  std::vector<PatternPtr> positional;
  std::vector<std::pair<Name, PatternPtr>> keywords;
};
struct AlternativesPattern {
  std::vector<PatternPtr> choices;
};

struct Pattern {
  using Node = std::variant<CapturePattern, ValuePattern, StarPattern, SequencePattern, MappingPattern, ClassPattern,
                            AlternativesPattern>;
  Node node;
  Span span;
};

// The names that a pattern binds, in the order of the text; all alternatives bind the same.
std::vector<Name> names_bound_by(const Pattern& pattern);
// Whether it matches everything: a name, `_`, or alternatives that end with one.
bool matches_all(const Pattern& pattern);
std::string to_source(const Pattern& pattern);

// Calls visit(const Expr&) for each expression of a pattern: values, keys and classes.
void for_each_expression(const Pattern& pattern, const std::function<void(const Expr&)>& visit);

}  // namespace tilepilot::syntax
