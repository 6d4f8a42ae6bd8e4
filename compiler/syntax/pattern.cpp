// Questions about patterns, and their text.
#include "compiler/syntax/pattern.h"

#include <fmt/format.h>

#include "compiler/syntax/print.h"

namespace tilepilot::syntax {

namespace {

class BoundNames {
 public:
  void pattern(const Pattern& each) { std::visit(*this, each.node); }
  void operator()(const CapturePattern& node) {
    if (node.pattern) pattern(*node.pattern);
    add(node.name);
  }
  void operator()(const ValuePattern&) {}
  void operator()(const StarPattern& node) { add(node.name); }
  void operator()(const SequencePattern& node) { all(node.items); }
  void operator()(const MappingPattern& node) {
    for (const auto& [key, value] : node.items) pattern(*value);
    add(node.rest);
  }
  void operator()(const ClassPattern& node) {
    all(node.positional);
    for (const auto& [name, value] : node.keywords) pattern(*value);
  }
  void operator()(const AlternativesPattern& node) { pattern(*node.choices.front()); }

  std::vector<Name> names;

 private:
  void add(Name name) {
    if (name.id()) names.push_back(name);
  }
  void all(const std::vector<PatternPtr>& patterns) {
    for (const PatternPtr& each : patterns) pattern(*each);
  }
};

class Expressions {
 public:
  explicit Expressions(const std::function<void(const Expr&)>& visit) : visit_(visit) {}
  void pattern(const Pattern& each) { std::visit(*this, each.node); }
  void operator()(const CapturePattern& node) {
    if (node.pattern) pattern(*node.pattern);
  }
  void operator()(const ValuePattern& node) { visit_(*node.value); }
  void operator()(const StarPattern&) {}
  void operator()(const SequencePattern& node) { all(node.items); }
  void operator()(const MappingPattern& node) {
    for (const auto& [key, value] : node.items) {
      visit_(*key);
      pattern(*value);
    }
  }
  void operator()(const ClassPattern& node) {
    visit_(*node.type);
    all(node.positional);
    for (const auto& [name, value] : node.keywords) pattern(*value);
  }
  void operator()(const AlternativesPattern& node) { all(node.choices); }

 private:
  void all(const std::vector<PatternPtr>& patterns) {
    for (const PatternPtr& each : patterns) pattern(*each);
  }
  const std::function<void(const Expr&)>& visit_;
};

class PatternText {
 public:
  std::string operator()(const CapturePattern& node) {
    if (!node.pattern) return named(node.name);
    return fmt::format("{} as {}", inner(*node.pattern), node.name.text());
  }
  std::string operator()(const ValuePattern& node) { return to_source(*node.value); }
  std::string operator()(const StarPattern& node) { return "*" + named(node.name); }
  std::string operator()(const SequencePattern& node) { return "[" + list(node.items) + "]"; }
  std::string operator()(const MappingPattern& node) {
    std::string text;
    for (const auto& [key, value] : node.items) separate(text) += to_source(*key) + ": " + to_source(*value);
    if (node.rest.id()) separate(text) += "**" + node.rest.str();
    return "{" + text + "}";
  }
  std::string operator()(const ClassPattern& node) {
    std::string text = list(node.positional);
    for (const auto& [name, value] : node.keywords) separate(text) += name.str() + "=" + to_source(*value);
    return to_source(*node.type) + "(" + text + ")";
  }
  std::string operator()(const AlternativesPattern& node) {
    std::string text;
    for (const PatternPtr& each : node.choices) text += (text.empty() ? "" : " | ") + inner(*each);
    return text;
  }

 private:
  static std::string named(Name name) { return name.id() ? name.str() : "_"; }
  static std::string& separate(std::string& text) { return text.empty() ? text : text += ", "; }
  static std::string list(const std::vector<PatternPtr>& patterns) {
    std::string text;
    for (const PatternPtr& each : patterns) separate(text) += to_source(*each);
    return text;
  }
  // Where `as` and `|` need parentheses.
  static std::string inner(const Pattern& pattern) {
    auto* capture = std::get_if<CapturePattern>(&pattern.node);
    const bool loose = (capture && capture->pattern) || std::holds_alternative<AlternativesPattern>(pattern.node);
    return loose ? "(" + to_source(pattern) + ")" : to_source(pattern);
  }
};

}  // namespace

std::vector<Name> names_bound_by(const Pattern& pattern) {
  BoundNames bound;
  bound.pattern(pattern);
  return std::move(bound.names);
}

bool matches_all(const Pattern& pattern) {
  if (auto* capture = std::get_if<CapturePattern>(&pattern.node))
    return !capture->pattern || matches_all(*capture->pattern);
  auto* alternatives = std::get_if<AlternativesPattern>(&pattern.node);
  return alternatives && matches_all(*alternatives->choices.back());
}

std::string to_source(const Pattern& pattern) { return std::visit(PatternText(), pattern.node); }

void for_each_expression(const Pattern& pattern, const std::function<void(const Expr&)>& visit) {
  Expressions(visit).pattern(pattern);
}

}  // namespace tilepilot::syntax
