#include "compiler/targets/cpu/loops/index_set_splitting.h"

#include "compiler/targets/c/expr.h"

namespace tilepilot::targets::cpu {
namespace {

// The largest or the least of all.
std::string combined(const char* function, const std::vector<std::string>& all, std::string text) {
  for (const std::string& other : all) text = fmt::format("{}<int64_t>({}, {})", function, text, other);
  return text;
}

void add_once(std::vector<std::string>& all, std::string text) {
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

// factor * var + rest >= 0
void add_bound(c::Context& context, int64_t factor, const ir::Affine& rest, SplitIndexSet& range) {
  const std::string other = index(context, rest);
  if (factor == 1) return add_once(range.first, fmt::format("-({})", other));
  if (factor == -1) return add_once(range.end, fmt::format("{} + 1", other));
  const std::string quotient = fmt::format("floor_div<int64_t>({}, {})", other, std::abs(factor));
  if (factor > 0) return add_once(range.first, "-" + quotient);
  add_once(range.end, quotient + " + 1");
}

}  // namespace

std::optional<SplitIndexSet> split_index_set(c::Context& context, const ir::Expr& condition, const ir::Var& var,
                                             const std::function<bool(const ir::Var&)>& is_inside) {
  std::vector<ir::Affine> forms;  // that are not negative where the condition holds
  if (!c::collect_comparisons(context.facts, condition, forms)) return std::nullopt;
  SplitIndexSet range;
  for (const ir::Affine& form : forms) {
    if (context.facts.range(form).lo >= 0) continue;
    ir::Affine rest{{}, form.constant};
    for (const auto& term : form.terms) {
      if (term.var == var) continue;
      if (is_inside(term.var)) return std::nullopt;
      rest.terms.push_back(term);
    }
    const int64_t factor = form.coefficient(var);
    if (factor == 0)
      add_once(range.conditions, index(context, rest) + " >= 0");
    else
      add_bound(context, factor, rest, range);
  }
  return range;
}

std::pair<std::string, std::string> write_range(c::Context& context, const SplitIndexSet& range,
                                                const CountedLoop& loop) {
  const std::string base = loop.base.empty() ? "0" : loop.base, less = loop.base.empty() ? "" : " - " + loop.base;
  const auto named = [&](const char* wish, const std::string& value) {
    const std::string name = context.names.fresh(wish);
    context.body.line("const int64_t {} = {};", name, value);
    return name;
  };
  std::string first = "0", end = loop.extent;
  if (!range.first.empty())
    first = named("first", fmt::format("min_of<int64_t>({}{}, {})", combined("max_of", range.first, base), less, end));
  if (!range.end.empty()) {
    const std::string past = loop.base.empty() ? end : fmt::format("{} + {}", base, end);
    end = combined("min_of", range.end, past) + less;
  }
  if (!range.conditions.empty()) end = fmt::format("{} ? {} : 0", fmt::join(range.conditions, " && "), end);
  return {first, end == loop.extent ? end : named("end", end)};
}

}  // namespace tilepilot::targets::cpu
