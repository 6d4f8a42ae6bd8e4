#include "eval/worker/truth/compare/output_structure.h"

#include <fmt/format.h>

#include "eval/graph/argument_json.h"

namespace tilepilot::eval {

using nlohmann::json;

namespace {

std::string describe(const json& node) {
  if (node.is_object() && node.contains("tensor")) return "a tensor";
  if (node.is_object()) return "a dictionary";
  if (node.is_array()) return fmt::format("a sequence of {}", node.size());
  return node.is_null() ? "None" : fmt::format("`{}`", node.dump());
}

std::string describe(const GraphArgument& argument) {
  if (argument.value_id()) return "a tensor";
  if (std::holds_alternative<GraphDict>(argument.data)) return "a dictionary";
  if (auto* list = std::get_if<GraphList>(&argument.data)) return fmt::format("a sequence of {}", list->size());
  return describe(to_json(argument));
}

class Matcher {
 public:
  explicit Matcher(const Graph& forward) : forward_(forward) {}

  void match(const GraphArgument& expected, const json& actual) {
    bool fits = std::visit([&](auto& alternative) { return fit(alternative, actual); }, expected.data);
    if (!fits && result.mismatch.empty()) {
      result.mismatch =
          fmt::format("`forward` returns {} where the model returns {}", describe(actual), describe(expected));
    }
  }

  StructureMatch result;

 private:
  bool fit(ValueRef ref, const json& actual) {
    if (!forward_.values[static_cast<size_t>(ref.id)].is_tensor) return true;
    if (!actual.is_object() || !actual.contains("tensor")) return false;
    result.tensors.push_back(actual.at("tensor").get<size_t>());
    return true;
  }
  bool fit(const GraphList& items, const json& actual) {
    if (!actual.is_array() || actual.size() != items.size()) return false;
    for (size_t i = 0; i < items.size(); ++i) match(items[i], actual[i]);
    return true;
  }
  bool fit(const GraphDict& dict, const json& actual) {
    if (!actual.is_object() || !actual.contains("dict") || actual.at("dict").size() != dict.keys.size()) return false;
    for (size_t i = 0; i < dict.keys.size(); ++i) {
      const json* item = nullptr;
      for (auto& entry : actual.at("dict")) {
        if (entry.at(0) == dict.keys[i]) item = &entry.at(1);
      }
      if (!item) {
        result.mismatch = fmt::format("`forward` returns a dictionary without `{}`", dict.keys[i]);
        return true;
      }
      match(dict.values[i], *item);
    }
    return true;
  }
  template <class Constant>
  bool fit(const Constant& constant, const json& actual) {
    return to_json(GraphArgument{constant}) == actual;
  }

  const Graph& forward_;
};

GraphArgument number(const GraphArgument& argument, int& next) {
  if (argument.value_id()) return GraphArgument{ValueRef{next++}};
  if (auto* list = std::get_if<GraphList>(&argument.data)) {
    GraphList items;
    for (auto& item : *list) items.push_back(number(item, next));
    return GraphArgument{std::move(items)};
  }
  if (auto* dict = std::get_if<GraphDict>(&argument.data)) {
    GraphDict numbered{dict->keys, {}};
    for (auto& item : dict->values) numbered.values.push_back(number(item, next));
    return GraphArgument{std::move(numbered)};
  }
  return argument;
}

}  // namespace

StructureMatch match_structure(const Graph& forward, const json& structure) {
  Matcher matcher(forward);
  matcher.match(forward.outputs, structure);
  return std::move(matcher.result);
}

GraphArgument tensor_numbers(const GraphArgument& outputs) {
  int next = 0;
  return number(outputs, next);
}

}  // namespace tilepilot::eval
