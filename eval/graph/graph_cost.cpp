#include "eval/graph/graph_cost.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace tilepilot::eval {
namespace {

double numel(const GraphUses& uses, int id) { return static_cast<double>(uses.value(id).numel()); }

int first_output(const GraphNode& node) {
  for (int id : node.outputs) {
    if (id >= 0) return id;
  }
  return -1;
}

double product_of(const std::vector<int64_t>& extents, size_t from) {
  double product = 1;
  for (size_t i = from; i < extents.size(); ++i) product *= static_cast<double>(extents[i]);
  return product;
}

bool is_convolution(std::string_view name) {
  return name.substr(0, 4) == "conv" && name.find("transpose") == std::string_view::npos && name.size() > 4;
}
bool is_transposed_convolution(std::string_view name) { return name.substr(0, 14) == "conv_transpose"; }

// The indices' extents, each once: `bij,jk->bik`.
double einsum_flops(const GraphUses& uses, const GraphNode& node) {
  auto* equation = node.args.empty() ? nullptr : std::get_if<std::string>(&node.args[0].data);
  if (!equation) return 0;
  std::map<char, double> extents;
  auto ids = operands(node);
  size_t operand = 0, axis = 0;
  for (char c : equation->substr(0, equation->find("->"))) {
    if (c == ',') {
      ++operand;
      axis = 0;
    } else if (c != ' ' && operand < ids.size() && axis < uses.value(ids[operand]).shape.size()) {
      extents[c] = static_cast<double>(uses.value(ids[operand]).shape[axis++]);
    }
  }
  double flops = 2;
  for (auto& [index, extent] : extents) flops *= extent;
  return ids.size() > 1 ? flops : 0;
}

// Inputs [.., E], weights of each layer and direction: rows of all gates times columns, for each step.
double recurrent_flops(const GraphUses& uses, const GraphNode& node) {
  auto ids = operands(node);
  double columns = 0;
  for (size_t i = 1; i < ids.size(); ++i) {
    auto& value = uses.value(ids[i]);
    if (value.kind == GraphValue::Kind::parameter && value.shape.size() == 2) columns += numel(uses, ids[i]);
  }
  auto& input = uses.value(ids[0]).shape;
  return 2 * columns * (input.size() > 1 ? product_of({input.begin(), input.end() - 1}, 0) : 1);
}

double product_flops(const GraphUses& uses, const GraphNode& node) {
  auto name = short_name(node);
  auto ids = operands(node);
  const int output = first_output(node);
  if (output < 0 || ids.empty()) return 0;
  if (name == "einsum") return einsum_flops(uses, node);
  static const std::set<std::string_view> recurrent = {"lstm",      "gru",      "rnn_tanh",      "rnn_relu",
                                                       "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"};
  if (recurrent.count(name) > 0) return recurrent_flops(uses, node);
  if (ids.size() < 2) return 0;
  auto& a = uses.value(ids[0]).shape;
  auto& b = uses.value(ids[1]).shape;
  if (is_convolution(name)) return 2 * numel(uses, output) * product_of(b, 1);
  if (is_transposed_convolution(name)) return 2 * numel(uses, ids[0]) * product_of(b, 1);
  if (name == "addmm" || name == "baddbmm" || name == "addbmm" || name == "addmv") {
    return ids.size() < 3 || b.empty() ? 0 : 2 * numel(uses, output) * static_cast<double>(b.back());
  }
  if (name == "scaled_dot_product_attention") {  // queries times keys, then times values
    if (ids.size() < 3 || b.size() < 2) return 0;
    const double pairs = numel(uses, ids[0]) * static_cast<double>(b[b.size() - 2]);
    const double value_share = numel(uses, ids[2]) / std::max(1.0, numel(uses, ids[1]));
    return 2 * pairs * (1 + value_share);
  }
  static const std::set<std::string_view> products = {"linear", "matmul", "mm", "bmm", "mv", "dot", "inner"};
  return products.count(name) && !a.empty() ? 2 * numel(uses, output) * static_cast<double>(a.back()) : 0;
}

// Passes over the elements that need no product: the number of operations an element takes, roughly.
double operations_per_element(std::string_view name) {
  static const std::map<std::string_view, double> table = {
      {"softmax", 5},    {"log_softmax", 5},   {"logsumexp", 4}, {"layer_norm", 7}, {"group_norm", 7},
      {"batch_norm", 7}, {"instance_norm", 7}, {"gelu", 8},      {"mish", 8},       {"silu", 5},
      {"sigmoid", 4},    {"tanh", 4},          {"softplus", 5},  {"elu", 3},        {"selu", 3},
      {"hardswish", 4},  {"hardsigmoid", 3}};
  auto found = table.find(name);
  return found == table.end() ? 1 : found->second;
}

// Operators that only move elements.
bool computes_nothing(std::string_view name) {
  static const std::set<std::string_view> names = {
      "reshape", "flatten", "contiguous", "clone", "to",         "cat",       "stack",      "repeat",         "roll",
      "flip",    "pad",     "copy_",      "fill_", "zeros_like", "ones_like", "empty_like", "constant_pad_nd"};
  return is_gather(name) || names.count(name) > 0;
}

bool moves_nothing(const GraphUses& uses, const GraphNode& node) {
  if (is_in_place(node)) return false;
  const int output = first_output(node);
  return output < 0 || uses.storage(output) != output;
}

// Kernels of operators that eager makes from several.
int launches_of(const GraphUses& uses, const GraphNode& node) {
  auto name = short_name(node);
  auto* bias = argument_of(node, 2, "bias");
  const bool convolves = is_convolution(name) || is_transposed_convolution(name);
  if (convolves) return bias && bias->value_id() ? 2 : 1;
  if (name == "lstm" || name == "gru") {
    auto& input = uses.value(operands(node)[0]).shape;
    return input.empty() ? 1 : static_cast<int>(*std::max_element(input.begin(), input.end() - 1));
  }
  static const std::map<std::string_view, int> table = {
      {"logsumexp", 6}, {"cross_entropy_loss", 2},  {"mse_loss", 2}, {"smooth_l1_loss", 2}, {"huber_loss", 2},
      {"kl_div", 4},    {"triplet_margin_loss", 8}, {"std", 1},      {"normalize", 3}};
  auto found = table.find(name);
  return found == table.end() ? 1 : found->second;
}

// How much of a window operator's input its windows touch at least.
double touched_share(const GraphNode& node) {
  auto name = short_name(node);
  const bool pools = name.find("_pool") != std::string_view::npos && name.find("adaptive") == std::string_view::npos;
  if (!pools) return 1;
  auto kernel = integers_of(argument_of(node, 1, "kernel_size")), stride = integers_of(argument_of(node, 2, "stride"));
  double share = 1;
  for (size_t i = 0; i < std::min(kernel.size(), stride.size()); ++i) {
    share *= std::min(1.0, static_cast<double>(kernel[i]) / static_cast<double>(std::max<int64_t>(1, stride[i])));
  }
  return share;
}

double strided_share(const GraphUses& uses, const GraphNode& node) {
  if (!is_convolution(short_name(node))) return touched_share(node);
  auto ids = operands(node);
  auto stride = integers_of(argument_of(node, 3, "stride"));
  auto& weight = uses.value(ids[1]).shape;
  double share = 1;
  for (size_t i = 2; i < weight.size(); ++i) {
    if (stride.empty()) return 1;
    const double step = static_cast<double>(stride[std::min(i - 2, stride.size() - 1)]);
    share *= std::min(1.0, static_cast<double>(weight[i]) / std::max(1.0, step));
  }
  return share;
}

// Of a value, the bytes that any program must read: a selection's result where it is only selected from.
class LeastReads {
 public:
  explicit LeastReads(const GraphUses& uses) : uses_(uses) {}

  double of(int id, int depth = 0) const {
    const double whole = static_cast<double>(bytes_of(uses_.value(id)));
    constexpr int kDeepest = 64;
    if (uses_.is_output(id) || depth > kDeepest) return whole;
    double sum = 0;
    for (int user : uses_.users(id)) {
      if (!uses_.is_live(user)) continue;
      sum += by(uses_.node(user), id, depth);
      if (sum >= whole) return whole;
    }
    return sum;
  }

 private:
  double by(const GraphNode& node, int id, int depth) const {
    const double whole = static_cast<double>(bytes_of(uses_.value(id)));
    auto ids = operands(node);
    auto name = short_name(node);
    static const std::set<std::string_view> selections = {
        "index_select", "gather",        "embedding", "index",     "masked_select", "take",     "triu",
        "tril",         "embedding_bag", "where",     "bernoulli", "expand",        "expand_as"};
    if (!ids.empty() && ids[0] != id) return name == "where" || name == "masked_fill" ? 0 : whole;
    if (name == "triu" || name == "tril") return whole / 2;
    const int output = first_output(node);
    if (output < 0 || is_in_place(node)) return whole;
    if (name == "zeros_like" || name == "ones_like" || name == "empty_like" || name == "rand_like") return 0;
    const bool shows =
        uses_.storage(output) != output || name == "reshape" || name == "flatten" || name == "contiguous";
    if (name.substr(0, 8) == "upsample" || name == "constant_pad_nd" || name == "pad")
      return std::min(whole, static_cast<double>(bytes_of(uses_.value(output))));
    if (!shows && selections.count(name) == 0) return whole * strided_share(uses_, node);
    double sum = 0;
    for (int out : node.outputs) {
      if (out >= 0) sum += std::min(of(out, depth + 1), static_cast<double>(bytes_of(uses_.value(out))));
    }
    return std::min(whole, sum);
  }

  const GraphUses& uses_;
};

// Whether a node uses a part of what another one computed.
bool uses_part(const GraphUses& uses, const GraphNode& node) {
  auto ids = operands(node);
  const int output = first_output(node);
  if (ids.empty() || output < 0 || uses.producer(uses.storage(ids[0])) < 0) return false;
  if (strided_share(uses, node) < 1) return true;
  static const std::set<std::string_view> selections = {"select",        "slice",  "narrow",       "index",
                                                        "index_select",  "gather", "embedding",    "take",
                                                        "diagonal",      "triu",   "tril",         "chunk",
                                                        "split",         "unbind", "as_strided",   "split_with_sizes",
                                                        "tensor_split",  "unfold", "pad",          "constant_pad_nd",
                                                        "masked_select", "topk",   "embedding_bag"};
  auto name = short_name(node);
  if (selections.count(name) == 0 && name.substr(0, 8) != "upsample") return false;
  double shown = 0;
  for (int id : node.outputs) {
    const bool used = id >= 0 && (uses.is_output(id) || !uses.users(id).empty());
    shown += used ? numel(uses, id) : 0;
  }
  return name == "triu" || name == "tril" || name == "as_strided" || shown < numel(uses, ids[0]);
}

// Temporary tensors inside an operator, in sizes of its first operand.
double inner_copies(std::string_view name) {
  static const std::map<std::string_view, double> table = {{"logsumexp", 1},
                                                           {"cross_entropy_loss", 1},
                                                           {"mse_loss", 1},
                                                           {"smooth_l1_loss", 1},
                                                           {"huber_loss", 1},
                                                           {"kl_div", 2},
                                                           {"triplet_margin_loss", 3},
                                                           {"einsum", 1},
                                                           {"cosine_similarity", 2},
                                                           {"instance_norm", 0.5},
                                                           {"rms_norm", 1},
                                                           {"norm", 0},
                                                           {"linalg_vector_norm", 0}};
  auto found = table.find(name);
  return found == table.end() ? 0 : found->second;
}

struct Bytes {
  double eager, exact;
};
Bytes sizes_of(const GraphUses& uses, int id) {
  auto& value = uses.value(id);
  const double eager = static_cast<double>(bytes_of(value));
  const bool floating = value.dtype.find("float") != std::string::npos;
  return {eager, floating ? 8 * static_cast<double>(value.numel()) : eager};
}

}  // namespace

NodeCost cost_of(const GraphUses& uses, const GraphNode& node) {
  NodeCost cost;
  cost.product_flops = product_flops(uses, node);
  if (moves_nothing(uses, node)) return cost;
  auto ids = operands(node);
  double elements = 0;
  const auto name = short_name(node);
  const int output = first_output(node);
  for (int id : ids) {
    const bool picks = id == ids[0] && output >= 0 && is_gather(name);
    const int read = picks && numel(uses, output) < numel(uses, id) ? output : id;
    cost.bytes += static_cast<double>(bytes_of(uses.value(read)));
    elements = std::max(elements, numel(uses, id));
  }
  for (int id : node.outputs) {
    if (id < 0) continue;
    cost.bytes += static_cast<double>(bytes_of(uses.value(id)));
    elements = std::max(elements, numel(uses, id));
  }
  if (cost.product_flops == 0 && !computes_nothing(name)) cost.other_flops = elements * operations_per_element(name);
  cost.launches = launches_of(uses, node);
  return cost;
}

GraphCost cost_of(const GraphUses& uses) {
  GraphCost total;
  auto& graph = uses.graph();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    NodeCost cost = cost_of(uses, graph.nodes[i]);
    total.eager_bytes += cost.bytes;
    total.launches += cost.launches;
    if (uses.is_live(static_cast<int>(i))) {
      total.uses_parts = total.uses_parts || uses_part(uses, graph.nodes[i]);
      total.product_flops += cost.product_flops;
      total.products += cost.product_flops > 0 ? 1 : 0;
      total.other_flops += cost.other_flops;
    } else {
      total.dead_flops += cost.product_flops;
    }
  }
  LeastReads reads(uses);
  double least = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const int id = static_cast<int>(i);
    auto& value = graph.values[i];
    if (value.kind == GraphValue::Kind::node || !value.is_tensor) continue;
    const bool used = uses.is_output(id) || !uses.users(id).empty();
    (value.kind == GraphValue::Kind::input ? total.input_bytes : total.weight_bytes) += used ? bytes_of(value) : 0;
    least += reads.of(id);
  }
  std::set<int> written;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const int storage = uses.storage(static_cast<int>(i));
    if (!uses.is_output(static_cast<int>(i)) || !written.insert(storage).second) continue;
    const int64_t bytes = std::min(bytes_of(graph.values[i]), bytes_of(uses.value(storage)));
    total.output_bytes += bytes;
    if (uses.producer(storage) >= 0) least += static_cast<double>(bytes);
  }
  total.least_bytes = static_cast<int64_t>(least);
  return total;
}

LivePeak live_peak(const GraphUses& uses) {
  auto& graph = uses.graph();
  std::vector<int> last(graph.values.size(), -1);  // by storage
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (int id : operands(graph.nodes[i])) last[static_cast<size_t>(uses.storage(id))] = static_cast<int>(i);
    for (int id : graph.nodes[i].outputs) {
      if (id >= 0) last[static_cast<size_t>(uses.storage(id))] = static_cast<int>(i);
    }
  }
  for_each_value(graph.outputs, [&](int id) { last[static_cast<size_t>(uses.storage(id))] = -1; });
  std::vector<std::vector<int>> dies_after(graph.nodes.size());
  for (size_t id = 0; id < last.size(); ++id) {
    if (last[id] >= 0 && uses.producer(static_cast<int>(id)) >= 0)
      dies_after[static_cast<size_t>(last[id])].push_back(static_cast<int>(id));
  }
  Bytes held{0, 0}, peak{0, 0};
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    for (int id : node.outputs) {
      if (id < 0 || uses.storage(id) != id) continue;
      Bytes size = sizes_of(uses, id);
      held = {held.eager + size.eager, held.exact + size.exact};
    }
    auto ids = operands(node);
    const double copies = ids.empty() ? 0 : inner_copies(short_name(node));
    Bytes first = ids.empty() ? Bytes{0, 0} : sizes_of(uses, ids[0]);
    peak = {std::max(peak.eager, held.eager + copies * first.eager),
            std::max(peak.exact, held.exact + copies * first.exact)};
    for (int id : dies_after[i]) {
      Bytes size = sizes_of(uses, id);
      held = {held.eager - size.eager, held.exact - size.exact};
    }
  }
  return {static_cast<int64_t>(peak.eager), static_cast<int64_t>(peak.exact)};
}

}  // namespace tilepilot::eval
