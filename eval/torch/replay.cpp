#include "eval/torch/replay.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "eval/graph/graph_uses.h"
#include "eval/torch/element_type.h"
#include "eval/torch/graph_argument.h"
#include "eval/torch/random_operator.h"
#include "eval/torch/widened_call.h"

namespace tilepilot::eval {
namespace {

using c10::IValue;

// LibTorch's default element type is global; factories without a dtype follow it.
class DefaultTypeGuard {
 public:
  explicit DefaultTypeGuard(bool exact) : previous_(c10::get_default_dtype()) {
    if (exact) c10::set_default_dtype(caffe2::TypeMeta::fromScalarType(at::kDouble));
  }
  ~DefaultTypeGuard() { c10::set_default_dtype(previous_); }
  DefaultTypeGuard(const DefaultTypeGuard&) = delete;

 private:
  caffe2::TypeMeta previous_;
};

// An argument that mentions values and is built anew in every run.
struct Patch {
  size_t position;
  const GraphArgument* argument;
};

struct Step {
  const GraphNode* node;
  c10::OperatorHandle op;
  torch::jit::Stack arguments;  // complete but for the patches
  std::vector<Patch> patches;
  std::vector<int> dead_after;
  RandomRule random = RandomRule::deterministic;
};

bool mentions_value(const GraphArgument& argument) {
  bool found = false;
  for_each_value(argument, [&](int) { found = true; });
  return found;
}

const GraphArgument* find_argument(const GraphNode& node, size_t position, const std::string& name) {
  if (position < node.args.size()) return &node.args[position];
  for (auto& [keyword, argument] : node.kwargs) {
    if (keyword == name) return &argument;
  }
  return nullptr;
}

Error node_error(const GraphNode& node, std::string_view what) {
  std::string where = node.line > 0 ? fmt::format(" (line {} of the model)", node.line) : "";
  return make_error(DiagnosticKind::tensor_operation_failed, {},
                    fmt::format("the reference's `{}`{} failed: {}", node.op, where, what));
}

std::string first_line(const char* text) {
  std::string_view view(text);
  return std::string(view.substr(0, view.find('\n')));
}

// The element type each value has in the export.
std::vector<at::ScalarType> value_types(const Graph& graph) {
  std::vector<at::ScalarType> types;
  for (auto& value : graph.values) types.push_back(parse_element_type(value.dtype).value_or(at::kFloat));
  return types;
}

}  // namespace

class Replay::Plan {
 public:
  Plan(const Graph& graph, Precision precision, c10::Device device)
      : graph_(graph), exact_(precision == Precision::exact), device_(device), types_(value_types(graph)) {}

  Status prepare() {
    for (auto& node : graph_.nodes) steps_.push_back(TRY(prepare_step(node)));
    find_last_uses();
    return {};
  }

  Result<std::vector<at::Tensor>> run(const std::vector<IValue>& inputs, const State& state,
                                      const AfterNode& after_node) const {
    at::NoGradGuard no_grad;
    DefaultTypeGuard default_type(exact_);
    std::vector<IValue> values(graph_.values.size());
    for (size_t i = 0; i < state.size(); ++i) {
      if (state[i].defined()) values[i] = state[i];
    }
    for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(graph_.inputs[i])] = inputs[i];
    for (auto& step : steps_) {
      TRY(run_step(step, values, after_node));
      for (int dead : step.dead_after) values[static_cast<size_t>(dead)] = IValue();
    }
    settled_ = true;
    std::vector<at::Tensor> outputs;
    for_each_value(graph_.outputs, [&](int id) {
      auto& value = values[static_cast<size_t>(id)];
      if (value.isTensor()) outputs.push_back(value.toTensor());
    });
    return outputs;
  }

  const std::set<std::string>& widened() const { return widened_; }

  bool is_random() const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const Step& step) { return step.random != RandomRule::deterministic; });
  }

 private:
  ArgumentContext context(const std::vector<IValue>* values) const {
    return {[values](int id) { return values ? (*values)[static_cast<size_t>(id)] : IValue(); },
            [this](at::ScalarType type) { return exact_ && c10::isFloatingType(type) ? at::kDouble : type; }, device_};
  }

  Result<Step> prepare_step(const GraphNode& node) {
    auto op = c10::Dispatcher::singleton().findSchema({node.op, node.overload});
    if (!op) return node_error(node, "this LibTorch has no such operator");
    Step step{&node, *op};
    auto constant = context(nullptr);
    auto& parameters = op->schema().arguments();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const GraphArgument* argument = find_argument(node, i, parameters[i].name());
      std::optional<IValue> value;
      if (!argument) {
        value = parameters[i].default_value();
      } else if (mentions_value(*argument)) {
        step.patches.push_back({i, argument});
        value = IValue();
      } else {
        value = to_ivalue(*argument, parameters[i].real_type(), constant);
      }
      if (!value) return node_error(node, fmt::format("its argument `{}` does not fit", parameters[i].name()));
      step.arguments.push_back(std::move(*value));
    }
    if (exact_) step.random = random_rule(*op, step.arguments);
    if (exact_) narrow_bounds(step);
    return step;
  }

  void find_last_uses() {
    std::vector<int> last(graph_.values.size(), -1);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      auto use = [&](int id) { last[static_cast<size_t>(id)] = static_cast<int>(i); };
      for (auto& argument : graph_.nodes[i].args) for_each_value(argument, use);
      for (auto& [name, argument] : graph_.nodes[i].kwargs) for_each_value(argument, use);
      for (int id : graph_.nodes[i].outputs) {
        if (id >= 0) use(id);
      }
    }
    for_each_value(graph_.outputs, [&](int id) { last[static_cast<size_t>(id)] = -1; });
    for (size_t id = 0; id < last.size(); ++id) {
      if (last[id] >= 0) steps_[static_cast<size_t>(last[id])].dead_after.push_back(static_cast<int>(id));
    }
  }

  Status run_step(const Step& step, std::vector<IValue>& values, const AfterNode& after_node) const {
    torch::jit::Stack stack = step.arguments;
    auto bound = context(&values);
    auto& parameters = step.op.schema().arguments();
    for (auto& patch : step.patches) {
      auto value = to_ivalue(*patch.argument, parameters[patch.position].real_type(), bound);
      if (!value) return node_error(*step.node, "an argument is not what the schema asks for");
      stack[patch.position] = std::move(*value);
    }
    if (exact_ && step.node->op.find("nan_to_num") != std::string::npos)
      bound_infinities(types_of_arguments(step).arguments[0].value_or(at::kDouble), stack);
    if (exact_ && step.node->op == "aten::fake_quantize_per_channel_affine") narrow_scales(stack);
    const torch::jit::Stack operands = after_node ? stack : torch::jit::Stack();
    try {
      if (step.random != RandomRule::deterministic) {
        call_random(step.op, step.random, types_of_arguments(step), stack);
      } else if (!settled_) {
        call_or_widen(step, stack);
      } else if (widens_.count(&step) == 0) {
        step.op.callBoxed(stack);
      } else {
        call_widened(stack, [&] { step.op.callBoxed(stack); });
      }
    } catch (const std::exception& error) { return node_error(*step.node, first_line(error.what())); }
    if (after_node) after_node(*step.node, operands, stack);
    return store_outputs(step, stack, values);
  }

  // A number that float32 elements are compared with is one of their type: 0.1 is no float32, and what is equal to the
  // nearest one is not above it.
  void narrow_bounds(Step& step) const {
    static const std::set<std::string_view> kCompare = {"eq", "ne", "lt", "le", "gt", "ge", "threshold", "hardshrink"};
    if (kCompare.count(plain_name(*step.node)) == 0 || types_of_arguments(step).arguments[0] != at::kFloat) return;
    for (IValue& argument : step.arguments)
      if (argument.isDouble()) argument = IValue(at::Scalar(double{static_cast<float>(argument.toDouble())}));
  }

  // This operator takes no scales in float64, whatever its numbers are in.
  static void narrow_scales(torch::jit::Stack& stack) {
    const at::Tensor scales = stack[1].toTensor();
    if (scales.scalar_type() == at::kDouble) stack[1] = scales.to(at::kFloat);
  }

  // Infinities become the largest number of the model's own type, not of float64.
  static void bound_infinities(at::ScalarType type, torch::jit::Stack& stack) {
    constexpr size_t kPositive = 2, kNegative = 3;
    if (stack.size() <= kNegative || !c10::isFloatingType(type)) return;
    double largest = std::numeric_limits<double>::max();
    if (type == at::kFloat) largest = std::numeric_limits<float>::max();
    if (type == at::kHalf) largest = std::numeric_limits<at::Half>::max();
    if (type == at::kBFloat16) largest = std::numeric_limits<at::BFloat16>::max();
    if (stack[kPositive].isNone()) stack[kPositive] = largest;
    if (stack[kNegative].isNone()) stack[kNegative] = -largest;
  }

  // What PyTorch cannot run in a 16-bit type (no such operator, a float32 constant among the operands) is computed in
  // float32, now and in later runs.
  void call_or_widen(const Step& step, torch::jit::Stack& stack) const {
    torch::jit::Stack arguments = stack;
    try {
      step.op.callBoxed(stack);
    } catch (const std::exception&) {
      stack = std::move(arguments);
      auto type = widened_or_nothing(step, stack);
      if (!type) throw;
      widens_.insert(&step);
      widened_.insert(fmt::format("`{}` in {}", step.node->op, element_type_name(*type)));
    }
  }

  static std::optional<at::ScalarType> widened_or_nothing(const Step& step, torch::jit::Stack& stack) {
    try {
      return call_widened(stack, [&] { step.op.callBoxed(stack); });
    } catch (const std::exception&) { return std::nullopt; }  // the first error says more
  }

  // For a random operator: the type each tensor argument has in the run that the exact one accompanies, and the type
  // of what it makes.
  RandomTypes types_of_arguments(const Step& step) const {
    RandomTypes types;
    types.arguments.resize(step.arguments.size());
    for (auto& patch : step.patches) {
      if (auto* id = patch.argument->value_id()) types.arguments[patch.position] = types_[static_cast<size_t>(*id)];
    }
    for (int id : step.node->outputs) {
      if (id >= 0) types.result = types_[static_cast<size_t>(id)];
    }
    return types;
  }

  static Status store_outputs(const Step& step, torch::jit::Stack& stack, std::vector<IValue>& values) {
    std::vector<IValue> results;
    if (stack.size() == 1 && stack[0].isTensorList()) {
      for (const at::Tensor& tensor : stack[0].toTensorVector()) results.emplace_back(tensor);
    } else {
      results.assign(std::make_move_iterator(stack.begin()), std::make_move_iterator(stack.end()));
    }
    auto& outputs = step.node->outputs;
    if (results.size() < outputs.size()) return node_error(*step.node, "it gave fewer results than in the export");
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] >= 0) values[static_cast<size_t>(outputs[i])] = std::move(results[i]);
    }
    return {};
  }

  const Graph& graph_;
  bool exact_;
  c10::Device device_;
  std::vector<at::ScalarType> types_;
  std::vector<Step> steps_;
  // Learnt in the first run, so that later ones, which are timed, need not look.
  mutable bool settled_ = false;
  mutable std::set<const Step*> widens_;
  mutable std::set<std::string> widened_;
};

Replay::Replay(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Replay::Replay(Replay&&) noexcept = default;
Replay::~Replay() = default;

Result<Replay> Replay::prepare(const Graph& graph, Precision precision, c10::Device device) {
  auto plan = std::make_unique<Plan>(graph, precision, device);
  TRY(plan->prepare());
  return Replay(std::move(plan));
}

Result<std::vector<at::Tensor>> Replay::run(const std::vector<IValue>& inputs, const State& state,
                                            const AfterNode& after_node) const {
  return plan_->run(inputs, state, after_node);
}

bool Replay::is_random() const { return plan_->is_random(); }

const std::set<std::string>& Replay::widened() const { return plan_->widened(); }

Result<State> make_state(const Graph& graph, const Reference& reference, const TensorMap& weights) {
  std::map<int, std::string> keys;
  for (auto& parameter : reference.parameters) keys[parameter.value] = parameter.tensor;
  std::map<std::string, at::Tensor> made;
  State state(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    auto& value = graph.values[i];
    if (value.kind == GraphValue::Kind::node || value.kind == GraphValue::Kind::input) continue;
    std::string key = value.kind == GraphValue::Kind::constant ? value.name : keys[static_cast<int>(i)];
    auto source = weights.find(key);
    if (source == weights.end() || source->second.sizes() != at::IntArrayRef(value.shape)) {
      return make_error(DiagnosticKind::reference_invalid, {},
                        fmt::format("the weights file has no tensor for `{}`", value.name), "export the model again");
    }
    auto& tensor = made[key];
    if (!tensor.defined() && value.kind == GraphValue::Kind::parameter && source->second.strides() == value.strides) {
      tensor = source->second;
    }
    if (!tensor.defined()) {
      tensor = at::empty_strided(value.shape, value.strides, source->second.scalar_type());
      tensor.copy_(source->second);
    }
    state[i] = tensor;
  }
  return state;
}

State copy_state(const State& state, bool exact, c10::Device device) {
  std::map<void*, at::Tensor> made;
  State copy(state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    if (!state[i].defined()) continue;
    auto& tensor = made[state[i].unsafeGetTensorImpl()];
    auto type = exact && state[i].is_floating_point() ? at::kDouble : state[i].scalar_type();
    if (!tensor.defined()) tensor = state[i].to(device, type, /*non_blocking=*/false, /*copy=*/true);
    copy[i] = tensor;
  }
  return copy;
}

Result<std::vector<IValue>> make_inputs(const Reference& reference, const State& constants, uint64_t seed,
                                        c10::Device device) {
  auto recipe = TRY(Replay::prepare(reference.inputs, Precision::exported, device));
  at::manual_seed(seed);
  auto tensors = TRY(recipe.run({}, copy_state(constants, false, device)));
  std::vector<IValue> leaves;
  size_t next = 0;
  for (int id : reference.forward.inputs) {
    auto& value = reference.forward.values[static_cast<size_t>(id)];
    if (!value.is_tensor) {
      leaves.emplace_back();
      continue;
    }
    if (next >= tensors.size()) {
      return make_error(DiagnosticKind::reference_invalid, {}, "`get_inputs` makes fewer tensors than `forward` takes");
    }
    leaves.emplace_back(tensors[next++]);
  }
  return leaves;
}

}  // namespace tilepilot::eval
