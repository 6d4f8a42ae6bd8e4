// The simplifier's rules as a table of texts: `from` becomes `to` where `when` is known to hold. One rule a line; a
// test checks each on random instances over all integer types.
//
// In the texts x, y, z are integers, c, c1, c2 integer literals, p, q bools, u, v of any type. A literal matches any
// literal of its value. `exact` rules hold for mathematical integers only: they apply where `from` cannot wrap.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/expr.h"

namespace tilepilot::passes {

enum class Arithmetic : uint8_t { wrapping, exact };

struct RewriteRule {
  std::string_view from, to;
  std::string_view when = "true";
  Arithmetic arithmetic = Arithmetic::wrapping;
};

// A rule read from its text.
struct CompiledRule {
  const RewriteRule* rule;
  ir::Expr from, to, when;
};
const std::vector<CompiledRule>& compiled_rules();
// Those whose pattern has the same operator at its root.
const std::vector<const CompiledRule*>& rules_for(const ir::Expr& root);

// What a pattern's variables stand for.
using Bindings = std::unordered_map<std::string, ir::Expr>;
std::optional<Bindings> match(const ir::Expr& pattern, const ir::Expr& subject);
// `finish` is applied to each node that is built, innermost first.
ir::Expr instantiate(const ir::Expr& pattern, const Bindings& bindings, Span span,
                     const std::function<ir::Expr(ir::Expr)>& finish);

}  // namespace tilepilot::passes
