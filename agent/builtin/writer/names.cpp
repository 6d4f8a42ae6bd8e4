#include "agent/builtin/writer/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace tilepilot::agent::builtin {

std::string identifier(std::string_view text) {
  std::string result;
  for (char c : text) result += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
  while (!result.empty() && result.back() == '_') result.pop_back();
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) result = "x_" + result;
  return result;
}

namespace {

std::string base_name(const std::string& op) {
  std::string name = op.substr(op.find("::") + 2);
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.starts_with("__")) return "bitwise_" + name.substr(2);  // "__or__"
  if (name == "linear" || name == "addmm") return "bias";
  if (name == "cross_entropy_loss") return "cross_entropy";
  if (name == "linalg_vector_norm") return "norm";
  return name;
}

bool only_renames(const std::string& op) {
  static const std::set<std::string> names = {"aten::view",    "aten::reshape",   "aten::transpose", "aten::permute",
                                              "aten::chunk",   "aten::split",     "aten::alias",     "aten::contiguous",
                                              "aten::expand",  "aten::dropout",   "aten::flatten",   "aten::full_like",
                                              "aten::squeeze", "aten::unsqueeze", "aten::slice",     "aten::to"};
  return names.count(op) > 0;
}

// Operators that say little about what a kernel is for.
bool is_plain(const std::string& name) {
  static const std::set<std::string> names = {"add",  "sub",  "mul",   "div",   "pow", "neg", "where", "eq",  "sum",
                                              "mean", "sqrt", "rsqrt", "clamp", "exp", "max", "min",   "abs", "rsub"};
  return names.count(name) > 0;
}

std::vector<int> origins_of(const PrimitiveGraph& graph, const Group& group) {
  std::set<int> origins;
  for (int id : group.members)
    if (!graph.copies_product(id)) origins.insert(graph.at(id).origin);
  if (origins.empty()) origins.insert(graph.at(group.outputs.front()).origin);
  return {origins.begin(), origins.end()};
}

bool is_all(const eval::Reference& reference, const std::vector<int>& origins) {
  for (size_t i = 0; i < reference.forward.nodes.size(); ++i)
    if (!only_renames(reference.forward.nodes[i].op) &&
        !std::count(origins.begin(), origins.end(), static_cast<int>(i)))
      return false;
  return true;
}

// Sums of squares without a mean taken off, then a reciprocal root.
bool is_rms_norm(const PrimitiveGraph& graph, const Group& group) {
  bool squares = false, root = false;
  for (int id : group.members) {
    const Primitive& p = graph.at(id);
    if (p.kind == Primitive::Kind::map && p.op == ScalarOp::sub) return false;
    if (p.kind == Primitive::Kind::map && p.op == ScalarOp::rsqrt) root = true;
    if (p.kind != Primitive::Kind::reduce) continue;
    const Primitive& input = graph.at(p.args[0]);
    squares = input.kind == Primitive::Kind::map && input.op == ScalarOp::mul && input.args[0] == input.args[1];
  }
  return squares && root;
}

}  // namespace

std::string kernel_name(const eval::Reference& reference, const PrimitiveGraph& graph, const Group& group) {
  std::vector<int> origins = origins_of(graph, group);
  std::filesystem::path path(reference.model_path);
  if (is_all(reference, origins) && !path.stem().empty()) return identifier(path.stem().string());
  if (is_rms_norm(graph, group)) return "rms_norm";
  std::vector<std::string> names, telling;
  for (int origin : origins) {
    if (origin < 0) continue;
    const eval::GraphNode& node = reference.forward.nodes[static_cast<size_t>(origin)];
    std::string name = base_name(node.op);
    if (only_renames(node.op) || std::count(names.begin(), names.end(), name)) continue;
    names.push_back(name);
    if (!is_plain(name)) telling.push_back(name);
  }
  const std::string& hint = graph.at(group.outputs.front()).hint;
  if (telling.empty() && names.size() == 1 && !hint.empty()) return identifier(hint);
  if (names.size() > 3 && !telling.empty()) names = telling;
  if (names.size() > 3) names.resize(3);
  return names.empty() ? "fused" : identifier(fmt::format("{}", fmt::join(names, "_")));
}

std::string tensor_name(const eval::Reference& reference, const PrimitiveGraph& graph, int base) {
  const Primitive& p = graph.at(base);
  bool told = p.kind == Primitive::Kind::reduce || (p.kind == Primitive::Kind::map && !p.hint.empty());
  if (told) return identifier(p.hint);
  if (p.kind != Primitive::Kind::source) return "x";
  std::string name = reference.forward.values[static_cast<size_t>(p.value)].name;
  return identifier(name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1));
}

}  // namespace tilepilot::agent::builtin
