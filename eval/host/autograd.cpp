#include "eval/host/autograd.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <type_traits>

#include "compiler/stage/python/objects/native.h"
#include "eval/host/edge.h"
#include "eval/host/host_state.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::ModuleObject;
using stage::Value;
using torch::autograd::variable_list;

namespace {

// A context and a decorator.
struct GradientMode final : stage::TypedObject<GradientMode> {
  static constexpr stage::Type kType{"grad_mode"};
  explicit GradientMode(bool wanted_) : wanted(wanted_) {}

  Result<Value> call(Interpreter&, CallArgs args) override {
    static constexpr stage::Signature kSignature{"decorator", {"function"}, 1};
    return around(*TRY(stage::Arguments::read(args, kSignature))[0]);
  }
  // The function, run in this mode.
  Value around(Value function) const {
    return stage::make_method(
        "wrapper",
        [function = std::move(function), wanted = wanted](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
          at::AutoGradMode mode(wanted);
          return interpreter.call(function, std::move(args));
        });
  }
  Result<Value> enter(Interpreter&, Span) override {
    if (!taken_effect) before.push_back(at::GradMode::is_enabled());
    taken_effect = false;
    at::GradMode::set_enabled(wanted);
    return Value(shared_from_this());
  }
  Status exit(Interpreter&, Span) override {
    at::GradMode::set_enabled(before.back());
    before.pop_back();
    return {};
  }

  const bool wanted;
  std::vector<bool> before;   // of the contexts that were entered, innermost last
  bool taken_effect = false;  // before it was entered: set_grad_enabled
};

// `@torch.no_grad()`, `@torch.no_grad`, `with torch.no_grad():`; `mode=False` turns inference_mode off.
template <bool enabled>
Result<Value> gradient_mode(Interpreter&, CallArgs& args) {
  const Value* given = args.positional.empty() ? args.keyword("mode") : &args.positional[0];
  const bool* flag = given ? given->if_bool() : nullptr;
  auto mode = std::make_shared<GradientMode>(flag && !*flag ? !enabled : enabled);
  return given && !flag ? mode->around(*given) : Value(mode);
}

// Takes effect at the call; as a context it ends with the block.
Result<Value> set_gradient_mode(Interpreter&, CallArgs& args) {
  static constexpr stage::Signature kSignature{"set_grad_enabled", {"mode"}, 1};
  const bool* wanted = (*TRY(stage::Arguments::read(args, kSignature))[0]).if_bool();
  if (!wanted) return stage::type_error(args.span, "`torch.set_grad_enabled` takes a bool");
  auto mode = std::make_shared<GradientMode>(*wanted);
  mode->before.push_back(at::GradMode::is_enabled());
  mode->taken_effect = true;
  at::GradMode::set_enabled(*wanted);
  return Value(mode);
}

Result<Value> is_gradient_mode(Interpreter&, CallArgs&) { return Value(at::GradMode::is_enabled()); }

// A node of the graph whose backward is a Python function of as many gradients as there were outputs; it gives as many
// as there were arguments, None for those that need none.
class PythonNode final : public torch::autograd::Node {
 public:
  PythonNode(HostState& state, Interpreter& interpreter, Value backward, Span span)
      : state_(state), interpreter_(interpreter), backward_(std::move(backward)), span_(span) {}

  // One entry an argument: whether it is a tensor with an edge in the graph.
  std::vector<bool> is_edge;
  std::vector<at::TensorOptions> output_options;
  std::vector<std::vector<int64_t>> output_shapes;

  variable_list apply(variable_list&& gradients) override {
    CallArgs args;
    args.span = span_;
    for (size_t i = 0; i < output_options.size(); ++i) {
      const bool given = i < gradients.size() && gradients[i].defined();
      args.positional.push_back(state_.wrap(given ? gradients[i] : at::zeros(output_shapes[i], output_options[i])));
    }
    auto result = interpreter_.call(backward_, std::move(args));
    if (!result.ok()) throw EvaluatorError(std::move(result).take_error());
    return picked(*result);
  }
  std::string name() const override { return "PythonFunctionBackward"; }

 private:
  variable_list picked(const Value& result) const {
    std::vector<Value> alone{result};
    const std::vector<Value>* items = stage::sequence_items(result);
    if (!items) items = &alone;
    if (items->size() < is_edge.size()) {
      throw EvaluatorError(
          make_error(DiagnosticKind::value_error, span_,
                     fmt::format("`backward` returned {} gradients for {} arguments", items->size(), is_edge.size())));
    }
    variable_list chosen;
    for (size_t i = 0; i < is_edge.size(); ++i) {
      const at::Tensor* gradient = tensor_of((*items)[i]);
      if (is_edge[i]) chosen.push_back(gradient ? *gradient : at::Tensor());
    }
    return chosen;
  }

  HostState& state_;
  Interpreter& interpreter_;
  Value backward_;
  Span span_;
};

// Nodes count their owners themselves since PyTorch 2.12 or so.
constexpr bool kNodesAreShared =
    std::is_same_v<decltype(torch::autograd::Edge::function), std::shared_ptr<torch::autograd::Node>>;
using NodePointer = std::conditional_t<kNodesAreShared, std::shared_ptr<PythonNode>, c10::intrusive_ptr<PythonNode>>;

template <class... Arguments>
NodePointer make_node(Arguments&&... arguments) {
  if constexpr (kNodesAreShared)
    return std::make_shared<PythonNode>(std::forward<Arguments>(arguments)...);
  else
    return c10::make_intrusive<PythonNode>(std::forward<Arguments>(arguments)...);
}

// Gives an output its place in the graph: the same memory under another tensor, which forward's own does not share.
Value connected(HostState& state, const NodePointer& node, const Value& output) {
  const at::Tensor* tensor = tensor_of(output);
  if (!tensor) return output;
  at::Tensor result = tensor->detach();
  node->output_options.push_back(result.options());
  node->output_shapes.push_back(result.sizes().vec());
  if (at::isFloatingType(result.scalar_type()) || at::isComplexType(result.scalar_type())) {
    torch::autograd::create_gradient_edge(result, node);
  } else {
    node->add_input_metadata(result);
  }
  return state.wrap(std::move(result));
}

// _record_backward(backward, arguments, outputs): the outputs, with a history that ends in `backward`.
Result<Value> record_backward(HostState& state, Interpreter& interpreter, CallArgs& args) {
  static constexpr stage::Signature kSignature{"_record_backward", {"backward", "arguments", "outputs"}, 3};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  auto node = make_node(state, interpreter, *read[0], args.span);
  torch::autograd::edge_list edges;
  for (const Value& argument : TRY(interpreter.to_vector(*read[1], args.span))) {
    const at::Tensor* tensor = tensor_of(argument);
    node->is_edge.push_back(tensor && tensor->requires_grad());
    if (node->is_edge.back()) edges.push_back(torch::autograd::impl::gradient_edge(*tensor));
  }
  node->set_next_edges(std::move(edges));
  return guarded("Function.apply", args.span, [&] {
    const std::vector<Value>* outputs = stage::sequence_items(*read[2]);
    if (!outputs) return connected(state, node, *read[2]);
    std::vector<Value> results;
    for (const Value& output : *outputs) results.push_back(connected(state, node, output));
    return stage::make_tuple(std::move(results));
  });
}

bool flag_of(const Value* value, bool otherwise) { return value && value->if_bool() ? *value->if_bool() : otherwise; }

// A tensor, or a sequence of tensors and None.
Result<variable_list> tensor_list(Interpreter& interpreter, const Value* value, Span span) {
  variable_list tensors;
  if (!value || value->is_none()) return tensors;
  if (const at::Tensor* alone = tensor_of(*value)) return variable_list{*alone};
  for (const Value& item : TRY(interpreter.to_vector(*value, span))) {
    const at::Tensor* tensor = tensor_of(item);
    if (!tensor && !item.is_none()) return stage::type_error(span, "a tensor or a sequence of tensors is expected");
    tensors.push_back(tensor ? *tensor : at::Tensor());
  }
  return tensors;
}

// torch.autograd.grad.
Result<Value> gradients_of(HostState& state, Interpreter& interpreter, CallArgs& args) {
  static constexpr stage::Signature kSignature{
      "grad", {"outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "allow_unused"}, 2};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  variable_list outputs = TRY(tensor_list(interpreter, read[0], args.span));
  variable_list inputs = TRY(tensor_list(interpreter, read[1], args.span));
  variable_list seeds = TRY(tensor_list(interpreter, read[2], args.span));
  const bool creates = flag_of(read[4], false);
  auto found = TRY(guarded("autograd.grad", args.span, [&] {
    return torch::autograd::grad(outputs, inputs, seeds, flag_of(read[3], creates), creates, flag_of(read[5], false));
  }));
  std::vector<Value> results;
  for (at::Tensor& gradient : found) {
    results.push_back(gradient.defined() ? state.wrap(std::move(gradient)) : Value());
  }
  return stage::make_tuple(std::move(results));
}

// torch.autograd.backward: one walk through the graph that the tensors may share.
Result<Value> backward_of(HostState&, Interpreter& interpreter, CallArgs& args) {
  static constexpr stage::Signature kSignature{
      "backward", {"tensors", "grad_tensors", "retain_graph", "create_graph"}, 1};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  const variable_list tensors = TRY(tensor_list(interpreter, read[0], args.span));
  const variable_list seeds = TRY(tensor_list(interpreter, read[1], args.span));
  const bool creates = flag_of(read[3], false);
  TRY(guarded("autograd.backward", args.span,
              [&] { torch::autograd::backward(tensors, seeds, flag_of(read[2], creates), creates); }));
  return Value();
}

}  // namespace

Result<Value> run_backward(HostState&, TensorObject& self, CallArgs& args) {
  static constexpr stage::Signature kSignature{"backward", {"gradient", "retain_graph", "create_graph", "inputs"}, 0};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  if (read.given(3)) return stage::value_error(args.span, "`backward` for chosen inputs is not supported");
  const at::Tensor* gradient = read.given(0) ? tensor_of(*read[0]) : nullptr;
  if (read.given(0) && !gradient)
    return stage::type_error(args.span, "the gradient that `backward` begins with is a tensor");
  const bool creates = flag_of(read[2], false);
  TRY(guarded("backward", args.span, [&] {
    torch::autograd::backward({self.tensor}, {gradient ? *gradient : at::Tensor()}, flag_of(read[1], creates), creates);
  }));
  return Value();
}

Value gradient_function(const at::Tensor& tensor) {
  const auto& node = tensor.grad_fn();
  return node ? Value(fmt::format("<{}>", node->name())) : Value();
}

void add_gradient_functions(HostState& state, ModuleObject& torch) {
  torch.function("no_grad", gradient_mode<false>);
  torch.function("inference_mode", gradient_mode<false>);
  torch.function("enable_grad", gradient_mode<true>);
  torch.function("set_grad_enabled", set_gradient_mode);
  torch.function("is_grad_enabled", is_gradient_mode);
  torch.function("_record_backward",
                 [&state](Interpreter& run, CallArgs& args) { return record_backward(state, run, args); });
  torch.function("_backward", [&state](Interpreter& run, CallArgs& args) { return backward_of(state, run, args); });
  torch.function("_gradients", [&state](Interpreter& run, CallArgs& args) { return gradients_of(state, run, args); });
}

}  // namespace tilepilot::eval
