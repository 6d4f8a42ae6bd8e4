// Expressions as Python source with the fewest parentheses. to_source() of statements builds on it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/syntax/tree.h"

namespace tilepilot::syntax {

// How tightly an expression binds, loosest first; also what a place demands of the expression that stands there.
enum class Binding {
  statement,    // `yield` and tuples without parentheses
  tuple,        // tuples without parentheses
  named,        // `:=`, but no bare tuple
  conditional,  // an ordinary expression
  logical_or,
  logical_and,
  logical_not,
  comparison,
  bit_or,
  bit_xor,
  bit_and,
  shift,
  sum,
  product,
  unary,
  power,
  primary,
};

class Unparser {
 public:
  // What strings may look like here: inside the fields of an f-string Python 3.11 allows neither a backslash nor the
  // quotes of the f-string around.
  struct StringRules {
    bool inside_field = false;
    std::vector<std::string_view> marks{"\"", "'", "\"\"\"", "'''"};
  };

  Unparser() = default;
  explicit Unparser(StringRules rules) : rules_(std::move(rules)) {}

  void expr(const Expr& e, Binding place);
  void parameters(const std::vector<Parameter>& list);
  void arguments(const std::vector<ExprPtr>& args, const std::vector<Keyword>& keywords);
  // False: some string inside cannot be written under the rules.
  bool possible() const { return possible_; }
  std::string take() && { return std::move(out_); }
  void write(std::string_view text) { out_.append(text); }

  void operator()(const NameExpr& e) { write(e.name.text()); }
  void operator()(const NoneLiteral&) { write("None"); }
  void operator()(const EllipsisLiteral&) { write("..."); }
  void operator()(const BoolLiteral& e) { write(e.value ? "True" : "False"); }
  void operator()(const IntLiteral& e) { write(e.wide ? to_text(*e.wide) : std::to_string(e.value)); }
  void operator()(const FloatLiteral& e);
  void operator()(const StringLiteral& e);
  void operator()(const FormattedString& e);
  void operator()(const AttributeExpr& e);
  void operator()(const SubscriptExpr& e);
  void operator()(const SliceExpr& e);
  void operator()(const CallExpr& e);
  void operator()(const UnaryExpr& e);
  void operator()(const BinaryExpr& e);
  void operator()(const BoolExpr& e);
  void operator()(const CompareExpr& e);
  void operator()(const ConditionalExpr& e);
  void operator()(const TupleExpr& e);
  void operator()(const ListExpr& e);
  void operator()(const SetExpr& e);
  void operator()(const DictExpr& e);
  void operator()(const StarredExpr& e);
  void operator()(const NamedExpr& e);
  void operator()(const YieldExpr& e);
  void operator()(const ComprehensionExpr& e);
  void operator()(const LambdaExpr& e);

 private:
  void list(const std::vector<ExprPtr>& items, Binding place);
  void parameter(const Parameter& parameter);
  void bytes(const StringLiteral& e);
  std::optional<std::string> formatted(const FormattedString& e, std::string_view mark) const;
  bool format_parts(const std::vector<FormattedPart>& parts, std::string_view mark, bool is_format,
                    std::string& out) const;
  bool field(const FormattedPart& part, std::string_view mark, std::string& out) const;
  bool field_value(const FormattedPart& part, std::string_view mark, std::string& out) const;
  bool literal_text(std::string_view text, std::string_view mark, bool is_format, std::string& out) const;

  StringRules rules_;
  std::string out_;
  bool possible_ = true;
};

}  // namespace tilepilot::syntax
