// Graphs made by hand.
#pragma once

#include <string>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval::testing {

struct Drawn {
  Graph graph;

  int value(GraphValue::Kind kind, std::vector<int64_t> shape, const std::string& dtype = "float32") {
    std::vector<int64_t> strides(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
    graph.values.push_back({kind, "v" + std::to_string(graph.values.size()), true, dtype, shape, strides});
    return static_cast<int>(graph.values.size()) - 1;
  }
  int input(std::vector<int64_t> shape, const std::string& dtype = "float32") {
    graph.inputs.push_back(value(GraphValue::Kind::input, std::move(shape), dtype));
    return graph.inputs.back();
  }
  int weight(std::vector<int64_t> shape) { return value(GraphValue::Kind::parameter, std::move(shape)); }
  // "add.Tensor" has an overload, "relu" has none.
  int node(const std::string& op, std::vector<GraphArgument> args, std::vector<int64_t> shape) {
    const int id = value(GraphValue::Kind::node, std::move(shape));
    add(op, std::move(args), {id});
    return id;
  }
  // One that gives several tensors.
  std::vector<int> node_of(const std::string& op, std::vector<GraphArgument> args,
                           const std::vector<std::vector<int64_t>>& shapes) {
    std::vector<int> ids;
    for (auto& shape : shapes) ids.push_back(value(GraphValue::Kind::node, shape));
    add(op, std::move(args), ids);
    return ids;
  }
  Drawn& returns(int id) {
    graph.outputs = {ValueRef{id}};
    return *this;
  }
  Drawn& returns_all(const std::vector<int>& ids) {
    GraphList list;
    for (int id : ids) list.push_back({ValueRef{id}});
    graph.outputs = {list};
    return *this;
  }

 private:
  void add(const std::string& op, std::vector<GraphArgument> args, std::vector<int> outputs) {
    const size_t dot = op.find('.');
    const std::string overload = dot == std::string::npos ? "" : op.substr(dot + 1);
    const int line = static_cast<int>(graph.nodes.size()) + 1;
    graph.nodes.push_back({"aten::" + op.substr(0, dot), overload, std::move(args), {}, std::move(outputs), "", line});
  }
};

inline GraphArgument ref(int id) { return {ValueRef{id}}; }
inline GraphArgument number(double value) { return {value}; }
inline GraphArgument integer(int64_t value) { return {value}; }
inline GraphArgument axes(const std::vector<int64_t>& list) {
  GraphList items;
  for (int64_t axis : list) items.push_back({axis});
  return {items};
}
inline GraphArgument refs(const std::vector<int>& ids) {
  GraphList items;
  for (int id : ids) items.push_back(ref(id));
  return {items};
}

}  // namespace tilepilot::eval::testing
