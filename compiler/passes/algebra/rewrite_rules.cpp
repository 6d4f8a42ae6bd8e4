#include "compiler/passes/algebra/rewrite_rules.h"

#include <cmath>
#include <cstdlib>

#include "compiler/ir/text/expr_reader.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr auto exact = Arithmetic::exact;

constexpr RewriteRule kRules[] = {
    // sums
    {"c + x", "x + c"},
    {"x + 0", "x"},
    {"x - 0", "x"},
    {"x - x", "0"},
    {"0 - x", "-x"},
    {"-(-x)", "x"},
    {"x + -y", "x - y"},
    {"x - -y", "x + y"},
    {"x + c", "x - -c", "c < 0 and -c > 0"},
    {"x - c", "x + -c", "c < 0 and -c > 0"},
    {"(x + c1) + c2", "x + (c1 + c2)"},
    {"(x - c1) + c2", "x + (c2 - c1)"},
    {"(x + c1) - c2", "x + (c1 - c2)"},
    {"(x - c1) - c2", "x - (c1 + c2)"},
    {"(x + y) - y", "x"},
    {"(x + y) - x", "y"},
    {"(x - y) + y", "x"},
    {"x + (y - x)", "y"},
    // products
    {"c * x", "x * c"},
    {"x * 0", "0"},
    {"x * 1", "x"},
    {"x * -1", "-x"},
    {"(x * c1) * c2", "x * (c1 * c2)"},
    {"(x + c1) * c2", "x * c2 + c1 * c2"},
    {"u * 1.0", "u"},
    {"1.0 * u", "u"},
    {"u / 1.0", "u"},
    {"u - 0.0", "u"},
    {"u + -0.0", "u"},
    // quotients and remainders; sums under them: see sum.h
    {"x // 1", "x"},
    {"x % 1", "0"},
    {"(x // c1) // c2", "x // (c1 * c2)", "c1 > 0 and c2 > 0 and c1 * c2 > 0"},
    {"(x % c1) % c2", "x % c2", "c1 > 0 and c2 > 0 and c1 % c2 == 0"},
    {"x % c", "x", "0 <= x and x < c"},
    {"x // c * c + x % c", "x", "c > 0"},
    {"x % c + x // c * c", "x", "c > 0"},
    {"(x // c1 % c2) * c1 + x % c1", "x % (c1 * c2)", "c1 > 0 and c2 > 0 and c1 * c2 > 0"},
    {"x - x % c", "x // c * c", "c > 0"},
    {"x - x // c * c", "x % c", "c > 0"},
    // minimum and maximum
    {"min(u, u)", "u"},
    {"max(u, u)", "u"},
    {"min(x, y)", "x", "x <= y"},
    {"min(x, y)", "y", "y <= x"},
    {"max(x, y)", "x", "x >= y"},
    {"max(x, y)", "y", "y >= x"},
    {"min(min(x, c1), c2)", "min(x, min(c1, c2))"},
    {"max(max(x, c1), c2)", "max(x, max(c1, c2))"},
    // bits
    {"x << 0", "x"},
    {"x >> 0", "x"},
    {"x & x", "x"},
    {"x | x", "x"},
    {"x & 0", "0"},
    {"x | 0", "x"},
    {"x ^ 0", "x"},
    {"x ^ x", "0"},
    {"~(~x)", "x"},
    // comparisons
    {"c < x", "x > c"},
    {"c <= x", "x >= c"},
    {"c > x", "x < c"},
    {"c >= x", "x <= c"},
    {"c == x", "x == c"},
    {"c != x", "x != c"},
    {"x == x", "true"},
    {"x != x", "false"},
    {"x < x", "false"},
    {"x <= x", "true"},
    {"x > x", "false"},
    {"x >= x", "true"},
    {"x + c1 < c2", "x < c2 - c1", "c1 > 0 and c2 - c1 <= c2", exact},
    {"x + c1 <= c2", "x <= c2 - c1", "c1 > 0 and c2 - c1 <= c2", exact},
    {"x + c1 > c2", "x > c2 - c1", "c1 > 0 and c2 - c1 <= c2", exact},
    {"x + c1 >= c2", "x >= c2 - c1", "c1 > 0 and c2 - c1 <= c2", exact},
    {"x * c1 < c2", "x < (c2 + (c1 - 1)) // c1", "c1 > 0 and c2 > 0 and c2 + (c1 - 1) >= c2", exact},
    {"x * c1 <= c2", "x <= c2 // c1", "c1 > 0 and c2 > 0", exact},
    // logic
    {"true and p", "p"},
    {"p and true", "p"},
    {"false and p", "false"},
    {"p and false", "false"},
    {"true or p", "true"},
    {"p or true", "true"},
    {"false or p", "p"},
    {"p or false", "p"},
    {"p and p", "p"},
    {"p or p", "p"},
    {"not not p", "p"},
    {"not x < y", "x >= y"},
    {"not x <= y", "x > y"},
    {"not x > y", "x <= y"},
    {"not x >= y", "x < y"},
    {"not x == y", "x != y"},
    {"not x != y", "x == y"},
    {"p == true", "p"},
    {"p == false", "not p"},
    {"p != true", "not p"},
    {"p != false", "p"},
    // choices
    {"select(true, u, v)", "u"},
    {"select(false, u, v)", "v"},
    {"select(p, u, u)", "u"},
    {"select(not p, u, v)", "select(p, v, u)"},
    {"select(p, true, false)", "p"},
    {"select(p, false, true)", "not p"},
};

class PatternReader : public ExprReader {
 public:
  using ExprReader::ExprReader;

  Result<Expr> read() {
    struct Name {
      std::string_view text;
      DType type;
    };
    static constexpr Name kVariables[] = {{"x", kInt32},   {"y", kInt32},  {"z", kInt32}, {"c", kInt32},
                                          {"c1", kInt32},  {"c2", kInt32}, {"p", kBool},  {"q", kBool},
                                          {"u", kFloat32}, {"v", kFloat32}};
    for (const Name& name : kVariables) {
      const Token token{TokenKind::word, name.text, {}, {}};
      TRY(declare(token, make_var(std::string(name.text), name.type)));
    }
    return expr();
  }
};

Result<Expr> read_pattern(std::string_view text) {
  SourceMap sources;
  return PatternReader(TRY(lex(sources, sources.add("rule", std::string(text))))).read();
}

// A rule that cannot be read is our bug; the tests read them all.
Expr pattern(std::string_view text) {
  auto read = read_pattern(text);
  if (!read.ok()) std::abort();
  return *std::move(read);
}

bool stands_for(const VarData& variable, const Expr& subject) {
  if (variable.name[0] == 'c') return subject->type.is_int() && constant_int(subject).has_value();
  if (variable.type.is_int()) return subject->type.is_int();
  return !variable.type.is_bool() || subject->type.is_bool();
}

class Matcher {
 public:
  Bindings bindings;

  bool match(const Expr& pattern, const Expr& subject) {
    if (const auto* ref = std::get_if<VarRef>(&pattern->node)) return bind(*ref->var, subject);
    if (pattern->node.index() != subject->node.index()) return false;
    return std::visit(
        [&](const auto& n) { return same(n, std::get<std::decay_t<decltype(n)>>(subject->node), *pattern, *subject); },
        pattern->node);
  }

 private:
  bool bind(const VarData& variable, const Expr& subject) {
    if (!stands_for(variable, subject)) return false;
    const auto [known, fresh] = bindings.emplace(variable.name, subject);
    return fresh || structurally_equal(known->second, subject);
  }

  bool same(const IntImm& a, const IntImm& b, const ExprNode& x, const ExprNode& y) {
    return a.value == b.value && x.type.is_bool() == y.type.is_bool();
  }
  bool same(const FloatImm& a, const FloatImm& b, const ExprNode&, const ExprNode&) {
    return a.value == b.value && std::signbit(a.value) == std::signbit(b.value);
  }
  bool same(const Unary& a, const Unary& b, const ExprNode&, const ExprNode&) {
    return a.op == b.op && match(a.operand, b.operand);
  }
  bool same(const Binary& a, const Binary& b, const ExprNode&, const ExprNode&) {
    return a.op == b.op && match(a.left, b.left) && match(a.right, b.right);
  }
  bool same(const Select& a, const Select& b, const ExprNode&, const ExprNode&) {
    return match(a.condition, b.condition) && match(a.then, b.then) && match(a.otherwise, b.otherwise);
  }
  // No rule has any other node.
  bool same(const auto&, const auto&, const ExprNode&, const ExprNode&) { return false; }
};

// The type of the rule's integer literals: that of the integers it is about.
DType integer_type(const Bindings& bindings) {
  for (const auto& [name, value] : bindings) {
    if (value->type.is_int()) return value->type;
  }
  return kInt32;
}

// Equal for expressions that could match one pattern.
size_t root_key(const Expr& e) {
  size_t op = 0;
  if (const auto* n = std::get_if<Unary>(&e->node)) op = size_t(n->op);
  if (const auto* n = std::get_if<Binary>(&e->node)) op = size_t(n->op);
  return e->node.index() * 64 + op;
}

}  // namespace

const std::vector<CompiledRule>& compiled_rules() {
  static const std::vector<CompiledRule> compiled = [] {
    std::vector<CompiledRule> result;
    for (const RewriteRule& rule : kRules) {
      result.push_back({&rule, pattern(rule.from), pattern(rule.to), pattern(rule.when)});
    }
    return result;
  }();
  return compiled;
}

const std::vector<const CompiledRule*>& rules_for(const Expr& root) {
  static const std::unordered_map<size_t, std::vector<const CompiledRule*>> by_root = [] {
    std::unordered_map<size_t, std::vector<const CompiledRule*>> result;
    for (const CompiledRule& rule : compiled_rules()) result[root_key(rule.from)].push_back(&rule);
    return result;
  }();
  static const std::vector<const CompiledRule*> none;
  const auto found = by_root.find(root_key(root));
  return found == by_root.end() ? none : found->second;
}

std::optional<Bindings> match(const Expr& pattern, const Expr& subject) {
  Matcher matcher;
  if (!matcher.match(pattern, subject)) return std::nullopt;
  return std::move(matcher.bindings);
}

Expr instantiate(const Expr& pattern, const Bindings& bindings, Span span, const std::function<Expr(Expr)>& finish) {
  const auto part = [&](const Expr& e) { return instantiate(e, bindings, span, finish); };
  return std::visit(overloaded{
                        [&](const VarRef& n) { return bindings.at(n.var->name); },
                        [&](const IntImm& n) {
                          return int_imm(n.value, pattern->type.is_bool() ? kBool : integer_type(bindings), span);
                        },
                        [&](const Unary& n) { return finish(unary(n.op, part(n.operand), span)); },
                        [&](const Binary& n) {
                          Expr left = part(n.left);
                          return finish(binary(n.op, std::move(left), part(n.right), span));
                        },
                        [&](const Select& n) {
                          Expr condition = part(n.condition), then = part(n.then);
                          return finish(select(std::move(condition), std::move(then), part(n.otherwise), span));
                        },
                        [&](const auto&) { return pattern; },
                    },
                    pattern->node);
}

}  // namespace tilepilot::passes
