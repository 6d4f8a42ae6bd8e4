// Sums, means, extrema, norms, softmax and log-sum-exp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "agent/builtin/import/import.h"

namespace tilepilot::agent::builtin {

namespace {

using Results = std::vector<int>;

constexpr int64_t kSharedBetweenBlocks = 16384;  // elements from which one block alone would be slow

// Splits the axes so that the inner ones hold at least this many elements.
constexpr int64_t kInnerElements = 512;

int reduce_in_two_steps(PrimitiveBuilder& build, ReduceOp op, int arg, const std::vector<int>& axes,
                        const std::string& hint) {
  Shape shape = build.at(arg).shape;
  std::vector<int> inner;
  int64_t count = 1;
  size_t next = axes.size();
  while (next > 0 && count < kInnerElements) {
    --next;
    inner.insert(inner.begin(), axes[next]);
    count *= shape[static_cast<size_t>(axes[next])];
  }
  if (numel(shape) / count >= 16) {
    int rows = build.reduce(op, arg, inner, hint);
    return build.reduce(op, rows, {axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(next)}, hint);
  }
  int64_t row = 4096;
  while (row > 1 && numel(shape) % row != 0) row /= 2;
  if (row == 1) return build.reduce(op, arg, axes, hint);
  int rows = build.reduce(op, build.reshape(arg, {numel(shape) / row, row}), {1}, hint);
  return build.reshape(build.reduce(op, rows, {0}, hint), Shape(shape.size(), 1));
}

Results plain(NodeImport& in, ReduceOp op, size_t axes_at, size_t keep_at) {
  int x = in.operand(0);
  if (!is_float(in.at(x).dtype)) return {};
  std::vector<int> axes = in.axes(axes_at, in.shape(x).size());
  int result = reduce_all_or_some(in.build, op, x, axes, op == ReduceOp::sum ? "total" : "extreme");
  return {without_axes(in.build, result, axes, in.flag(keep_at, false))};
}

// How many of a mask hold: float32 counts exactly up to there.
Results count(NodeImport& in) {
  constexpr int64_t kMostCounted = int64_t{1} << 24;
  const int mask = in.operand(0);
  const std::vector<int> axes = in.axes(1, in.shape(mask).size());
  int64_t counted = 1;
  for (int axis : axes) counted *= in.shape(mask)[static_cast<size_t>(axis)];
  if (counted > kMostCounted) return {};
  const int total = reduce_all_or_some(in.build, ReduceOp::sum, in.build.cast(mask, "float32"), axes, "count");
  return {without_axes(in.build, in.build.cast(total, in.result().dtype), axes, in.flag(2, false))};
}

Results sum(NodeImport& in) {
  if (in.keyword("dtype")) return {};
  return in.at(in.operand(0)).dtype == "bool" ? count(in) : plain(in, ReduceOp::sum, 1, 2);
}

Results mean(NodeImport& in) {
  int x = in.operand(0);
  if (!is_float(in.at(x).dtype)) return {};
  std::vector<int> axes = in.axes(1, in.shape(x).size());
  int64_t count = 1;
  for (int axis : axes) count *= in.shape(x)[static_cast<size_t>(axis)];
  int total = reduce_all_or_some(in.build, ReduceOp::sum, x, axes, "mean");
  int result = in.build.map(ScalarOp::div, {total, in.build.constant(static_cast<double>(count))}, "mean");
  return {without_axes(in.build, result, axes, in.flag(2, false))};
}

// max.dim and min.dim: only if nobody asks for the indices.
Results extreme_along(NodeImport& in, ReduceOp op) {
  if (in.node().overload == "other") {
    ScalarOp scalar = op == ReduceOp::max ? ScalarOp::maximum : ScalarOp::minimum;
    return {in.build.map(scalar, {in.operand(0), in.operand(1)})};
  }
  if (in.uses_result(1)) return {};
  return plain(in, op, 1, 2);
}

int centered_squares(PrimitiveBuilder& build, int x, const std::vector<int>& axes) {
  int centered = build.map(ScalarOp::sub, {x, build.mean(x, axes)}, "centered");
  return build.reduce(ReduceOp::sum, build.map(ScalarOp::mul, {centered, centered}, "squares"), axes, "variance");
}

struct Spread {
  bool root = false, with_mean = false;
};
Results spread(NodeImport& in, Spread wanted) {
  int x = in.operand(0);
  // var.correction(x, dim, *, correction, keepdim), var.dim(x, dim, unbiased, keepdim) and var(x, unbiased).
  const std::string& overload = in.node().overload;
  const bool by_number = overload == "correction", by_axes = by_number || overload == "dim";
  if (!is_float(in.at(x).dtype) || (!by_axes && !overload.empty())) return {};
  std::vector<int> axes = by_axes ? in.axes(1, in.shape(x).size()) : std::vector<int>(in.shape(x).size());
  if (!by_axes) std::iota(axes.begin(), axes.end(), 0);
  const double correction = by_number ? in.keyword_number("correction", 1) : in.flag(by_axes ? 2 : 1, true) ? 1 : 0;
  const bool keeps = by_number ? in.keyword_number("keepdim", 0) != 0 : by_axes && in.flag(3, false);
  double count = 1;
  for (int axis : axes) count *= static_cast<double>(in.shape(x)[static_cast<size_t>(axis)]);
  double divisor = count - correction;
  if (divisor <= 0) return {};
  int result =
      in.build.map(ScalarOp::div, {centered_squares(in.build, x, axes), in.build.constant(divisor)}, "variance");
  if (wanted.root) result = in.build.map(ScalarOp::sqrt, {result}, "deviation");
  Results results{without_axes(in.build, result, axes, keeps)};
  if (wanted.with_mean) results.push_back(without_axes(in.build, in.build.mean(x, axes), axes, keeps));
  return results;
}

int exps_of(PrimitiveBuilder& build, int x, int highest) {
  return build.map(ScalarOp::exp, {build.map(ScalarOp::sub, {x, highest}, "shifted")}, "exps");
}

Results softmax(NodeImport& in) {
  int x = in.operand(0);
  if (!is_float(in.at(x).dtype) || in.has(2)) return {};
  std::vector<int> axes = in.axes(1, in.shape(x).size());
  int highest = in.build.reduce(ReduceOp::max, x, axes, "highest");
  int exps = exps_of(in.build, x, highest);
  int total = in.build.reduce(ReduceOp::sum, exps, axes, "total");
  return {in.build.map(ScalarOp::div, {exps, total})};
}

Results log_softmax(NodeImport& in) {
  int x = in.operand(0);
  if (!is_float(in.at(x).dtype) || in.has(2)) return {};
  std::vector<int> axes = in.axes(1, in.shape(x).size());
  int highest = in.build.reduce(ReduceOp::max, x, axes, "highest");
  int total = in.build.reduce(ReduceOp::sum, exps_of(in.build, x, highest), axes, "total");
  int level = in.build.map(ScalarOp::add, {in.build.map(ScalarOp::log, {total}), highest}, "level");
  return {in.build.map(ScalarOp::sub, {x, level})};
}

// An infinite maximum is not subtracted, so that rows of -inf give -inf.
Results logsumexp(NodeImport& in) {
  int x = in.operand(0);
  if (!is_float(in.at(x).dtype)) return {};
  std::vector<int> axes = in.axes(1, in.shape(x).size());
  auto& build = in.build;
  int highest = build.reduce(ReduceOp::max, x, axes, "highest");
  int size = build.map(ScalarOp::abs, {highest});
  int infinite = build.map(ScalarOp::eq, {size, build.constant(HUGE_VAL)});
  int shift = build.map(ScalarOp::select, {infinite, build.constant(0), highest}, "shift");
  int total = build.reduce(ReduceOp::sum, exps_of(build, x, shift), axes, "total");
  int result = build.map(ScalarOp::add, {build.map(ScalarOp::log, {total}), shift}, "level");
  return {without_axes(build, result, axes, in.flag(2, false))};
}

int norm_of(PrimitiveBuilder& build, int x, double order, const std::vector<int>& axes) {
  if (order == 2) {
    int squares = build.map(ScalarOp::mul, {x, x}, "squares");
    return build.map(ScalarOp::sqrt, {reduce_all_or_some(build, ReduceOp::sum, squares, axes, "norm")}, "norm");
  }
  int sizes = build.map(ScalarOp::abs, {x}, "sizes");
  ReduceOp op = order == 1 ? ReduceOp::sum : ReduceOp::max;
  return reduce_all_or_some(build, op, sizes, axes, "norm");
}

Results norm(NodeImport& in, size_t order_at, size_t axes_at, size_t keep_at) {
  int x = in.operand(0);
  double order = in.number(order_at, 2);
  bool known = order == 1 || order == 2 || order == HUGE_VAL;
  if (!is_float(in.at(x).dtype) || !known || in.keyword("dtype")) return {};
  std::vector<int> axes = in.axes(axes_at, in.shape(x).size());
  int result = norm_of(in.build, x, order, axes);
  return {without_axes(in.build, result, axes, in.flag(keep_at, false))};
}

// Each norm is clamped alone, as ATen does.
Results cosine_similarity(NodeImport& in) {
  int a = in.operand(0), b = in.operand(1);
  if (in.shape(a) != in.shape(b) || !is_float(in.at(a).dtype)) return {};
  auto& build = in.build;
  int64_t axis = in.integer(2, 1);
  if (axis < 0) axis += static_cast<int64_t>(in.shape(a).size());
  std::vector<int> axes = {static_cast<int>(axis)};
  int smallest = build.constant(in.number(3, 1e-8));
  int dot = build.reduce(ReduceOp::sum, build.map(ScalarOp::mul, {a, b}, "products"), axes, "dot");
  int left = build.map(ScalarOp::maximum, {norm_of(build, a, 2, axes), smallest});
  int right = build.map(ScalarOp::maximum, {norm_of(build, b, 2, axes), smallest});
  int result = build.map(ScalarOp::div, {dot, build.map(ScalarOp::mul, {left, right})});
  return {without_axes(build, result, axes, false)};
}

}  // namespace

int reduce_all_or_some(PrimitiveBuilder& build, ReduceOp op, int arg, const std::vector<int>& axes, std::string hint) {
  const Shape& shape = build.at(arg).shape;
  std::vector<int> wide = axes;
  std::sort(wide.begin(), wide.end());
  std::erase_if(wide, [&](int axis) { return shape[static_cast<size_t>(axis)] == 1; });
  int64_t reduced = 1;
  for (int axis : wide) reduced *= shape[static_cast<size_t>(axis)];
  if (reduced == numel(shape) && reduced >= kSharedBetweenBlocks)
    return reduce_in_two_steps(build, op, arg, wide, hint);
  return build.reduce(op, arg, wide, hint);
}

int without_axes(PrimitiveBuilder& build, int arg, const std::vector<int>& axes, bool keep) {
  if (keep) return arg;
  Shape kept;
  const Shape& shape = build.at(arg).shape;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!std::count(axes.begin(), axes.end(), static_cast<int>(i))) kept.push_back(shape[i]);
  return build.reshape(arg, kept);
}

void add_reductions(HandlerTable& table) {
  table["aten::sum"] = sum;
  table["aten::mean"] = [](NodeImport& in) { return in.keyword("dtype") ? Results{} : mean(in); };
  table["aten::amax"] = [](NodeImport& in) { return plain(in, ReduceOp::max, 1, 2); };
  table["aten::amin"] = [](NodeImport& in) { return plain(in, ReduceOp::min, 1, 2); };
  table["aten::max"] = [](NodeImport& in) { return extreme_along(in, ReduceOp::max); };
  table["aten::min"] = [](NodeImport& in) { return extreme_along(in, ReduceOp::min); };
  for (const bool with_mean : {false, true}) {
    const std::string suffix = with_mean ? "_mean" : "";
    table["aten::var" + suffix] = [=](NodeImport& in) { return spread(in, {.root = false, .with_mean = with_mean}); };
    table["aten::std" + suffix] = [=](NodeImport& in) { return spread(in, {.root = true, .with_mean = with_mean}); };
  }
  table["aten::softmax"] = softmax;
  table["aten::log_softmax"] = log_softmax;
  table["aten::logsumexp"] = logsumexp;
  table["aten::linalg_vector_norm"] = [](NodeImport& in) { return norm(in, 1, 2, 3); };
  table["aten::norm"] = [](NodeImport& in) { return norm(in, 1, 2, 3); };
  table["aten::cosine_similarity"] = cosine_similarity;
}

}  // namespace tilepilot::agent::builtin
