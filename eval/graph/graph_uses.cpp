#include "eval/graph/graph_uses.h"

#include <algorithm>
#include <set>

namespace tilepilot::eval {

bool always_views(std::string_view name) {
  static const std::set<std::string_view> names = {
      "view",    "transpose",    "permute",          "select",     "slice",    "unsqueeze", "squeeze", "expand",
      "t",       "alias",        "detach",           "chunk",      "split",    "unbind",    "narrow",  "unfold",
      "movedim", "diagonal",     "unflatten",        "expand_as",  "view_as",  "swapaxes",  "numpy_T", "mT",
      "real",    "tensor_split", "split_with_sizes", "as_strided", "moveaxis", "swapdims"};
  return names.count(name) != 0;
}

namespace {

bool is_row_major(const GraphValue& value) {
  int64_t expected = 1;
  for (size_t i = value.shape.size(); i-- > 0;) {
    if (value.shape[i] != 1 && value.strides[i] != expected) return false;
    expected *= value.shape[i];
  }
  return true;
}

// Whether strides alone can show a tensor in another shape: each run of axes that lies without gaps, as one axis, must
// be cut into whole axes of the new shape. A reshape copies only where they cannot.
bool has_strides_for(const GraphValue& from, const GraphValue& to) {
  if (from.strides.size() != from.shape.size() || from.numel() != to.numel()) return false;
  size_t left = to.shape.size();
  int64_t run = 1, taken = 1, step = 0;  // elements of the run, of the new axes in it, and the run's innermost stride
  for (size_t axis = from.shape.size(); axis-- > 0;) {
    if (from.shape[axis] != 1 && run == 1) step = from.strides[axis];
    run *= from.shape[axis];
    size_t outer = axis;
    while (outer > 0 && from.shape[outer - 1] == 1) --outer;
    if (outer > 0 && (run == 1 || from.strides[outer - 1] == run * step)) continue;
    while (left > 0 && (taken < run || to.shape[left - 1] == 1)) taken *= to.shape[--left];
    if (taken != run) return false;
    run = taken = 1;
  }
  return left == 0;
}

// Copies unless there is nothing to do.
bool views_here(const GraphNode& node, const GraphValue& from, const GraphValue& to) {
  auto name = short_name(node);
  if (name == "reshape" || name == "flatten" || name == "ravel") return is_row_major(from) || has_strides_for(from, to);
  if (name == "contiguous") return is_row_major(from);
  if (name == "to" || name == "float" || name == "type_as") return from.dtype == to.dtype && from.strides == to.strides;
  if (name == "dropout") {
    auto* training = argument_of(node, 2, "train");
    auto* flag = training ? std::get_if<bool>(&training->data) : nullptr;
    return flag && !*flag;
  }
  return always_views(name);
}

}  // namespace

std::vector<int> operands(const GraphNode& node) {
  std::vector<int> ids;
  auto take = [&](int id) { ids.push_back(id); };
  for (auto& argument : node.args) for_each_value(argument, take);
  for (auto& [name, argument] : node.kwargs) for_each_value(argument, take);
  return ids;
}

std::string_view short_name(const GraphNode& node) {
  std::string_view name = node.op;
  size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

bool is_in_place(const GraphNode& node) {
  auto name = short_name(node);
  return name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
}

std::string_view plain_name(const GraphNode& node) {
  auto name = short_name(node);
  if (is_in_place(node)) name.remove_suffix(1);
  return name;
}

const GraphArgument* argument_of(const GraphNode& node, size_t position, std::string_view keyword) {
  for (auto& [name, argument] : node.kwargs) {
    if (name == keyword) return &argument;
  }
  return position < node.args.size() ? &node.args[position] : nullptr;
}

std::optional<double> number_of(const GraphArgument* argument) {
  if (!argument) return std::nullopt;
  if (auto* real = std::get_if<double>(&argument->data)) return *real;
  if (auto* integer = std::get_if<int64_t>(&argument->data)) return static_cast<double>(*integer);
  return std::nullopt;
}

bool is_gather(std::string_view name) {
  static const std::set<std::string_view> kNames = {"gather",    "index_select", "index",
                                                    "embedding", "take",         "take_along_dim"};
  return kNames.count(name) != 0;
}

std::vector<int64_t> integers_of(const GraphArgument* argument) {
  std::vector<int64_t> numbers;
  if (!argument) return numbers;
  if (auto* integer = std::get_if<int64_t>(&argument->data)) return {*integer};
  auto* list = std::get_if<GraphList>(&argument->data);
  if (!list) return numbers;
  for (auto& item : *list) {
    auto* integer = std::get_if<int64_t>(&item.data);
    if (!integer) return {};
    numbers.push_back(*integer);
  }
  return numbers;
}

int64_t bytes_of_element(std::string_view dtype) {
  if (dtype == "float64" || dtype == "int64" || dtype == "complex64") return 8;
  if (dtype == "float16" || dtype == "bfloat16" || dtype == "int16") return 2;
  if (dtype == "int8" || dtype == "uint8" || dtype == "bool") return 1;
  return dtype == "complex128" ? 16 : 4;
}

int64_t bytes_of(const GraphValue& value) {
  return value.is_tensor ? value.numel() * bytes_of_element(value.dtype) : 0;
}

GraphUses::GraphUses(const Graph& graph)
    : graph_(graph),
      producer_(graph.values.size(), -1),
      storage_(graph.values.size()),
      users_(graph.values.size()),
      is_output_(graph.values.size()),
      live_(graph.nodes.size()) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (int id : graph.nodes[i].outputs) {
      if (id >= 0) producer_[static_cast<size_t>(id)] = static_cast<int>(i);
    }
    for (int id : operands(graph.nodes[i])) {
      auto& users = users_[static_cast<size_t>(id)];
      if (users.empty() || users.back() != static_cast<int>(i)) users.push_back(static_cast<int>(i));
    }
  }
  for_each_value(graph.outputs, [&](int id) { is_output_[static_cast<size_t>(id)] = 1; });
  find_storages();
  find_live();
}

void GraphUses::find_storages() {
  for (size_t id = 0; id < storage_.size(); ++id) storage_[id] = static_cast<int>(id);
  for (auto& node : graph_.nodes) {
    auto from = operands(node);
    if (from.empty()) continue;
    for (int id : node.outputs) {
      if (id < 0 || !value(id).is_tensor || !value(from[0]).is_tensor) continue;
      if (is_in_place(node) || views_here(node, value(from[0]), value(id))) {
        storage_[static_cast<size_t>(id)] = storage(from[0]);
      }
    }
  }
}

// Backwards: what an output needs, and what a needed value's memory was written by.
void GraphUses::find_live() {
  std::vector<char> needed(graph_.values.size());
  std::set<int> needed_memory;
  auto need = [&](int id) {
    needed[static_cast<size_t>(id)] = 1;
    needed_memory.insert(storage(id));
  };
  for (size_t id = 0; id < graph_.values.size(); ++id) {
    if (is_output_[id]) need(static_cast<int>(id));
  }
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const GraphNode& node = graph_.nodes[i];
    auto from = operands(node);
    bool live = std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](int id) { return id >= 0 && needed[static_cast<size_t>(id)]; });
    if (is_in_place(node) && !from.empty()) {
      const int memory = storage(from[0]);
      live = live || needed_memory.count(memory) != 0 || producer(memory) < 0;
    }
    live_[i] = live;
    if (live) std::for_each(from.begin(), from.end(), need);
  }
}

std::optional<Graph> graph_of_constant(const GraphUses& uses, int id) {
  std::set<int> nodes, seen;
  std::vector<int> open = {id};
  while (!open.empty()) {
    const int value = open.back();
    open.pop_back();
    if (!seen.insert(value).second) continue;
    const auto kind = uses.value(value).kind;
    if (kind == GraphValue::Kind::input || kind == GraphValue::Kind::parameter) return std::nullopt;
    const int producer = uses.producer(value);
    if (producer < 0 || !nodes.insert(producer).second) continue;
    for (const int operand : operands(uses.node(producer))) open.push_back(operand);
  }
  Graph part;
  part.values = uses.graph().values;
  for (const int index : nodes) part.nodes.push_back(uses.node(index));
  part.outputs = {ValueRef{id}};
  return part;
}

}  // namespace tilepilot::eval
