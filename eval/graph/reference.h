// The reference: the exported ATen graph of a model, as `scripts/export_reference.py` writes it. Plain data, no
// LibTorch: the author plans from it, the worker replays it. The format is described in docs/reference-format.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::eval {

// What a graph value is: where it comes from, and the tensor's metadata as eager saw it.
struct GraphValue {
  enum class Kind { input, parameter, buffer, constant, node };
  Kind kind = Kind::node;
  std::string name;  // input name, parameter path ("net.0.weight"), key in the weights file (constant), node's name
  bool is_tensor = true;
  std::string dtype;  // "float32", "int64", ...
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::string attribute = {};  // of a constant: its path in the model; empty: it has none
  int64_t numel() const;
};

struct GraphArgument;
using GraphList = std::vector<GraphArgument>;
struct ValueRef {
  int id;
};  // index into Graph::values
struct DtypeName {
  std::string name;
};
struct DeviceName {
  std::string name;
};
struct LayoutName {
  std::string name;
};
struct MemoryFormatName {
  std::string name;
};
struct GraphTuple {  // among plain data, where a list is another thing
  GraphList items;
};
struct GraphDict {  // a dictionary with text keys, in order
  std::vector<std::string> keys;
  GraphList values;
};
struct GraphArgument {
  std::variant<std::monostate, bool, int64_t, double, std::string, ValueRef, DtypeName, DeviceName, LayoutName,
               MemoryFormatName, GraphList, GraphTuple, GraphDict>
      data;  // monostate: None

  const int* value_id() const {
    auto* ref = std::get_if<ValueRef>(&data);
    return ref ? &ref->id : nullptr;
  }
};

struct GraphNode {
  std::string op;                   // "aten::linear"
  std::string overload;             // "" or "default" spelled as ATen has it: "" for default, "Tensor", "int", ...
  std::vector<GraphArgument> args;  // positional
  std::vector<std::pair<std::string, GraphArgument>> kwargs;
  std::vector<int> outputs;  // value ids; -1: an output that is unused
  std::string module;        // path of the submodule that ran it ("net.0"), may be empty
  int line = 0;              // line of model.py, 0 if unknown
};

// The values an argument mentions, nested ones included, in order.
void for_each_value(const GraphArgument& argument, const std::function<void(int id)>& visit);

struct Graph {
  std::vector<GraphValue> values;
  std::vector<int> inputs;       // value ids, in forward's order
  std::vector<GraphNode> nodes;  // in execution order
  GraphArgument outputs;         // a ValueRef, a GraphList for a tuple or list, a GraphDict; nested, constants inside
};

struct ParameterInfo {
  std::string name;    // as in state_dict
  int value = -1;      // value id in the forward graph; -1: not there
  std::string tensor;  // key in the weights file
  bool is_buffer = false;
  bool is_attribute = false;  // a buffer here, a plain attribute in the model
  bool is_input = false;      // `forward` makes it an input itself, whose memory it shares from then on
};

// A number among forward's inputs, and where the graph holds its value.
struct InputNumber {
  struct Place {
    size_t node = 0;
    bool is_keyword = false;
    std::vector<size_t> path;  // the argument's number, then numbers in lists
  };
  size_t input = 0;  // among all inputs, tensors included
  std::vector<Place> places;
};

// Forward with another value of a flag, or of a number that decides what the graph is. Outputs have the same form.
struct InputVariant {
  size_t input = 0;              // among all inputs, tensors included
  GraphArgument value;           // the other one
  std::optional<Graph> forward;  // none: the graph is the same
};

struct Reference {
  std::string model_path;
  std::string model_source;  // text of model.py, for the author
  std::string torch_version;
  int64_t seed = 0;             // the seed before Model(*get_init_inputs())
  std::string dtype = "model";  // or fp32, fp16, bf16: what the exporter converted model and inputs to
  std::string scale = "1";      // "1/4": sizes in `model_source` are those of the file, made smaller
  bool training = true;
  Graph forward;
  Graph inputs;  // get_inputs() as a graph without inputs: replayed with a fresh seed it makes fresh inputs
  std::vector<InputNumber> numbers;
  std::vector<InputVariant> variants;
  std::vector<ParameterInfo> parameters;  // parameters and buffers, in state_dict order
  GraphArgument init_inputs;              // get_init_inputs() as plain data
  std::filesystem::path weights;          // safetensors file
  std::vector<std::string> warnings;      // what the exporter could not keep as eager has it
};

// Reads reference.json from an export folder. Errors: `file_not_found`, `reference_invalid`.
Result<Reference> load_reference(const std::filesystem::path& folder);

}  // namespace tilepilot::eval
