#include "eval/worker/value_json.h"

#include <nlohmann/json.hpp>

#include "compiler/stage/python/containers/containers.h"

namespace tilepilot::eval {

using nlohmann::json;
using stage::Interpreter;
using stage::Value;

Result<json> json_of(Interpreter& interpreter, const Value& value) {
  if (value.is_none()) return json();
  if (auto* flag = value.if_bool()) return json(*flag);
  if (auto* integer = value.if_int()) return json(*integer);
  if (auto* real = value.if_float()) return json(*real);
  if (auto* text = value.if_string()) return json(*text);
  if (auto* items = stage::sequence_items(value)) {
    json list = json::array();
    for (const Value& item : *items) list.push_back(TRY(json_of(interpreter, item)));
    return list;
  }
  auto* dict = value.get_if<stage::DictObject>();
  if (dict == nullptr) return json(TRY(interpreter.str(value)));
  json object = json::object();
  for (const auto& entry : dict->table.entries()) {
    if (!entry.live) continue;
    const std::string name = TRY(interpreter.str(entry.key));
    object[name] = TRY(json_of(interpreter, entry.value));
  }
  return object;
}

Result<Value> value_of(Interpreter& interpreter, const json& json, Span span) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(TRY(value_of(interpreter, item, span)));
    return stage::make_list(std::move(items));
  }
  if (!json.is_object()) return Value();
  Value dict = stage::make_dict();
  for (const auto& [name, item] : json.items()) {
    Value value = TRY(value_of(interpreter, item, span));
    TRY(dict.get_if<stage::DictObject>()->table.set(interpreter, Value(name), std::move(value), span));
  }
  return dict;
}

}  // namespace tilepilot::eval
