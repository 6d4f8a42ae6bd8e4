#include "agent/builtin/import/primitives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tilepilot::agent::builtin {

bool is_float(const std::string& dtype) { return dtype.find("float") != std::string::npos; }

bool PrimitiveGraph::copies_product(int id) const {
  const Primitive& p = at(id);
  if (p.kind != Primitive::Kind::map || p.op != ScalarOp::cast) return false;
  return at(p.args[0]).kind == Primitive::Kind::product && at(p.args[0]).dtype == p.dtype;
}

int PrimitiveGraph::behind_views(int id) const {
  while (at(id).kind == Primitive::Kind::view) id = at(id).args[0];
  return id;
}

std::vector<std::vector<int>> PrimitiveGraph::users() const {
  std::vector<std::vector<int>> users(nodes.size());
  for (size_t id = 0; id < nodes.size(); ++id)
    for (int arg : nodes[id].args) {
      auto& list = users[static_cast<size_t>(arg)];
      if (list.empty() || list.back() != static_cast<int>(id)) list.push_back(static_cast<int>(id));
    }
  return users;
}

namespace {

// Calls with several outputs live and die together: their shared arguments are listed at each.
std::vector<bool> find_live(const PrimitiveGraph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (int id : graph.outputs) live[static_cast<size_t>(id)] = true;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    if (graph.nodes[id].effect) live[id] = true;
    if (!live[id]) continue;
    for (int arg : graph.nodes[id].args) live[static_cast<size_t>(arg)] = true;
  }
  return live;
}

}  // namespace

void PrimitiveGraph::drop_dead() {
  std::vector<bool> live = find_live(*this);
  std::vector<int> moved(nodes.size(), -1);
  std::vector<Primitive> kept;
  for (size_t id = 0; id < nodes.size(); ++id) {
    if (!live[id]) continue;
    moved[id] = static_cast<int>(kept.size());
    kept.push_back(std::move(nodes[id]));
    for (int& arg : kept.back().args) arg = moved[static_cast<size_t>(arg)];
  }
  nodes = std::move(kept);
  auto renumber = [&](int& id) { id = id < 0 ? -1 : moved[static_cast<size_t>(id)]; };
  std::for_each(value_of.begin(), value_of.end(), renumber);
  std::for_each(outputs.begin(), outputs.end(), renumber);
  std::vector<std::pair<int, int>> kept_order;
  for (auto [before, after] : order) {
    renumber(before);
    renumber(after);
    if (before >= 0 && after >= 0) kept_order.emplace_back(before, after);
  }
  order = std::move(kept_order);
}

int PrimitiveBuilder::add(Primitive primitive) {
  if (primitive.origin < 0) primitive.origin = origin_;
  graph_.nodes.push_back(std::move(primitive));
  return static_cast<int>(graph_.nodes.size()) - 1;
}

int PrimitiveBuilder::shared(Primitive primitive) {
  const Primitive& p = primitive;
  std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{:a}|{}|{}|{}", static_cast<int>(p.kind),
                                static_cast<int>(p.op), static_cast<int>(p.reduction), static_cast<int>(p.view.kind),
                                fmt::join(p.axes, ","), fmt::join(p.view.order, ","), p.view.axis, p.view.start,
                                p.view.step, p.number, fmt::join(p.args, ","), fmt::join(p.shape, ","), p.dtype);
  auto [found, inserted] = known_.try_emplace(key, -1);
  if (inserted) found->second = add(std::move(primitive));
  return found->second;
}

int PrimitiveBuilder::constant(double value, std::string dtype) {
  return shared({.kind = Primitive::Kind::constant, .number = value, .dtype = std::move(dtype)});
}

std::optional<double> PrimitiveBuilder::number(int id) const {
  const Primitive& p = at(id);
  if (p.kind == Primitive::Kind::constant) return p.number;
  if (p.kind == Primitive::Kind::view && p.view.kind == ViewOp::Kind::expand) return number(p.args[0]);
  return std::nullopt;
}

bool PrimitiveBuilder::is_constant(int id, double value) const { return number(id) == value; }

namespace {

std::optional<double> fold(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::add:
      return a + b;
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::mul:
      return a * b;
    default:
      return std::nullopt;
  }
}

// Narrower types round, overflow or wrap, and wider integers are no doubles.
bool holds(const std::string& dtype, double value) {
  return dtype == "float32" || dtype == "float64" ||
         ((dtype == "int32" || dtype == "int64") && std::abs(value) < 2147483648.0);
}

// Of floats; `b` counts where there are two.
std::optional<double> fold_real(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::div:
      return a / b;
    case ScalarOp::maximum:
      return std::isnan(b) ? b : std::max(a, b);
    case ScalarOp::minimum:
      return std::isnan(b) ? b : std::min(a, b);
    case ScalarOp::pow:
      return std::pow(a, b);
    case ScalarOp::neg:
      return -a;
    case ScalarOp::abs:
      return std::abs(a);
    case ScalarOp::exp:
      return std::exp(a);
    case ScalarOp::log:
      return std::log(a);
    case ScalarOp::log1p:
      return std::log1p(a);
    case ScalarOp::log2:
      return std::log2(a);
    case ScalarOp::sqrt:
      return std::sqrt(a);
    case ScalarOp::rsqrt:
      return 1 / std::sqrt(a);
    case ScalarOp::tanh:
      return std::tanh(a);
    default:
      return fold(op, a, b);
  }
}

bool is_comparison(ScalarOp op) {
  return info(op).precedence == 30 || op == ScalarOp::logical_and || op == ScalarOp::logical_or ||
         op == ScalarOp::logical_not;
}

int rank_of(const std::string& dtype) {
  static const std::map<std::string, int> ranks = {{"bool", 0},    {"uint8", 1},  {"int8", 1},    {"int16", 2},
                                                   {"int32", 3},   {"int64", 4},  {"float16", 5}, {"bfloat16", 5},
                                                   {"float32", 6}, {"float64", 7}};
  auto found = ranks.find(dtype);
  return found == ranks.end() ? 8 : found->second;
}

// Numbers do not widen tensors of their own category, as in PyTorch.
std::string result_dtype(const PrimitiveBuilder& builder, ScalarOp op, const std::vector<int>& args) {
  if (is_comparison(op)) return "bool";
  std::string best;
  bool tensors_only = std::any_of(args.begin(), args.end(), [&](int arg) { return !builder.number(arg); });
  for (size_t i = op == ScalarOp::select ? 1 : 0; i < args.size(); ++i) {
    const std::string& dtype = builder.at(args[i]).dtype;
    bool number = builder.number(args[i]).has_value();
    if (number && tensors_only && !best.empty() && (is_float(best) || !is_float(dtype))) continue;
    if (best.empty() || rank_of(dtype) > rank_of(best)) best = dtype;
  }
  return best;
}

}  // namespace

// Neutral elements, double negation, nested constants, functions of functions.
std::optional<int> PrimitiveBuilder::simplified(ScalarOp op, const std::vector<int>& args) {
  if (op == ScalarOp::neg && at(args[0]).kind == Primitive::Kind::map && at(args[0]).op == ScalarOp::neg)
    return at(args[0]).args[0];
  if (op == ScalarOp::tanh) return tanh_of_softplus(args[0]);
  if (args.size() != 2) return std::nullopt;
  auto a = number(args[0]), b = number(args[1]);
  if (a && b && at(args[0]).shape.empty() && at(args[1]).shape.empty())
    if (auto value = fold(op, *a, *b); value && holds(at(args[0]).dtype, *value))
      return constant(*value, at(args[0]).dtype);
  bool keeps_left = b && at(args[1]).shape.size() <= at(args[0]).shape.size() && numel(at(args[1]).shape) <= 1;
  bool same_kind = is_float(at(args[0]).dtype) || !is_float(at(args[1]).dtype);
  if (keeps_left && same_kind) {
    double neutral = op == ScalarOp::add || op == ScalarOp::sub ? 0 : 1;
    bool has_neutral = op == ScalarOp::add || op == ScalarOp::sub || op == ScalarOp::mul || op == ScalarOp::pow ||
                       (op == ScalarOp::div && is_float(at(args[0]).dtype));
    if (has_neutral && *b == neutral) return args[0];
  }
  if (a && !b && (op == ScalarOp::add || op == ScalarOp::mul)) return map(op, {args[1], args[0]});
  const Primitive inner = at(args[0]);
  bool nests = b && (op == ScalarOp::add || op == ScalarOp::mul) && inner.kind == Primitive::Kind::map &&
               inner.op == op && number(inner.args[1]) && is_float(inner.dtype);
  if (nests) return map(op, {inner.args[0], constant(*fold(op, *number(inner.args[1]), *b), inner.dtype)});
  return std::nullopt;
}

// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2): one function instead of three. From 20 on it is 1 in every
// type, and a softplus that is x from 10 on has the same tanh.
std::optional<int> PrimitiveBuilder::tanh_of_softplus(int arg) {
  constexpr double kLeastThreshold = 10, kOne = 20;
  const auto is = [&](int id, ScalarOp op) { return at(id).kind == Primitive::Kind::map && at(id).op == op; };
  if (!is(arg, ScalarOp::select)) return std::nullopt;
  const int condition = at(arg).args[0], x = at(arg).args[1], smooth = at(arg).args[2];
  if (!is(smooth, ScalarOp::log1p) || !is(at(smooth).args[0], ScalarOp::exp)) return std::nullopt;
  if (at(at(smooth).args[0]).args[0] != x || !is(condition, ScalarOp::gt) || at(condition).args[0] != x)
    return std::nullopt;
  if (number(at(condition).args[1]).value_or(0) < kLeastThreshold) return std::nullopt;
  const int e = map(ScalarOp::exp, {map(ScalarOp::minimum, {x, constant(kOne)})});
  const int n = map(ScalarOp::mul, {e, map(ScalarOp::add, {e, constant(2)})});
  return map(ScalarOp::div, {n, map(ScalarOp::add, {n, constant(2)})});
}

// Of numbers that are known.
std::optional<int> PrimitiveBuilder::computed(ScalarOp op, const std::vector<int>& args) {
  const bool known = args.size() <= 2 && std::all_of(args.begin(), args.end(), [&](int arg) {
                       return at(arg).kind == Primitive::Kind::constant && is_float(at(arg).dtype);
                     });
  if (!known) return std::nullopt;
  const auto value = fold_real(op, at(args.front()).number, at(args.back()).number);
  const std::string dtype = result_dtype(*this, op, args);
  return value && holds(dtype, *value) ? std::optional(constant(*value, dtype)) : std::nullopt;
}

int PrimitiveBuilder::map(ScalarOp op, std::vector<int> args, std::string hint) {
  Shape shape;
  for (int arg : args) shape = broadcast(shape, at(arg).shape).value_or(shape);
  for (int& arg : args) {  // stretching is implied
    const Primitive& p = at(arg);
    bool stretch = p.kind == Primitive::Kind::view && p.view.kind == ViewOp::Kind::expand;
    if (!stretch) continue;
    Shape without;
    for (int other : args) without = *broadcast(without, at(other == arg ? p.args[0] : other).shape);
    if (without == shape) arg = p.args[0];
  }
  if (auto found = simplified(op, args)) return *found;
  if (auto found = computed(op, args)) return *found;
  std::string dtype = result_dtype(*this, op, args);
  if (op == ScalarOp::div && !is_float(dtype)) {
    dtype = "float32";
    for (int& arg : args) arg = cast(arg, dtype);
  }
  convert_numbers(op, dtype, args);
  return shared({.kind = Primitive::Kind::map,
                 .op = op,
                 .args = std::move(args),
                 .shape = std::move(shape),
                 .dtype = std::move(dtype),
                 .hint = std::move(hint)});
}

// Numbers take the type of what they meet, so that they are written as such.
void PrimitiveBuilder::convert_numbers(ScalarOp op, const std::string& dtype, std::vector<int>& args) {
  std::string wanted = dtype;
  if (is_comparison(op))
    for (int arg : args)
      if (!number(arg)) wanted = at(arg).dtype;
  for (size_t i = op == ScalarOp::select ? 1 : 0; i < args.size(); ++i)
    if (at(args[i]).kind == Primitive::Kind::constant && is_float(wanted) && !is_float(at(args[i]).dtype))
      args[i] = constant(at(args[i]).number, wanted);
}

int PrimitiveBuilder::cast(int arg, const std::string& dtype) {
  if (at(arg).dtype == dtype) return arg;
  if (at(arg).kind == Primitive::Kind::constant) return constant(at(arg).number, dtype);
  return shared(
      {.kind = Primitive::Kind::map, .op = ScalarOp::cast, .args = {arg}, .shape = at(arg).shape, .dtype = dtype});
}

int PrimitiveBuilder::reduce(ReduceOp op, int arg, std::vector<int> axes, std::string hint) {
  Shape shape = at(arg).shape;
  std::erase_if(axes, [&](int axis) { return shape[static_cast<size_t>(axis)] == 1; });
  if (axes.empty()) return arg;
  std::sort(axes.begin(), axes.end());
  for (int axis : axes) shape[static_cast<size_t>(axis)] = 1;
  return shared({.kind = Primitive::Kind::reduce,
                 .reduction = op,
                 .axes = std::move(axes),
                 .args = {arg},
                 .shape = std::move(shape),
                 .dtype = at(arg).dtype,
                 .hint = std::move(hint)});
}

int PrimitiveBuilder::mean(int arg, const std::vector<int>& axes, std::string hint) {
  int64_t count = 1;
  for (int axis : axes) count *= at(arg).shape[static_cast<size_t>(axis)];
  int total = reduce(ReduceOp::sum, arg, axes, hint);
  return map(ScalarOp::div, {total, constant(static_cast<double>(count))}, hint);
}

int PrimitiveBuilder::gather(int arg, int index) {
  Shape shape = at(arg).shape;
  shape.back() = 1;
  return shared({.kind = Primitive::Kind::gather,
                 .args = {arg, index},
                 .shape = std::move(shape),
                 .dtype = at(arg).dtype,
                 .hint = "picked"});
}

int PrimitiveBuilder::reshape(int arg, Shape shape) {
  const Primitive& p = at(arg);
  if (p.shape == shape) return arg;
  if (p.kind == Primitive::Kind::view && p.view.kind == ViewOp::Kind::reshape) return reshape(p.args[0], shape);
  std::string dtype = p.dtype;
  return shared({.kind = Primitive::Kind::view, .args = {arg}, .shape = std::move(shape), .dtype = dtype});
}

int PrimitiveBuilder::permute(int arg, std::vector<int64_t> order) {
  if (std::is_sorted(order.begin(), order.end())) return arg;
  Primitive view{.kind = Primitive::Kind::view, .args = {arg}, .dtype = at(arg).dtype};
  for (int64_t axis : order) view.shape.push_back(at(arg).shape[static_cast<size_t>(axis)]);
  view.view = {.kind = ViewOp::Kind::permute, .order = std::move(order)};
  return shared(std::move(view));
}

int PrimitiveBuilder::expand(int arg, const Shape& shape) {
  if (at(arg).shape == shape) return arg;
  return shared({.kind = Primitive::Kind::view,
                 .view = {.kind = ViewOp::Kind::expand},
                 .args = {arg},
                 .shape = shape,
                 .dtype = at(arg).dtype});
}

int PrimitiveBuilder::slice(int arg, ViewOp slice, int64_t length) {
  Shape shape = at(arg).shape;
  auto& extent = shape[static_cast<size_t>(slice.axis)];
  if (slice.start == 0 && slice.step == 1 && length == extent) return arg;
  extent = length;
  return shared({.kind = Primitive::Kind::view,
                 .view = std::move(slice),
                 .args = {arg},
                 .shape = std::move(shape),
                 .dtype = at(arg).dtype});
}

int PrimitiveBuilder::product(int a, int b, Shape shape) {
  return shared({.kind = Primitive::Kind::product,
                 .args = {a, b},
                 .shape = std::move(shape),
                 .dtype = at(a).dtype,
                 .hint = "product"});
}

}  // namespace tilepilot::agent::builtin
