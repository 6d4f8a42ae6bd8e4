#include "eval/graph/argument_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tilepilot::eval {

using nlohmann::json;

namespace {

Error invalid_argument(const std::string& what) {
  return make_error(DiagnosticKind::reference_invalid, {}, "the exported reference is damaged: " + what,
                    "export the model again");
}

Result<GraphList> read_items(const json& node) {
  GraphList items;
  for (auto& item : node) items.push_back(TRY(argument_from_json(item)));
  return items;
}

Result<GraphArgument> read_dict(const json& node) {
  GraphDict dict;
  for (auto& entry : node) {
    dict.keys.push_back(entry.at(0).get<std::string>());
    dict.values.push_back(TRY(argument_from_json(entry.at(1))));
  }
  return GraphArgument{std::move(dict)};
}

Result<GraphArgument> read_special_float(const std::string& text) {
  if (text == "inf") return GraphArgument{std::numeric_limits<double>::infinity()};
  if (text == "-inf") return GraphArgument{-std::numeric_limits<double>::infinity()};
  if (text == "nan") return GraphArgument{std::numeric_limits<double>::quiet_NaN()};
  return invalid_argument(fmt::format("`{}` is not a number", text));
}

// {"value": 3}, {"dtype": "float32"}, ...: an object with one member that says what it is.
Result<GraphArgument> read_tagged(const json& node) {
  if (node.size() != 1) return invalid_argument("an argument has several tags");
  const std::string& tag = node.begin().key();
  const json& content = node.begin().value();
  if (tag == "value") return GraphArgument{ValueRef{content.get<int>()}};
  if (tag == "float") return read_special_float(content.get<std::string>());
  if (tag == "tuple") return GraphArgument{GraphTuple{TRY(read_items(content))}};
  if (tag == "dict") return read_dict(content);
  if (tag == "dtype") return GraphArgument{DtypeName{content.get<std::string>()}};
  if (tag == "device") return GraphArgument{DeviceName{content.get<std::string>()}};
  if (tag == "layout") return GraphArgument{LayoutName{content.get<std::string>()}};
  if (tag == "memory_format") return GraphArgument{MemoryFormatName{content.get<std::string>()}};
  return invalid_argument(fmt::format("an argument has the unknown tag `{}`", tag));
}

json list_json(const GraphList& items) {
  json list = json::array();
  for (auto& item : items) list.push_back(to_json(item));
  return list;
}

struct Writer {
  json operator()(std::monostate) const { return nullptr; }
  json operator()(bool value) const { return value; }
  json operator()(int64_t value) const { return value; }
  json operator()(double value) const {
    if (std::isnan(value)) return {{"float", "nan"}};
    if (std::isinf(value)) return {{"float", value > 0 ? "inf" : "-inf"}};
    return value;
  }
  json operator()(const std::string& value) const { return value; }
  json operator()(ValueRef ref) const { return {{"value", ref.id}}; }
  json operator()(const DtypeName& dtype) const { return {{"dtype", dtype.name}}; }
  json operator()(const DeviceName& device) const { return {{"device", device.name}}; }
  json operator()(const LayoutName& layout) const { return {{"layout", layout.name}}; }
  json operator()(const MemoryFormatName& format) const { return {{"memory_format", format.name}}; }
  json operator()(const GraphList& items) const { return list_json(items); }
  json operator()(const GraphTuple& tuple) const { return {{"tuple", list_json(tuple.items)}}; }
  json operator()(const GraphDict& dict) const {
    json entries = json::array();
    for (size_t i = 0; i < dict.keys.size(); ++i) {
      entries.push_back(json::array({json(dict.keys[i]), to_json(dict.values[i])}));
    }
    return {{"dict", entries}};
  }
};

}  // namespace

json to_json(const GraphArgument& argument) { return std::visit(Writer{}, argument.data); }

Result<GraphArgument> argument_from_json(const json& node) {
  switch (node.type()) {
    case json::value_t::null:
      return GraphArgument{};
    case json::value_t::boolean:
      return GraphArgument{node.get<bool>()};
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return GraphArgument{node.get<int64_t>()};
    case json::value_t::number_float:
      return GraphArgument{node.get<double>()};
    case json::value_t::string:
      return GraphArgument{node.get<std::string>()};
    case json::value_t::array:
      return GraphArgument{TRY(read_items(node))};
    case json::value_t::object:
      return read_tagged(node);
    default:
      return invalid_argument("an argument is binary");
  }
}

}  // namespace tilepilot::eval
