#include "eval/worker/truth/perturbation.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "eval/graph/graph_uses.h"
#include "eval/worker/candidate/aten_policy.h"
#include "eval/worker/truth/compare/usual_size.h"
#include "eval/worker/truth/stress/value_draws.h"

namespace tilepilot::eval {
namespace {

bool is_running_statistic(const GraphValue& value) {
  return value.kind == GraphValue::Kind::buffer && (value.name.ends_with("running_mean") || is_variance(value.name));
}

c10::Device device_of(const State& state) {
  for (const at::Tensor& tensor : state)
    if (tensor.defined()) return tensor.device();
  return c10::DeviceType::CPU;
}

at::Tensor order_of(const at::Tensor& flat, at::Generator& generator) {
  return at::randperm(flat.numel(), generator, at::dtype(at::kLong).device(flat.device()));
}

// In [-1, 1), float64.
at::Tensor uniform_like(const at::Tensor& tensor, at::Generator& generator) {
  return at::empty(tensor.sizes(), at::dtype(at::kDouble).device(tensor.device())).uniform_(-1, 1, generator);
}

void perturb(at::Tensor tensor, bool additive, at::Generator& generator) {
  at::Tensor value = tensor.to(at::kDouble);
  double rms = value.numel() > 0 ? std::sqrt(value.square().mean().item<double>()) : 0;
  at::Tensor changed = value.mul(uniform_like(value, generator).mul_(0.1).add_(1));
  // Weights that start as zeros (biases) must change too; running variances must stay positive.
  if (additive) changed.add_(uniform_like(value, generator).mul_(rms > 0 ? 0.05 * rms : 0.05));
  tensor.copy_(changed);
}

// Factors keep signs, so that what must be positive stays so.
void redraw(at::Tensor tensor, bool additive, at::Generator& generator) {
  if (tensor.numel() == 0) return;
  const at::Tensor value = tensor.to(at::kDouble).flatten();
  const double mean = value.mean().item<double>(), spread = value.sub(mean).abs().max().item<double>();
  constexpr int64_t kLarge = int64_t{1} << 24;  // an order of so many takes more memory than the tensor
  at::Tensor changed =
      value.numel() > kLarge ? value.roll(value.numel() / 3) : value.index_select(0, order_of(value, generator));
  changed.mul_(uniform_like(changed, generator).mul_(0.5).add_(1));
  const bool constant = spread <= 1e-6 * std::abs(mean);
  // A gain that starts so small that what it scales does not show (a layer scale of 1e-6), a gate that starts closed.
  constexpr double kTooSmall = 0.1, kTooLarge = 4;
  const bool hides = mean != 0 && (std::abs(mean) < kTooSmall || std::abs(mean) > kTooLarge);
  if (additive && constant && hides) changed.mul_(0.5 / std::abs(mean));
  const double step = mean == 0 ? 0.1 : hides ? 0.125 : 0.25 * std::abs(mean);
  if (additive && constant) changed.add_(uniform_like(changed, generator).mul_(step));
  // Biases that start at random and too small to show.
  constexpr double kTiny = 1e-4, kVisible = 0.05;
  const double rms = std::sqrt(value.square().mean().item<double>());
  if (additive && !constant && rms < kTiny) changed.mul_(kVisible / rms);
  tensor.copy_(changed.reshape(tensor.sizes()));
}

// One channel in four varies little, one not at all: what is added to a variance decides there.
void shrink_variances(at::Tensor tensor, at::Generator& generator) {
  constexpr double kOneInFour = -0.5, kLittle = 0x1p-14;
  if (tensor.numel() == 0) return;
  const at::Tensor value = tensor.to(at::kDouble).flatten(), drawn = uniform_like(value, generator);
  const at::Tensor little = drawn.le(drawn.min().clamp_min(kOneInFour));
  tensor.copy_(
      at::where(drawn.eq(drawn.min()), 0, at::where(little, value.mul(kLittle), value)).reshape(tensor.sizes()));
}

void stretch_elements(at::Tensor tensor, Stretch by, at::Generator& generator) {
  if (tensor.numel() == 0) return;
  const double middle = (by.high + by.low) / 2, half = (by.high - by.low) / 2;
  at::Tensor value = tensor.to(at::kDouble);
  value = value.mul(at::exp2(uniform_like(value, generator).mul_(half).add_(middle)));
  if (by.signs) {
    at::Tensor sign = uniform_like(value, generator).sign().flatten();
    // Of few elements chance might leave all as they were.
    const auto options = at::dtype(at::kLong).device(sign.device());
    const int64_t one = at::randint(sign.numel(), {1}, generator, options).item<int64_t>();
    sign[one].fill_(-1);
    if (sign.numel() > 1) sign[(one + 1) % sign.numel()].fill_(1);
    value = value.mul(sign.reshape(value.sizes()));
  }
  if (by.offset != 0) value = value.add(by.offset * std::sqrt(value.square().mean().item<double>()));
  if (by.empty_rows && value.dim() > 1) {
    const at::Tensor drawn = uniform_like(value.flatten(1).select(1, 0), generator);
    constexpr double kOneInEight = -0.75;  // of what is drawn from [-1, 1)
    std::vector<int64_t> shape(static_cast<size_t>(value.dim()), 1);
    shape[0] = value.size(0);
    value = value.mul(some_of_each_draw(drawn, kOneInEight).logical_not().to(at::kDouble).reshape(shape));
  }
  tensor.copy_(value);
}

bool is_identity(const at::Tensor& tensor) {
  return tensor.dim() == 2 && tensor.size(0) == tensor.size(1) && tensor.size(0) > 1 &&
         tensor.equal(at::eye(tensor.size(0), tensor.options()));
}

// Zeros, and one other value.
bool is_mask(const at::Tensor& tensor) {
  const at::Tensor other = tensor.ne(0), some = tensor.masked_select(other);
  return some.numel() > 0 && some.numel() < tensor.numel() && some.eq(some[0]).all().item<bool>();
}

bool is_constant(const at::Tensor& tensor) { return tensor.eq(tensor.flatten()[0]).all().item<bool>(); }

void move_whole_numbers(at::Tensor tensor, uint64_t seed, BufferMove move) {
  constexpr int64_t kFar = 1000, kNear = 8, kLate = 1'000'000;
  Draws draws(tensor, seed);
  const bool narrow = tensor.scalar_type() == at::kChar || tensor.scalar_type() == at::kByte;
  if (is_constant(tensor)) {
    const bool is_counter = tensor.numel() == 1;  // a warm-up ends late
    const int64_t most = move == BufferMove::near || narrow ? kNear : is_counter ? kLate : kFar;
    tensor.add_(draws.integers(is_counter ? most / 2 : 1, most - 1).to(tensor.scalar_type()));
    return;
  }
  // Weights in 8 bits; longer integers are indices.
  if (are_positions(tensor)) return;
  InputFacts facts;
  see_values(tensor, true, facts);
  tensor.copy_(narrow ? draws.permuted() : other_integers(tensor, facts, false, draws));
}

void move_truths(at::Tensor tensor, uint64_t seed) {
  Draws draws(tensor, seed);
  tensor.copy_(is_constant(tensor) ? draws.uniform().gt(0.5) : draws.permuted());
}

void move_floats(at::Tensor tensor, at::Generator& generator, BufferMove move) {
  constexpr double kPart = 0.1;
  if (move == BufferMove::stretched) return stretch_elements(tensor, {-2, 2, true}, generator);
  const at::Tensor value = tensor.to(at::kDouble);
  const bool counts = tensor.numel() == 1 && value.isfinite().all().item<bool>() && value.frac().item<double>() == 0;
  if (counts && move == BufferMove::far) {
    constexpr double kLate = 1e6;
    tensor.add_(uniform_like(value, generator).abs().add(1).mul(kLate / 2).floor().to(tensor.scalar_type()));
    return;
  }
  const at::Tensor factor = uniform_like(value, generator).mul_(kPart), moved = value.mul(factor.add(1));
  const bool finite = value.isfinite().all().item<bool>();
  const bool zeros_move = finite && (is_identity(tensor) || !is_mask(tensor));
  if (!zeros_move) {
    tensor.copy_(moved);
    return;
  }
  // Small numbers take the place of zeros.
  const double rms = std::sqrt(value.square().mean().item<double>());
  tensor.copy_(at::where(value.eq(0), factor.mul(rms > 0 ? rms : 1), moved));
}

bool is_movable_buffer(const GraphValue& value, const at::Tensor& tensor) {
  return value.kind == GraphValue::Kind::buffer && !is_running_statistic(value) && tensor.defined() &&
         tensor.numel() > 0 && !tensor.is_complex();
}

void move_buffer(at::Tensor tensor, uint64_t seed, BufferMove move) {
  auto generator = generator_on(tensor.device(), seed);
  if (tensor.is_floating_point()) return move_floats(tensor, generator, move);
  if ((is_structured_mask(tensor) && !is_constant(tensor)) || move == BufferMove::stretched) return;
  if (tensor.scalar_type() == at::kBool) return move_truths(tensor, seed);
  if (is_integer(tensor) && move != BufferMove::floats) move_whole_numbers(tensor, seed, move);
}

// `name` without "aten::".
bool is_made_of_exponentials(std::string_view name) {
  constexpr std::string_view kFunctions[] = {
      "tanh",  "sigmoid", "silu", "elu",  "selu",     "celu", "gelu",  "mish",  "softplus", "log_sigmoid",
      "expm1", "log1p",   "erf",  "sinh", "softsign", "glu",  "atanh", "asinh", "erfc",     "hardswish"};
  if (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

// Whether its results are elements of its operands, or whole numbers: nothing is rounded. `name` without "aten::".
bool is_exact(std::string_view name) {
  constexpr std::string_view kExact[] = {"floor",
                                         "ceil",
                                         "round",
                                         "trunc",
                                         "sign",
                                         "sgn",
                                         "abs",
                                         "neg",
                                         "relu",
                                         "relu6",
                                         "clamp",
                                         "clamp_min",
                                         "clamp_max",
                                         "hardtanh",
                                         "maximum",
                                         "minimum",
                                         "fmax",
                                         "fmin",
                                         "max",
                                         "min",
                                         "amax",
                                         "amin",
                                         "aminmax",
                                         "where",
                                         "masked_fill",
                                         "topk",
                                         "sort",
                                         "kthvalue",
                                         "median",
                                         "mode",
                                         "cummax",
                                         "cummin",
                                         "max_pool1d",
                                         "max_pool2d",
                                         "max_pool3d",
                                         "heaviside",
                                         "threshold",
                                         "fmod",
                                         "nan_to_num",
                                         "adaptive_max_pool1d",
                                         "adaptive_max_pool2d",
                                         "max_pool2d_with_indices",
                                         "max_pool3d_with_indices",
                                         "adaptive_max_pool3d",
                                         "one_hot"};
  return std::find(std::begin(kExact), std::end(kExact), name) != std::end(kExact);
}

// The operand, in this shape, is normalised along these axes, and then multiplied by the gain (undefined: there is
// none).
struct Normalisation {
  std::vector<int64_t> shape, axes;
  at::Tensor gain;
  double epsilon = 0;
  at::Tensor running_mean = {};  // that follows the means; undefined: none does
  double momentum = 0;
};

std::vector<int64_t> axes_from(int64_t first, int64_t count) {
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < count; ++axis) axes.push_back(axis);
  return axes;
}

at::Tensor tensor_in(const std::vector<c10::IValue>& operands, size_t place) {
  return place < operands.size() && operands[place].isTensor() ? operands[place].toTensor() : at::Tensor();
}

// Along the second axis, for tensors of so many.
at::Tensor by_channel(const at::Tensor& gain, int64_t dimensions) {
  if (!gain.defined()) return gain;
  std::vector<int64_t> shape(static_cast<size_t>(dimensions), 1);
  shape[1] = gain.numel();
  return gain.reshape(shape);
}

// nullopt: the node is none, or takes its statistics from elsewhere. Operands as LibTorch's schemas have them.
std::optional<Normalisation> normalisation_of(const GraphNode& node, const std::vector<c10::IValue>& operands) {
  const std::string_view name = short_name(node);
  const at::Tensor operand = tensor_in(operands, 0);
  if (!operand.defined()) return std::nullopt;
  const int64_t dimensions = operand.dim();
  const auto shape = operand.sizes().vec();
  const auto flag = [&](size_t place) {
    return place < operands.size() && operands[place].isBool() && operands[place].toBool();
  };
  const bool by_batch = name == "batch_norm" && dimensions > 1, by_instance = name == "instance_norm" && dimensions > 2;
  if ((by_batch || by_instance) && flag(5)) {
    std::vector<int64_t> axes = axes_from(2, dimensions);
    if (by_batch) axes.insert(axes.begin(), 0);
    return Normalisation{shape,
                         axes,
                         by_channel(tensor_in(operands, 1), dimensions),
                         operands[7].toDouble(),
                         tensor_in(operands, 3),
                         operands[6].toDouble()};
  }
  if (name == "layer_norm") {
    const auto length = static_cast<int64_t>(operands[1].toIntVector().size());
    return Normalisation{shape, axes_from(dimensions - length, dimensions), tensor_in(operands, 2),
                         operands[4].toDouble()};
  }
  if (name == "group_norm" && dimensions > 1 && shape[0] > 0)
    return Normalisation{{shape[0], operands[1].toInt(), -1},
                         {2},
                         by_channel(tensor_in(operands, 2), dimensions),
                         operands[4].toDouble()};
  return std::nullopt;
}

bool is_movable_weight(const GraphValue& value, const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() &&
         (value.kind == GraphValue::Kind::parameter || is_running_statistic(value));
}

template <class Change>
State changed_weights(const Graph& graph, const State& state, uint64_t seed, const Unmoved& unmoved,
                      const Change& change) {
  at::NoGradGuard no_grad;
  State result = copy_state(state, false, device_of(state));
  auto generator = generator_on(device_of(state), seed);
  std::set<void*> done;
  for (const size_t i : movable_weights(graph, result)) {
    auto& value = graph.values[i];
    const bool variance = is_variance(value.name);
    if (unmoved.count(i) == 0 && done.insert(result[i].unsafeGetTensorImpl()).second)
      change(result[i], value.kind == GraphValue::Kind::parameter, variance, generator);
  }
  return result;
}

// Into new memory.
bool is_addition(const GraphNode& node) {
  const std::string_view name = short_name(node);
  return name == "add" || name == "sub" || name == "subtract" || name == "rsub";
}

// The value that is the first or second operand of an addition; -1: a number.
int term_of(const GraphNode& node, size_t place) {
  const GraphArgument* argument = argument_of(node, place, place == 0 ? "self" : "other");
  const int* id = argument ? argument->value_id() : nullptr;
  return id ? *id : -1;
}

at::Tensor magnitude_of(const c10::IValue& term, const at::Tensor& like) {
  if (!term.isTensor()) return at::full({}, std::abs(term.toScalar().toDouble()), like.options());
  return term.toTensor().to(like.device(), at::kDouble).abs();
}

}  // namespace

std::vector<size_t> movable_weights(const Graph& graph, const State& state) {
  std::vector<size_t> movable;
  for (size_t i = 0; i < state.size(); ++i)
    if (is_movable_weight(graph.values[i], state[i])) movable.push_back(i);
  return movable;
}

State perturbed_weights(const Graph& graph, const State& state, uint64_t seed, const Unmoved& unmoved) {
  const auto change = [](at::Tensor tensor, bool parameter, bool, at::Generator& generator) {
    perturb(tensor, parameter, generator);
  };
  return changed_weights(graph, state, seed, unmoved, change);
}

State redrawn_weights(const Graph& graph, const State& state, uint64_t seed, const Unmoved& unmoved) {
  const auto change = [](at::Tensor tensor, bool, bool variance, at::Generator& generator) {
    redraw(tensor, !variance, generator);
  };
  return changed_weights(graph, state, seed, unmoved, change);
}

State stretched_weights(const Graph& graph, const State& state, uint64_t seed, Stretch by, const Unmoved& unmoved) {
  const auto change = [&](at::Tensor tensor, bool parameter, bool variance, at::Generator& generator) {
    if (parameter) stretch_elements(tensor, by, generator);
    if (variance && by.empty_rows) shrink_variances(tensor, generator);
  };
  return changed_weights(graph, state, seed, unmoved, change);
}

namespace {

// A buffer that hides what it is multiplied with, or lets all of it through.
bool is_gate(const at::Tensor& tensor) {
  const bool may_be = tensor.is_floating_point() || tensor.scalar_type() == at::kBool;
  return may_be && tensor.numel() > 0 && is_constant(tensor);
}

}  // namespace

State moved_buffers(const Graph& graph, const State& state, uint64_t seed, BufferMove move, const Unmoved& unmoved) {
  at::NoGradGuard no_grad;
  State result = copy_state(state, false, device_of(state));
  std::set<void*> done;
  for (const size_t i : movable_buffers(graph, result)) {
    if (unmoved.count(i) != 0 || (move == BufferMove::gates && !is_gate(result[i]))) continue;
    if (done.insert(result[i].unsafeGetTensorImpl()).second) move_buffer(result[i], seed + i, move);
  }
  return result;
}

std::vector<size_t> movable_buffers(const Graph& graph, const State& state) {
  std::vector<size_t> movable;
  for (size_t i = 0; i < state.size(); ++i)
    if (is_movable_buffer(graph.values[i], state[i])) movable.push_back(i);
  return movable;
}

bool has_movable_buffers(const Graph& graph, const State& state) { return !movable_buffers(graph, state).empty(); }

bool has_gates(const Graph& graph, const State& state) {
  for (size_t i = 0; i < state.size(); ++i)
    if (is_movable_buffer(graph.values[i], state[i]) && is_gate(state[i])) return true;
  return false;
}

bool are_positions(const at::Tensor& tensor) {
  if (!tensor.defined() || !is_integer(tensor) || tensor.numel() < 4) return false;
  return tensor.flatten().equal(at::arange(tensor.numel(), tensor.options()));
}

bool is_structured_mask(const at::Tensor& tensor) {
  constexpr double kChanges = 2;  // along a row of a mask that allows what is before, or near
  if (!tensor.defined() || tensor.dim() < 2 || tensor.size(-1) < 4 || tensor.is_complex()) return false;
  if (tensor.isnan().any().item<bool>() || !is_mask(tensor) || is_identity(tensor)) return false;
  const at::Tensor some = tensor.ne(0);
  const at::Tensor changes = some.slice(-1, 1).ne(some.slice(-1, 0, -1));
  return changes.to(at::kDouble).sum(-1).mean().item<double>() <= kChanges;
}

namespace {

// Whether what a node adds up is of one sign: then the sum is no smaller than its terms.
bool adds_up(const GraphNode& node, const std::vector<c10::IValue>& operands) {
  const std::string_view name = short_name(node);
  if (name == "linalg_vector_norm" || name == "norm") return true;
  const at::Tensor terms = name == "sum" || name == "mean" ? tensor_in(operands, 0) : at::Tensor();
  return terms.defined() && terms.scalar_type() == at::kDouble && terms.ge(0).all().item<bool>();
}

// Whether a result that is far below the others may be what is left of terms of their size. Logarithms of sums of
// exponentials are no sums of what is masked.
bool may_cancel(std::string_view name) { return name.find("log") == std::string_view::npos; }

// What is not finite stays: there a product with a draw would be another infinity, or no number.
void add_finite(at::Tensor& made, const at::Tensor& change) { made.add_(change.nan_to_num(0, 0, 0)); }

}  // namespace

void nudge_results(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                   NodeNudge nudge) {
  const bool function = is_made_of_exponentials(short_name(node));
  const AtenWork work = aten_work(std::string_view(node.op).substr(0, node.op.find('.')));
  const bool rounds = nudge.is_used && !is_in_place(node) && work == AtenWork::computes && !is_exact(short_name(node));
  if (!function && !rounds) return;
  for (c10::IValue& result : results) {
    if (!result.isTensor()) continue;
    at::Tensor made = result.toTensor();
    if (!made.defined() || made.scalar_type() != at::kDouble || made.numel() == 0) continue;
    // A view of an operand is no result of its own.
    if (!function && (made.storage().use_count() != 1 || !made.is_non_overlapping_and_dense())) continue;
    at::Generator generator = generator_on(made.device(), nudge.seed);
    const at::Tensor draw = uniform_like(made, generator);
    const at::Tensor kept = nudge.keeps_round ? made.clone() : at::Tensor();
    if (function) {
      add_finite(made, draw.mul_(2 * nudge.epsilon).mul_(made.abs().clamp_min_(1)));
    } else if (nudge.units > 0) {
      const at::Tensor size = made.abs();
      if (!adds_up(node, operands)) size.clamp_min_(usual_size(made, may_cancel(short_name(node))));
      // A sum that is zero is one of zeros: of masked elements, say.
      add_finite(made, size.mul_(draw).mul_((nudge.units + 0.5) * nudge.epsilon).masked_fill_(made.eq(0), 0));
    } else {
      made.mul_(draw.mul_(nudge.epsilon / 2).add_(1));
    }
    if (kept.defined()) made.copy_(at::where(is_round(kept), kept, made));
    if (function) return;
  }
}

void nudge_means(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                 double epsilon, uint64_t seed) {
  constexpr double kOfOneSum = 0.2;  // units for each term's root: as in eval/graph/tolerance.cpp
  const auto form = normalisation_of(node, operands);
  if (!form || results.empty() || !results[0].isTensor()) return;
  at::Tensor made = results[0].toTensor();
  const at::Tensor& operand = operands[0].toTensor();
  if (made.scalar_type() != at::kDouble || operand.scalar_type() != at::kDouble || made.numel() == 0) return;
  const at::Tensor groups = operand.reshape(form->shape);
  const auto terms = static_cast<double>(groups.numel()) / static_cast<double>(groups.mean(form->axes).numel());
  at::Generator generator = generator_on(made.device(), seed);
  const at::Tensor size = groups.square().mean(form->axes, /*keepdim*/ true).sqrt_();
  const at::Tensor scale = groups.var(form->axes, /*unbiased*/ false, /*keepdim*/ true).add_(form->epsilon).rsqrt_();
  const at::Tensor off = size.mul(uniform_like(size, generator)).mul_(kOfOneSum * std::sqrt(terms) * epsilon);
  if (at::Tensor running = form->running_mean; running.defined() && running.scalar_type() == at::kDouble)
    running.add_(off.nan_to_num(0, 0, 0).reshape({-1, running.numel()}).mean(0), form->momentum);
  at::Tensor change = off.mul(scale).expand_as(groups).reshape(operand.sizes());
  if (form->gain.defined()) change = change.mul(form->gain);
  add_finite(made, change);
}

void nudge_products(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                    uint64_t seed) {
  constexpr double kSmallest = 0x1p-149;  // of float32, in which most programs multiply
  const std::string_view name = short_name(node);
  if ((name != "cumprod" && name != "prod") || results.empty() || !results[0].isTensor()) return;
  at::Tensor made = results[0].toTensor();
  at::Tensor operand = tensor_in(operands, 0);
  if (!operand.defined() || made.scalar_type() != at::kDouble || made.numel() == 0) return;
  const bool has_axis = operands.size() > 1 && operands[1].isInt() && operand.dim() > 0;
  if (name == "cumprod" && !has_axis) return;
  const int64_t axis = has_axis ? operands[1].toInt() : 0;
  // What every product up to there rounded away, beside that product.
  at::Tensor lost;
  if (name == "cumprod") {
    lost = made.abs().reciprocal_().mul_(kSmallest).cumsum_(axis);
  } else {
    if (!has_axis) operand = operand.flatten();
    const at::Tensor products = operand.to(at::kDouble).cumprod(axis);
    lost = products.abs().reciprocal_().mul_(kSmallest).sum(axis).reshape(made.sizes());
  }
  at::Generator generator = generator_on(made.device(), seed);
  const at::Tensor moved = made.mul(lost.nan_to_num_(1).clamp_max_(1).mul_(uniform_like(made, generator)).add_(1));
  made.copy_(at::where(made.isfinite(), moved, made));
}

void nudge_powers(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                  NodeNudge nudge) {
  constexpr double kMultiplied = 4;  // exponents up to it are products and roots
  std::string_view name = short_name(node);
  if (!name.empty() && name.back() == '_') name.remove_suffix(1);
  if ((name != "pow" && name != "float_power") || results.empty() || !results[0].isTensor()) return;
  if (operands.size() > 1 && operands[1].isScalar()) {
    const double exponent = operands[1].toScalar().toDouble();
    if (std::abs(exponent) <= kMultiplied && std::round(2 * exponent) == 2 * exponent) return;
  }
  at::Tensor made = results[0].toTensor();
  if (made.scalar_type() != at::kDouble || made.numel() == 0) return;
  at::Generator generator = generator_on(made.device(), nudge.seed);
  // The logarithm of the result is what was rounded.
  const at::Tensor size = made.abs().log_().abs_().nan_to_num_(0, 0, 0);
  const at::Tensor moved = made.mul(uniform_like(made, generator).mul_(size).mul_(nudge.epsilon).add_(1));
  made.copy_(nudge.keeps_round ? at::where(is_round(made), made, moved) : moved);
}

at::Tensor nudged_by_value(const at::Tensor& tensor, double epsilon, uint64_t seed) {
  // Digits that a sine leaves behind the point after it was multiplied: another number for each value.
  constexpr double kSpread = 78.233, kDigits = 43758.5453123;
  const double start = static_cast<double>(seed % 1'000'003);
  const at::Tensor draw = tensor.mul(kSpread).add(start).sin_().mul_(kDigits).frac_();
  return tensor.mul(at::nan_to_num(draw, 0, 0, 0).mul_(epsilon / 2).add_(1));
}

at::Tensor is_round(const at::Tensor& tensor) {
  constexpr double kParts = 64;
  const at::Tensor parts = tensor.mul(kParts);
  return parts.eq(parts.round());
}

at::Tensor nudged(const at::Tensor& tensor, double epsilon, uint64_t seed) {
  at::Generator generator = generator_on(tensor.device(), seed);
  return tensor.mul(uniform_like(tensor, generator).mul_(epsilon / 2).add_(1));
}

AddedTerms::AddedTerms(const Graph& graph) : takers_(graph.values.size()) {
  for (const GraphNode& node : graph.nodes) {
    if (!is_addition(node)) continue;
    for (const size_t place : {0, 1})
      if (const int id = term_of(node, place); id >= 0) ++takers_[static_cast<size_t>(id)];
  }
}

void AddedTerms::nudge(const GraphNode& node, const std::vector<c10::IValue>& operands,
                       std::vector<c10::IValue>& results, NodeNudge nudge) {
  if (!is_addition(node) || operands.size() < 2 || results.empty() || !results[0].isTensor()) return;
  at::Tensor made = results[0].toTensor();
  if (made.scalar_type() != at::kDouble || made.numel() == 0) return;
  const size_t scaled = short_name(node) == "rsub" ? 0 : 1;
  const double factor = operands.size() > 2 && operands[2].isScalar() ? operands[2].toScalar().toDouble() : 1;
  at::Tensor own, all;  // the larger operand, the largest term
  bool is_chain = false;
  for (const size_t place : {0, 1}) {
    at::Tensor size = magnitude_of(operands[place], made), term = size;
    const int id = term_of(node, place);
    if (const auto found = largest_.find(id); found != largest_.end()) {
      is_chain = true;
      term = found->second;
    }
    if (id >= 0 && --takers_[static_cast<size_t>(id)] <= 0) largest_.erase(id);
    if (place == scaled && factor != 1) size = size.mul(std::abs(factor)), term = term.mul(std::abs(factor));
    own = own.defined() ? at::maximum(own, size) : size;
    all = all.defined() ? at::maximum(all, term) : term;
  }
  const int id = node.outputs.empty() ? -1 : node.outputs[0];
  if (id >= 0 && takers_[static_cast<size_t>(id)] > 0) largest_[id] = all;
  if (!is_chain) return;
  at::Generator generator = generator_on(made.device(), nudge.seed);
  // Masks are terms too, and infinite.
  const at::Tensor beyond = all.sub(own).nan_to_num_(0, 0, 0);
  at::Tensor moved = made.add(beyond.mul(uniform_like(made, generator)).mul_(nudge.epsilon / 2));
  if (nudge.keeps_round) moved = at::where(is_round(made), made, moved);
  made.copy_(moved);
}

}  // namespace tilepilot::eval
