// `match`: the first `case` whose pattern fits the subject runs.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/syntax/pattern.h"

namespace tilepilot::stage {

using namespace syntax;

// Tries one pattern; what it binds is bound only when all of it fits.
class PatternMatcher {
 public:
  PatternMatcher(Evaluator& evaluator, Interpreter& interpreter) : evaluator_(evaluator), interpreter_(interpreter) {}

  Result<bool> fits(const Pattern& pattern, const Value& subject) {
    TRY(interpreter_.charge(pattern.span));
    return std::visit([&](const auto& node) { return fits(node, subject, pattern.span); }, pattern.node);
  }
  std::vector<std::pair<Name, Value>>& bound() { return bound_; }

 private:
  Result<bool> fits(const CapturePattern& node, const Value& subject, Span) {
    if (node.pattern && !TRY(fits(*node.pattern, subject))) return false;
    if (node.name.id()) bound_.emplace_back(node.name, subject);
    return true;
  }

  Result<bool> fits(const ValuePattern& node, const Value& subject, Span span) {
    const Value wanted = TRY(evaluator_.eval(*node.value));
    const bool is_constant =
        std::holds_alternative<NoneLiteral>(node.value->node) || std::holds_alternative<BoolLiteral>(node.value->node);
    const CompareOp op = is_constant ? CompareOp::is : CompareOp::eq;
    return known(TRY(interpreter_.compare(op, subject, wanted, span)), span);
  }

  Result<bool> fits(const StarPattern&, const Value&, Span) { return true; }  // its sequence has dealt with it

  Result<bool> fits(const SequencePattern& node, const Value& subject, Span span) {
    if (!is_sequence(subject)) return false;
    const auto is_star = [](const PatternPtr& item) { return std::holds_alternative<StarPattern>(item->node); };
    const auto star = std::find_if(node.items.begin(), node.items.end(), is_star);
    const auto before = static_cast<size_t>(star - node.items.begin());
    const bool has_star = star != node.items.end();
    const std::vector<Value> items = TRY(interpreter_.to_vector(subject, span));
    const size_t wanted = node.items.size() - (has_star ? 1 : 0);
    if (has_star ? items.size() < wanted : items.size() != wanted) return false;
    for (size_t i = 0; i < before; ++i)
      if (!TRY(fits(*node.items[i], items[i]))) return false;
    if (!has_star) return true;
    const size_t surplus = items.size() - wanted;
    if (const Name name = std::get<StarPattern>((*star)->node).name; name.id()) {
      const auto first = items.begin() + static_cast<std::ptrdiff_t>(before);
      bound_.emplace_back(name, make_list({first, first + static_cast<std::ptrdiff_t>(surplus)}));
    }
    for (size_t i = before + 1; i < node.items.size(); ++i)
      if (!TRY(fits(*node.items[i], items[i + surplus - 1]))) return false;
    return true;
  }

  // Lists, tuples and ranges and what derives from them; strings are not.
  static bool is_sequence(const Value& subject) {
    const Value& plain = held_value(subject);
    return plain.get_if<ListObject>() || plain.get_if<TupleObject>() || plain.get_if<RangeObject>();
  }

  Result<bool> fits(const MappingPattern& node, const Value& subject, Span span) {
    auto dict = held_value(subject).get_shared<DictObject>();
    if (!dict) return false;
    auto rest = std::make_shared<DictObject>();
    rest->table = dict->table;
    for (const auto& [key, pattern] : node.items) {
      const Value name = TRY(evaluator_.eval(*key));
      HashTable::Entry* entry = TRY(dict->table.find(interpreter_, name, key->span));
      if (!entry) return false;
      const Value found = entry->value;
      if (!TRY(fits(*pattern, found))) return false;
      TRY(rest->table.erase(interpreter_, name, span));
    }
    if (node.rest.id()) bound_.emplace_back(node.rest, Value(std::move(rest)));
    return true;
  }

  Result<bool> fits(const ClassPattern& node, const Value& subject, Span span) {
    const Value type = TRY(evaluator_.eval(*node.type));
    const Value is_instance = *interpreter_.find_builtin("isinstance");
    if (type.get_if<TupleObject>() || !type.if_object())
      return type_error(span, "called match pattern must be a class");
    CallArgs args{{subject, type}, {}, span, {}};
    if (!TRY(interpreter_.truth(TRY(interpreter_.call(is_instance, std::move(args))), span))) return false;
    if (!TRY(positional_fit(node, type, subject, span))) return false;
    for (const auto& [name, pattern] : node.keywords)
      if (!TRY(attribute_fits(name, *pattern, subject, span))) return false;
    return true;
  }

  Result<bool> attribute_fits(Name name, const Pattern& pattern, const Value& subject, Span span) {
    auto value = interpreter_.get_attribute(subject, name, span);
    if (value.ok()) return fits(pattern, *value);
    if (is_raised(interpreter_, value.error(), "AttributeError")) return false;
    return std::move(value).take_error();
  }

  // `int(x)` is the number itself; other classes say by `__match_args__` which attributes go by position.
  Result<bool> positional_fit(const ClassPattern& node, const Value& type, const Value& subject, Span span) {
    if (node.positional.empty()) return true;
    auto* class_object = type.get_if<ClassObject>();
    if (!class_object) return type_error(span, "called match pattern must be a class");
    static const Name kMatchArgs("__match_args__");
    std::vector<Value> names;
    if (const Value* given = class_object->lookup(kMatchArgs)) {
      names = TRY(interpreter_.to_vector(*given, span));
    } else if (stands_for_itself(*class_object)) {
      if (node.positional.size() == 1) return fits(*node.positional[0], subject);
      return too_many(*class_object, 1, node.positional.size(), span);
    }
    if (node.positional.size() > names.size())
      return too_many(*class_object, names.size(), node.positional.size(), span);
    for (size_t i = 0; i < node.positional.size(); ++i) {
      if (!names[i].if_string()) return type_error(span, "__match_args__ elements must be strings");
      const Name name(*names[i].if_string());
      const bool again =
          std::any_of(node.keywords.begin(), node.keywords.end(), [&](const auto& each) { return each.first == name; });
      if (again)
        return type_error(span, fmt::format("{}() got multiple sub-patterns for attribute '{}'",
                                            class_object->name.text(), name.text()));
      if (!TRY(attribute_fits(name, *node.positional[i], subject, span))) return false;
    }
    return true;
  }

  static Error too_many(const ClassObject& type, size_t takes, size_t given, Span span) {
    return type_error(span, fmt::format("{}() accepts {} positional sub-pattern{} ({} given)", type.name.text(), takes,
                                        takes == 1 ? "" : "s", given));
  }

  static bool stands_for_itself(const ClassObject& type) {
    static constexpr std::string_view kTypes[] = {"bool", "bytes", "dict", "float", "frozenset",
                                                  "int",  "list",  "set",  "str",   "tuple"};
    return std::any_of(type.resolution_order.begin(), type.resolution_order.end(), [](const ClassObject* each) {
      return !each->user_defined &&
             std::find(std::begin(kTypes), std::end(kTypes), each->name.text()) != std::end(kTypes);
    });
  }

  Result<bool> fits(const AlternativesPattern& node, const Value& subject, Span) {
    const size_t before = bound_.size();
    for (const PatternPtr& choice : node.choices) {
      if (TRY(fits(*choice, subject))) return true;
      bound_.resize(before);
    }
    return false;
  }

  Result<bool> known(const Value& answer, Span span) {
    if (!evaluator_.is_staged(answer)) return interpreter_.truth(answer, span);
    return make_error(DiagnosticKind::staged_value_misused, span,
                      "`match` compares a value that is known only when the kernel runs", "write `if` and `elif`");
  }

  Evaluator& evaluator_;
  Interpreter& interpreter_;
  std::vector<std::pair<Name, Value>> bound_;
};

Result<Flow> Evaluator::visit(const MatchStmt& node, Span) {
  const Value subject = TRY(eval(*node.subject));
  for (const MatchCase& each : node.cases) {
    PatternMatcher matcher(*this, interpreter_);
    if (!TRY(matcher.fits(*each.pattern, subject))) continue;
    for (auto& [name, value] : matcher.bound())
      TRY(assign_name(name, std::move(value), Intercept::no, each.pattern->span));
    if (each.guard) {
      const Value guard = TRY(eval(*each.guard));
      if (is_staged(guard))
        return make_error(DiagnosticKind::staged_value_misused, each.guard->span,
                          "the condition of a `case` is known only when the kernel runs", "write `if` and `elif`");
      if (!TRY(holds(guard, each.guard->span))) continue;
    }
    return run(each.body);
  }
  return Flow::normal;
}

}  // namespace tilepilot::stage
