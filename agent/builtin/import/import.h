// ATen graph to primitives. Each operator has a handler in a table; one without a handler, or whose arguments the
// handler declines, becomes a `call`. In-place operators on intermediate values become their out-of-place forms.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "agent/builtin/import/primitives.h"

namespace tilepilot::agent::builtin {

struct ImportOptions {
  std::set<int> calls;  // graph nodes that must stay calls of their operator
  std::set<int> lerps;  // graph nodes whose running statistics PyTorch updates, not a kernel
  // A product's result is copied, so that there is something to finish it with.
  enum class Lone { none, float32, all } lone_products = Lone::none;
  std::map<int, std::vector<double>> constants = {};  // values of constant tensors that are known
  std::string_view model_source = {};                 // for the spans of errors
};

// Errors (`model_invalid`, spans in file 0): the graph uses its values in a way that primitives cannot express
// (in-place change of an input or a view).
Result<PrimitiveGraph> import_graph(const eval::Graph& graph, const ImportOptions& options);

// What a handler sees of one node.
class NodeImport {
 public:
  NodeImport(const eval::Graph& graph, const eval::GraphNode& node, PrimitiveGraph& primitives,
             PrimitiveBuilder& builder, bool lerps)
      : build(builder), lerps(lerps), graph_(graph), node_(node), primitives_(primitives) {}

  PrimitiveBuilder& build;
  const bool lerps;  // see ImportOptions

  const eval::GraphNode& node() const { return node_; }
  size_t arg_count() const { return node_.args.size(); }
  bool has(size_t index) const;  // present and not None
  bool is_tensor(size_t index) const;
  // A tensor, or a number as a constant.
  int operand(size_t index) const;
  // A tensor of a list; -1: it is none.
  int element(size_t index, size_t place) const;
  const Primitive& at(int id) const { return build.at(id); }
  const Shape& shape(int id) const { return build.at(id).shape; }
  double number(size_t index, double otherwise) const;
  int64_t integer(size_t index, int64_t otherwise) const {
    return static_cast<int64_t>(number(index, static_cast<double>(otherwise)));
  }
  bool flag(size_t index, bool otherwise) const { return number(index, otherwise) != 0; }
  std::vector<int64_t> integers(size_t index) const;
  std::string text(size_t index, const std::string& otherwise) const;
  const eval::GraphArgument* keyword(std::string_view name) const;
  double keyword_number(std::string_view name, double otherwise) const;
  // Axes as indices from 0; all axes if the argument is absent or empty.
  std::vector<int> axes(size_t index, size_t rank) const;
  const eval::GraphValue& result(size_t index = 0) const;
  bool uses_result(size_t index) const { return node_.outputs.size() > index && node_.outputs[index] >= 0; }
  PrimitiveGraph& primitives() { return primitives_; }

 private:
  const eval::Graph& graph_;
  const eval::GraphNode& node_;
  PrimitiveGraph& primitives_;
};

// The primitives of the node's outputs, or empty: declined.
using Handler = std::function<std::vector<int>(NodeImport&)>;
using HandlerTable = std::unordered_map<std::string, Handler>;

void add_elementwise(HandlerTable& table);
void add_activations(HandlerTable& table);
void add_views(HandlerTable& table);
void add_reductions(HandlerTable& table);
void add_norms(HandlerTable& table);
void add_products(HandlerTable& table);
void add_losses(HandlerTable& table);

// Reduces `axes`; a reduction of a large tensor to one number goes through one number a row, so that blocks can share
// it.
int reduce_all_or_some(PrimitiveBuilder& build, ReduceOp op, int arg, const std::vector<int>& axes, std::string hint);
// Drops the axes of extent 1 that a reduction left, unless the caller keeps them.
int without_axes(PrimitiveBuilder& build, int arg, const std::vector<int>& axes, bool keep);

}  // namespace tilepilot::agent::builtin
