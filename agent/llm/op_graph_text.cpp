#include "agent/llm/op_graph_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "agent/llm/quotation.h"

namespace tilepilot::agent {
namespace {

using eval::GraphNode;
using eval::GraphValue;

bool is_contiguous(const GraphValue& value) {
  int64_t expected = 1;
  for (size_t i = value.shape.size(); i-- > 0;) {
    if (i < value.strides.size() && value.shape[i] > 1 && value.strides[i] != expected) return false;
    expected *= value.shape[i];
  }
  return true;
}

// "float32[16, 64]", with strides where they are not those of the shape.
std::string type_text(const GraphValue& value) {
  if (!value.is_tensor) return value.dtype.empty() ? "a number" : value.dtype;
  std::string text = fmt::format("{}[{}]", value.dtype, fmt::join(value.shape, ", "));
  if (!is_contiguous(value)) text += fmt::format(" strides ({})", fmt::join(value.strides, ", "));
  return text;
}

std::string name_of(const GraphValue& value) { return in_one_line(value.name.empty() ? "?" : value.name); }

std::string amount(double value, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T"};
  size_t prefix = 0;
  for (; value >= 1000 && prefix < 4; ++prefix) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

std::string time_text(double seconds) {
  if (seconds > 0 && seconds < 5e-8) return "less than 0.1 us";
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

std::string argument_text(const eval::GraphArgument& argument, const eval::Graph& graph) {
  if (const int* id = argument.value_id()) return name_of(graph.values[static_cast<size_t>(*id)]);
  if (const auto* flag = std::get_if<bool>(&argument.data)) return *flag ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&argument.data)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&argument.data)) return fmt::format("{:g}", *number);
  if (const auto* text = std::get_if<std::string>(&argument.data)) return "'" + in_one_line(*text) + "'";
  if (const auto* list = std::get_if<eval::GraphList>(&argument.data)) {
    std::vector<std::string> items;
    for (const auto& item : *list) items.push_back(argument_text(item, graph));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  return std::holds_alternative<std::monostate>(argument.data) ? "None" : "...";
}

// The time, and whether the machine's rates promise far less where much of a call goes.
std::string measured_text(double seconds, double by_rates, const eval::EagerTimes& eager) {
  constexpr double kMuch = 0.1, kFar = 0.2;
  std::string text = time_text(seconds);
  const bool matters = seconds >= kMuch * eager.call.median_us * 1e-6 && eager.waited < eval::EagerTimes::kBusy;
  if (matters && by_rates < kFar * seconds) text += ": PyTorch is far from the machine's rates here";
  return text;
}

std::string row_text(const eval::GraphUses& uses, size_t index, const eval::MachineRates& rates,
                     const eval::EagerTimes* eager) {
  const eval::Graph& graph = uses.graph();
  const GraphNode& node = graph.nodes[index];
  std::vector<std::string> arguments, results;
  for (const auto& argument : node.args) arguments.push_back(argument_text(argument, graph));
  for (const auto& [key, argument] : node.kwargs) arguments.push_back(key + "=" + argument_text(argument, graph));
  for (int output : node.outputs)
    if (output >= 0) {
      const GraphValue& value = graph.values[static_cast<size_t>(output)];
      results.push_back(name_of(value) + ": " + type_text(value));
    }
  const eval::NodeCost cost = cost_of(uses, node);
  const double work = estimate_s(cost, rates);
  std::string text = fmt::format("{}. `{} = {}({})`", index + 1, fmt::join(results, ", "), eval::short_name(node),
                                 fmt::join(arguments, ", "));
  if (node.line > 0) text += fmt::format(", line {}", node.line);
  text += fmt::format(": {}, {}, {}", amount(cost.product_flops + cost.other_flops, "FLOP"), amount(cost.bytes, "B"),
                      time_text(work));
  if (eager) text += ", measured " + measured_text(eager->node_us[index] * 1e-6, work, *eager);
  return text + "\n";
}

// "Measured here, a call of eager takes 1.50 ms: 69 % in `sin` (10 times), 21 % in `add` (11 times)."
std::string measured_text(const eval::Graph& graph, const eval::EagerTimes& eager) {
  struct Kind {
    double us = 0;
    int count = 0;
  };
  std::map<std::string_view, Kind> kinds;
  double whole = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Kind& kind = kinds[eval::short_name(graph.nodes[i])];
    kind.us += eager.node_us[i];
    whole += eager.node_us[i];
    ++kind.count;
  }
  std::vector<std::pair<std::string_view, Kind>> dearest(kinds.begin(), kinds.end());
  std::stable_sort(dearest.begin(), dearest.end(),
                   [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  constexpr size_t kMostKinds = 8;
  constexpr double kLeastShare = 0.01;
  std::vector<std::string> shares;
  for (const auto& [name, kind] : dearest) {
    const double share = kind.us / std::max(whole, 1e-9);
    if (shares.size() == kMostKinds || share < kLeastShare) break;
    shares.push_back(fmt::format("{:.0f} % in {}{}", 100 * share, in_backticks(name),
                                 kind.count > 1 ? fmt::format(" ({} times)", kind.count) : ""));
  }
  return fmt::format("Measured here{}, a call of eager takes {}{}{}.\n",
                     eager.waited >= eval::EagerTimes::kBusy ? " (while others were at work)" : "",
                     time_text(eager.call.median_us * 1e-6), shares.empty() ? "" : ": ", fmt::join(shares, ", "));
}

// The bound, and what is none because another program may do with fewer products.
std::string bound_of(const eval::Preflight& preflight) {
  if (preflight.bound.s <= 0) return "";
  std::string text = fmt::format(
      "The bound: whatever the program, it takes at least about {} on this machine, for {}. What a program "
      "hands from one operator to the next is not in it.\n",
      time_text(preflight.bound.s), preflight.bound.words);
  if (preflight.least.compute_s > preflight.bound.s)
    text += fmt::format(
        "The products as the model writes them take at least {} at the machine's peak; a program that "
        "needs fewer may take less.\n",
        time_text(preflight.least.compute_s));
  return text;
}

std::string totals_of(const eval::Preflight& preflight) {
  const eval::GraphCost& cost = preflight.cost;
  std::string text = fmt::format(
      "All operators: {} of products and {} of other arithmetic; eager moves {} in {} launches, about {} by the "
      "rates above.\n",
      amount(cost.product_flops, "FLOP"), amount(cost.other_flops, "FLOP"), amount(cost.eager_bytes, "B"),
      cost.launches, time_text(preflight.eager_s));
  text += bound_of(preflight);
  for (const eval::Shortcut& shortcut : preflight.shortcuts) {
    text += "Exact for all inputs and weights";
    if (shortcut.line > 0) text += fmt::format(" (line {})", shortcut.line);
    text += ": " + in_one_line(shortcut.sentence) + "\n";
  }
  if (!preflight.unused.empty())
    text +=
        fmt::format("No output depends on {}.\n", in_one_line(fmt::format("{}", fmt::join(preflight.unused, ", "))));
  return text;
}

// A long graph is mostly repetition: what the nodes of each line of the model come to, in the order of the lines' first
// nodes.
std::vector<std::string> rows_by_line(const eval::GraphUses& uses, const eval::MachineRates& rates,
                                      const eval::EagerTimes* eager) {
  struct Line {
    int number = 0, nodes = 0;
    std::vector<std::string> names;  // of operators, each once
    double flops = 0, bytes = 0, seconds = 0, measured = 0;
  };
  constexpr size_t kMostNames = 12;
  std::vector<Line> lines;
  const eval::Graph& graph = uses.graph();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& each) { return each.number == node.line; });
    if (line == lines.end()) line = lines.insert(lines.end(), Line{node.line});
    const std::string name = in_backticks(eval::short_name(node));
    if (std::find(line->names.begin(), line->names.end(), name) == line->names.end()) line->names.push_back(name);
    const eval::NodeCost cost = cost_of(uses, node);
    ++line->nodes;
    line->flops += cost.product_flops + cost.other_flops;
    line->bytes += cost.bytes;
    line->seconds += estimate_s(cost, rates);
    if (eager) line->measured += eager->node_us[i] * 1e-6;
  }
  std::vector<std::string> rows;
  for (Line& line : lines) {
    const bool is_long = line.names.size() > kMostNames;
    if (is_long) line.names.resize(kMostNames);
    std::string row = line.number > 0 ? fmt::format("line {}", line.number) : "elsewhere";
    row += fmt::format(": {} operators, {}{}: {}, {}, {}", line.nodes, fmt::join(line.names, ", "),
                       is_long ? " and others" : "", amount(line.flops, "FLOP"), amount(line.bytes, "B"),
                       time_text(line.seconds));
    if (eager) row += ", measured " + measured_text(line.measured, line.seconds, *eager);
    rows.push_back(row + "\n");
  }
  return rows;
}

}  // namespace

OpGraphText describe_graph(const eval::Reference& reference, const eval::Preflight& preflight,
                           const std::optional<eval::EagerTimes>& given) {
  const eval::Graph& graph = reference.forward;
  const eval::GraphUses uses(graph);
  const bool fits = given && given->node_us.size() == graph.nodes.size() && given->call.median_us > 0;
  const eval::EagerTimes* eager = fits ? &*given : nullptr;
  OpGraphText text;
  auto line = [&](const char* what, int value) {
    const GraphValue& shown = graph.values[static_cast<size_t>(value)];
    return fmt::format("- {} {}: {}\n", what, in_backticks(shown.name), type_text(shown));
  };
  for (int input : graph.inputs) text.signature += line("input", input);
  for (const eval::ParameterInfo& parameter : reference.parameters)
    if (parameter.value >= 0) text.signature += line(parameter.is_buffer ? "buffer" : "parameter", parameter.value);
  constexpr size_t kMostRows = 100;
  if (graph.nodes.size() > kMostRows) text.rows = rows_by_line(uses, preflight.rates, eager);
  for (size_t i = 0; i < graph.nodes.size() && graph.nodes.size() <= kMostRows; ++i)
    text.rows.push_back(row_text(uses, i, preflight.rates, eager));
  if (eager) text.totals = measured_text(graph, *eager);
  text.totals += totals_of(preflight);
  return text;
}

}  // namespace tilepilot::agent
