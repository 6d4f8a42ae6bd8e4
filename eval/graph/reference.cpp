#include "eval/graph/reference.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/graph/argument_json.h"

namespace tilepilot::eval {

using nlohmann::json;

int64_t GraphValue::numel() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

void for_each_value(const GraphArgument& argument, const std::function<void(int id)>& visit) {
  if (auto* id = argument.value_id()) visit(*id);
  if (auto* list = std::get_if<GraphList>(&argument.data)) {
    for (auto& item : *list) for_each_value(item, visit);
  }
  if (auto* tuple = std::get_if<GraphTuple>(&argument.data)) {
    for (auto& item : tuple->items) for_each_value(item, visit);
  }
  if (auto* dict = std::get_if<GraphDict>(&argument.data)) {
    for (auto& item : dict->values) for_each_value(item, visit);
  }
}

namespace {

constexpr int kVersion = 1;

Error invalid_reference(const std::string& what) {
  return make_error(DiagnosticKind::reference_invalid, {}, "the exported reference is damaged: " + what,
                    "export the model again");
}

Result<GraphValue> read_value(const json& node) {
  static const std::map<std::string, GraphValue::Kind> kinds = {{"input", GraphValue::Kind::input},
                                                                {"parameter", GraphValue::Kind::parameter},
                                                                {"buffer", GraphValue::Kind::buffer},
                                                                {"constant", GraphValue::Kind::constant},
                                                                {"node", GraphValue::Kind::node}};
  GraphValue value;
  auto kind = kinds.find(node.at("kind").get<std::string>());
  if (kind == kinds.end()) return invalid_reference("a value has an unknown kind");
  value.kind = kind->second;
  node.at("name").get_to(value.name);
  value.attribute = node.value("attribute", "");
  value.is_tensor = node.value("tensor", true);
  if (!value.is_tensor) return value;
  node.at("dtype").get_to(value.dtype);
  node.at("shape").get_to(value.shape);
  node.at("strides").get_to(value.strides);
  if (value.shape.size() != value.strides.size()) {
    return invalid_reference(
        fmt::format("`{}` has {} extents and {} strides", value.name, value.shape.size(), value.strides.size()));
  }
  return value;
}

Result<GraphNode> read_node(const json& node) {
  GraphNode result;
  node.at("op").get_to(result.op);
  node.at("overload").get_to(result.overload);
  for (auto& argument : node.at("args")) result.args.push_back(TRY(argument_from_json(argument)));
  for (auto& entry : node.at("kwargs")) {
    auto argument = TRY(argument_from_json(entry.at(1)));
    result.kwargs.emplace_back(entry.at(0).get<std::string>(), std::move(argument));
  }
  node.at("outputs").get_to(result.outputs);
  node.at("module").get_to(result.module);
  node.at("line").get_to(result.line);
  return result;
}

// Each value is made before it is used, once.
Status check_order(const Graph& graph) {
  std::vector<char> defined(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) defined[i] = graph.values[i].kind != GraphValue::Kind::node;
  auto is_defined = [&](int id) { return id >= 0 && static_cast<size_t>(id) < defined.size() && defined[id]; };
  bool ok = true;
  auto check = [&](int id) { ok = ok && is_defined(id); };
  for (auto& node : graph.nodes) {
    for (auto& argument : node.args) for_each_value(argument, check);
    for (auto& [name, argument] : node.kwargs) for_each_value(argument, check);
    if (!ok) return invalid_reference(fmt::format("`{}` uses a value that does not exist yet", node.op));
    for (int id : node.outputs) {
      if (id >= static_cast<int>(defined.size()) || is_defined(id)) {
        return invalid_reference(fmt::format("`{}` makes a value that is not its own", node.op));
      }
      if (id >= 0) defined[static_cast<size_t>(id)] = 1;
    }
  }
  for_each_value(graph.outputs, check);
  for (int id : graph.inputs) check(id);
  if (!ok) return invalid_reference("an input or output of the graph does not exist");
  return {};
}

Result<Graph> read_graph(const json& node) {
  Graph graph;
  for (auto& value : node.at("values")) graph.values.push_back(TRY(read_value(value)));
  node.at("inputs").get_to(graph.inputs);
  for (auto& item : node.at("nodes")) graph.nodes.push_back(TRY(read_node(item)));
  graph.outputs = TRY(argument_from_json(node.at("outputs")));
  TRY(check_order(graph));
  return graph;
}

Result<ParameterInfo> read_parameter(const json& node, const Graph& forward) {
  ParameterInfo parameter;
  node.at("name").get_to(parameter.name);
  node.at("value").get_to(parameter.value);
  node.at("tensor").get_to(parameter.tensor);
  node.at("buffer").get_to(parameter.is_buffer);
  parameter.is_attribute = node.value("is_attribute", false);  // like the next, younger than the version
  parameter.is_input = node.value("is_input", false);
  if (parameter.value < -1 || parameter.value >= static_cast<int>(forward.values.size())) {
    return invalid_reference(fmt::format("parameter `{}` names a value that does not exist", parameter.name));
  }
  return parameter;
}

Status check_version(const json& document) {
  if (document.value("format", "") != "tilepilot-reference") return invalid_reference("it is another kind of file");
  int version = document.at("version").get<int>();
  if (version == kVersion) return {};
  return make_error(DiagnosticKind::reference_invalid, {},
                    fmt::format("the exported reference has version {}, this program reads {}", version, kVersion),
                    "export the model again");
}

Result<Reference> read_reference(const json& document, const std::filesystem::path& folder) {
  TRY(check_version(document));
  Reference reference;
  document.at("model_path").get_to(reference.model_path);
  document.at("model_source").get_to(reference.model_source);
  document.at("torch_version").get_to(reference.torch_version);
  document.at("seed").get_to(reference.seed);
  reference.dtype = document.value("dtype", "model");
  if (document.contains("scale")) document.at("scale").at("factor").get_to(reference.scale);
  document.at("training").get_to(reference.training);
  document.at("warnings").get_to(reference.warnings);
  reference.init_inputs = TRY(argument_from_json(document.at("init_inputs")));
  reference.forward = TRY(read_graph(document.at("forward")));
  reference.inputs = TRY(read_graph(document.at("inputs")));
  for (auto& item : document.at("parameters")) {
    reference.parameters.push_back(TRY(read_parameter(item, reference.forward)));
  }
  for (auto& item : document.value("numbers", json::array())) {
    InputNumber& number = reference.numbers.emplace_back();
    item.at("input").get_to(number.input);
    for (auto& place : item.at("places"))
      number.places.push_back({place.at("node"), place.at("keyword"), place.at("path").get<std::vector<size_t>>()});
  }
  for (auto& item : document.value("variants", json::array())) {
    InputVariant& variant = reference.variants.emplace_back();
    item.at("input").get_to(variant.input);
    variant.value = TRY(argument_from_json(item.at("value")));
    if (!item.at("forward").is_null()) variant.forward = TRY(read_graph(item.at("forward")));
  }
  reference.weights = folder / document.at("weights").get<std::string>();
  if (!std::filesystem::exists(reference.weights)) return invalid_reference("its weights file is missing");
  return reference;
}

}  // namespace

Result<Reference> load_reference(const std::filesystem::path& folder) {
  std::filesystem::path path = folder / "reference.json";
  std::ifstream file(path);
  if (!file) {
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("`{}` cannot be read", path.string()),
                      "name a folder that `scripts/export_reference.py` wrote");
  }
  try {
    return read_reference(json::parse(file), folder);
  } catch (const json::exception& error) {
    return invalid_reference(fmt::format("`{}`: {}", path.string(), error.what()));
  }
}

}  // namespace tilepilot::eval
