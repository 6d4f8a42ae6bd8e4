// The planner's own graph: an ATen graph broken into primitives (element-wise maps, reductions, views) and calls of
// whole ATen operators. A primitive remembers the graph node it came from, so that what is not fused can be printed as
// the user wrote it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/builtin/import/scalar_ops.h"
#include "agent/builtin/import/strided.h"
#include "eval/graph/reference.h"

namespace tilepilot::agent::builtin {

enum class ReduceOp { sum, max, min };

struct ViewOp {
  enum class Kind { reshape, permute, expand, slice } kind = Kind::reshape;
  std::vector<int64_t> order;             // permute
  int64_t axis = 0, start = 0, step = 1;  // slice
};

struct Primitive {
  enum class Kind {
    source,    // an input, parameter, buffer or constant of the graph
    constant,  // a number
    map,       // one scalar operation on broadcast operands
    reduce,    // over `axes`, which stay with extent 1
    gather,    // args[0][..., args[1]]: one element of the last axis, which stays with extent 1
    view,
    product,  // a matrix product, args[0] · args[1] over the last axis of both (the second is [N, K]); see `call`
    call,     // an output of the ATen node `origin`
    update,   // args[0] (a buffer) = args[0] + number · (args[1] - args[0]), so that 1 is a copy; no value
  };
  Kind kind = Kind::source;
  ScalarOp op = ScalarOp::add;         // map
  ReduceOp reduction = ReduceOp::sum;  // reduce
  std::vector<int> axes;               // reduce
  ViewOp view;                         // view
  double number = 0;                   // constant, update
  int value = -1;                      // source: value of the graph
  int output = 0;                      // call: which output
  std::vector<int> args;
  Shape shape;
  Shape strides;  // sources and calls: as eager saw them
  std::string dtype = "float32";
  int origin = -1;      // node of the graph
  std::string hint;     // a name for people
  bool effect = false;  // changes its first argument or draws random numbers: keeps its place among such
};

struct PrimitiveGraph {
  std::vector<Primitive> nodes;            // operands before users
  std::vector<int> value_of;               // graph value -> primitive; -1: none
  std::vector<std::pair<int, int>> order;  // (before, after): constraints beside the data flow
  std::vector<int> outputs;                // graph outputs, flattened

  const Primitive& at(int id) const { return nodes[static_cast<size_t>(id)]; }
  std::vector<std::vector<int>> users() const;
  // What views look at in the end; other primitives are themselves.
  int behind_views(int id) const;
  // A product's own values (ImportOptions::lone_products).
  bool copies_product(int id) const;
  // Removes what no output and no effect needs; ids change.
  void drop_dead();
};

// Adds primitives. Simplifies as it goes (constants, neutral elements, double negation, equal nodes share one), so that
// what comes out has no dead arithmetic.
class PrimitiveBuilder {
 public:
  explicit PrimitiveBuilder(PrimitiveGraph& graph) : graph_(graph) {}
  void set_origin(int node) { origin_ = node; }
  // Equal primitives made before are not used again: for cheap values that several kernels compute on their own.
  void forget_known() { known_.clear(); }

  int constant(double value, std::string dtype = "float32");
  int map(ScalarOp op, std::vector<int> args, std::string hint = "");
  int cast(int arg, const std::string& dtype);
  int reduce(ReduceOp op, int arg, std::vector<int> axes, std::string hint = "");
  int mean(int arg, const std::vector<int>& axes, std::string hint = "mean");
  int gather(int arg, int index);
  int reshape(int arg, Shape shape);
  int permute(int arg, std::vector<int64_t> order);
  int expand(int arg, const Shape& shape);
  int slice(int arg, ViewOp slice, int64_t length);
  int product(int a, int b, Shape shape);
  int add(Primitive primitive);  // no simplification

  const Primitive& at(int id) const { return graph_.at(id); }
  bool is_constant(int id, double value) const;
  // The number behind a constant or an expanded constant.
  std::optional<double> number(int id) const;

 private:
  PrimitiveGraph& graph_;
  std::map<std::string, int> known_;
  int origin_ = -1;

  int shared(Primitive primitive);
  void convert_numbers(ScalarOp op, const std::string& dtype, std::vector<int>& args);
  std::optional<int> simplified(ScalarOp op, const std::vector<int>& args);
  std::optional<int> tanh_of_softplus(int arg);
  std::optional<int> computed(ScalarOp op, const std::vector<int>& args);
};

bool is_float(const std::string& dtype);

}  // namespace tilepilot::agent::builtin
