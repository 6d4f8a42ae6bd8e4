#include "agent/builtin/writer/torch_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tilepilot::agent::builtin {

std::string extents_text(const Shape& shape) {
  return shape.empty() ? "()" : fmt::format("{}", fmt::join(shape, ", "));
}

std::string tuple_text(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

namespace {

std::string python_number(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value < 0 ? "float(\"-inf\")" : "float(\"inf\")";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// Writes the arguments of one node; value operands are taken from the primitive in order.
class ArgumentWriter {
 public:
  ArgumentWriter(const Primitive& call, const OperandText& text, std::string device)
      : call_(call), text_(text), device_(std::move(device)) {}

  std::string operator()(const eval::GraphArgument& argument) {
    return std::visit([this](auto& data) { return write(data); }, argument.data);
  }

 private:
  const Primitive& call_;
  const OperandText& text_;
  const std::string device_;
  size_t next_ = 0;

  std::string write(std::monostate) { return "None"; }
  std::string write(bool value) { return value ? "True" : "False"; }
  std::string write(int64_t value) { return std::to_string(value); }
  std::string write(double value) { return python_number(value); }
  std::string write(const std::string& value) { return fmt::format("\"{}\"", value); }
  std::string write(const eval::ValueRef&) { return text_(call_.args[next_++]); }
  std::string write(const eval::DtypeName& value) { return "torch." + value.name; }
  std::string write(const eval::DeviceName&) { return device_; }
  std::string write(const eval::LayoutName& value) { return "torch." + value.name; }
  std::string write(const eval::MemoryFormatName& value) { return "torch." + value.name; }
  std::string write(const eval::GraphList& list) {
    std::vector<std::string> items;
    for (auto& item : list) items.push_back((*this)(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  std::string write(const eval::GraphTuple& tuple) { return write(tuple.items); }
  std::string write(const eval::GraphDict& dict) {
    std::vector<std::string> items;
    for (size_t i = 0; i < dict.keys.size(); ++i)
      items.push_back(fmt::format("\"{}\": {}", dict.keys[i], (*this)(dict.values[i])));
    return fmt::format("{{{}}}", fmt::join(items, ", "));
  }
};

// Operators whose Python spelling takes ATen's arguments in ATen's order.
const std::set<std::string>& methods() {
  static const std::set<std::string> names = {"view",   "reshape",   "transpose", "permute", "contiguous",
                                              "expand", "clone",     "flatten",   "squeeze", "add_",
                                              "mul_",   "unsqueeze", "repeat",    "chunk",   "split"};
  return names;
}

const std::set<std::string>& torch_functions() {
  static const std::set<std::string> names = {
      "matmul", "bmm",     "mm",      "addmm",  "cat",         "stack",      "softmax",    "sum",
      "mean",   "relu",    "sigmoid", "tanh",   "exp",         "log",        "sqrt",       "rsqrt",
      "add",    "sub",     "mul",     "div",    "layer_norm",  "group_norm", "batch_norm", "logsumexp",
      "cumsum", "cumprod", "argmax",  "argmin", "einsum",      "tril",       "triu",       "where",
      "clamp",  "conv1d",  "conv2d",  "conv3d", "log_softmax", "max_pool2d", "max_pool1d", "max_pool3d",
      "flip",   "roll",    "abs",     "pow",    "maximum",     "minimum"};
  return names;
}

const std::set<std::string>& functional_functions() {
  static const std::set<std::string> names = {
      "linear",        "gelu",      "silu", "softplus",   "leaky_relu", "elu",        "relu6",
      "hardtanh",      "hardswish", "mish", "avg_pool2d", "avg_pool3d", "avg_pool1d", "adaptive_avg_pool2d",
      "pixel_shuffle", "one_hot"};
  return names;
}

std::string join_arguments(const eval::GraphNode& node, ArgumentWriter& write, size_t from) {
  std::vector<std::string> parts;
  for (size_t i = from; i < node.args.size(); ++i) parts.push_back(write(node.args[i]));
  for (auto& [name, argument] : node.kwargs) parts.push_back(fmt::format("{}={}", name, write(argument)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string write_plain(const eval::GraphArgument& argument) {
  const Primitive none;
  const OperandText no_operand = [](int) { return std::string("None"); };
  return ArgumentWriter(none, no_operand, "None")(argument);
}

std::string write_call(const eval::GraphNode& node, const Primitive& call, const OperandText& text,
                       const std::string& device) {
  ArgumentWriter write(call, text, device);
  std::string name = node.op.substr(node.op.find("::") + 2);
  bool on_tensor = !node.args.empty() && node.args[0].value_id();
  if (methods().count(name) && on_tensor) {
    std::string self = write(node.args[0]);
    return fmt::format("{}.{}({})", self, name, join_arguments(node, write, 1));
  }
  if (torch_functions().count(name)) return fmt::format("torch.{}({})", name, join_arguments(node, write, 0));
  if (functional_functions().count(name)) return fmt::format("F.{}({})", name, join_arguments(node, write, 0));
  std::string overload = node.overload.empty() ? "default" : node.overload;
  return fmt::format("torch.ops.aten.{}.{}({})", name, overload, join_arguments(node, write, 0));
}

namespace {

std::string write_view(const Primitive& p, const std::string& x) {
  switch (p.view.kind) {
    case ViewOp::Kind::reshape:
      return fmt::format("{}.reshape({})", x, extents_text(p.shape));
    case ViewOp::Kind::expand:
      return fmt::format("{}.expand({})", x, extents_text(p.shape));
    case ViewOp::Kind::slice: {
      int64_t length = p.shape[static_cast<size_t>(p.view.axis)];
      if (p.view.step == 1) return fmt::format("{}.narrow({}, {}, {})", x, p.view.axis, p.view.start, length);
      int64_t end = p.view.start + (length - 1) * p.view.step + 1;
      return fmt::format("torch.ops.aten.slice.Tensor({}, {}, {}, {}, {})", x, p.view.axis, p.view.start, end,
                         p.view.step);
    }
    case ViewOp::Kind::permute: {
      std::vector<size_t> moved;
      for (size_t i = 0; i < p.view.order.size(); ++i)
        if (p.view.order[i] != static_cast<int64_t>(i)) moved.push_back(i);
      if (moved.size() == 2) return fmt::format("{}.transpose({}, {})", x, moved[0], moved[1]);
      return fmt::format("{}.permute({})", x, fmt::join(p.view.order, ", "));
    }
  }
  return x;
}

// A slice of one whose axis goes.
std::optional<std::string> write_select(const PrimitiveGraph& graph, const Primitive& p, const OperandText& text) {
  if (p.view.kind != ViewOp::Kind::reshape) return std::nullopt;
  const Primitive& slice = graph.at(p.args[0]);
  if (slice.kind != Primitive::Kind::view || slice.view.kind != ViewOp::Kind::slice) return std::nullopt;
  Shape left = slice.shape;
  left.erase(left.begin() + slice.view.axis);
  if (slice.shape[static_cast<size_t>(slice.view.axis)] != 1 || left != p.shape) return std::nullopt;
  const std::string x = text(slice.args[0]);
  return slice.view.axis == 0 ? fmt::format("{}[{}]", x, slice.view.start)
                              : fmt::format("{}.select({}, {})", x, slice.view.axis, slice.view.start);
}

bool swaps_last_two(const Primitive& p) {
  if (p.kind != Primitive::Kind::view || p.view.kind != ViewOp::Kind::permute) return false;
  auto order = p.view.order;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return std::is_sorted(order.begin(), order.end());
}

std::string write_product(const PrimitiveGraph& graph, const Primitive& p, const OperandText& text) {
  const int right = right_operand(graph, p);
  if (right != p.args[1]) return fmt::format("torch.matmul({}, {})", text(p.args[0]), text(right));
  if (graph.at(right).shape.size() == 2) return fmt::format("F.linear({}, {})", text(p.args[0]), text(p.args[1]));
  return fmt::format("torch.matmul({}, {}.transpose(-2, -1))", text(p.args[0]), text(p.args[1]));
}

std::string write_map(const PrimitiveGraph& graph, const Primitive& p, const OperandText& text) {
  const ScalarOpInfo& row = info(p.op);
  std::vector<std::string> args;
  for (int arg : p.args) {
    const Primitive& operand = graph.at(arg);
    bool number = operand.kind == Primitive::Kind::constant;
    std::string number_text = number && !is_float(operand.dtype) ? std::to_string(static_cast<int64_t>(operand.number))
                              : number                           ? python_number(operand.number)
                                                                 : "";
    args.push_back(number ? number_text : text(arg));
  }
  if (std::all_of(p.args.begin(), p.args.end(),
                  [&](int arg) { return graph.at(arg).kind == Primitive::Kind::constant; }))
    args[0] = fmt::format("torch.tensor({}, dtype=torch.{})", args[0], graph.at(p.args[0]).dtype);
  const Primitive& behind = graph.at(graph.behind_views(p.args[0]));
  if (p.op == ScalarOp::cast && behind.kind == Primitive::Kind::source && behind.dtype == p.dtype)
    return args[0] + ".clone()";
  if (p.op == ScalarOp::cast) return fmt::format("{}.to(torch.{})", args[0], p.dtype);
  if (row.precedence > 0 && row.arity == 2 && row.torch[0] != 'l')
    return fmt::format("{} {} {}", args[0], row.torch, args[1]);
  if (p.op == ScalarOp::neg) return "-" + args[0];
  bool with_number = args.size() == 2 && graph.at(p.args[1]).kind == Primitive::Kind::constant;
  if (with_number && p.op == ScalarOp::maximum) return fmt::format("{}.clamp(min={})", args[0], args[1]);
  if (with_number && p.op == ScalarOp::minimum) return fmt::format("{}.clamp(max={})", args[0], args[1]);
  std::string function(p.op == ScalarOp::logical_not ? "logical_not" : row.torch);
  return fmt::format("torch.{}({})", function, fmt::join(args, ", "));
}

std::string write_reduction(const Primitive& p, const std::string& x) {
  static const char* const kNames[] = {"sum", "amax", "amin"};
  return fmt::format("{}.{}({}, keepdim=True)", x, kNames[static_cast<int>(p.reduction)],
                     tuple_text(Shape(p.axes.begin(), p.axes.end())));
}

}  // namespace

int right_operand(const PrimitiveGraph& graph, const Primitive& product) {
  const Primitive& b = graph.at(product.args[1]);
  return swaps_last_two(b) ? b.args[0] : product.args[1];
}

std::string write_primitive(const PrimitiveGraph& graph, int id, const OperandText& text) {
  const Primitive& p = graph.at(id);
  switch (p.kind) {
    case Primitive::Kind::constant:
      if (!is_float(p.dtype))
        return fmt::format("torch.tensor({}, dtype=torch.{})", static_cast<int64_t>(p.number), p.dtype);
      return fmt::format("torch.tensor({})", python_number(p.number));
    case Primitive::Kind::map:
      return write_map(graph, p, text);
    case Primitive::Kind::reduce:
      return write_reduction(p, text(p.args[0]));
    case Primitive::Kind::gather:
      return fmt::format("{}.gather({}, {})", text(p.args[0]), graph.at(p.args[0]).shape.size() - 1, text(p.args[1]));
    case Primitive::Kind::view:
      if (auto selected = write_select(graph, p, text)) return *selected;
      return write_view(p, text(p.args[0]));
    case Primitive::Kind::product:
      return write_product(graph, p, text);
    case Primitive::Kind::update:
      return fmt::format("{}.lerp_({}, {})", text(p.args[0]), text(p.args[1]), python_number(p.number));
    default:
      return "";
  }
}

}  // namespace tilepilot::agent::builtin
