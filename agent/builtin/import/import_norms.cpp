// Normalisation layers as statistics and maps.
#include <numeric>

#include "agent/builtin/import/import.h"

namespace tilepilot::agent::builtin {

namespace {

using Results = std::vector<int>;

struct Statistics {
  int mean;
  int variance;  // biased
};

Statistics statistics(PrimitiveBuilder& build, int x, const std::vector<int>& axes) {
  int mean = build.mean(x, axes);
  int centered = build.map(ScalarOp::sub, {x, mean}, "centered");
  int squares = build.map(ScalarOp::mul, {centered, centered}, "squares");
  return {mean, build.mean(squares, axes, "variance")};
}

int inverse_deviation(PrimitiveBuilder& build, int variance, double eps) {
  return build.map(ScalarOp::rsqrt, {build.map(ScalarOp::add, {variance, build.constant(eps)})}, "inv_std");
}

struct Affine {
  int weight = -1, bias = -1;  // -1: none
};

Affine affine(NodeImport& in, size_t weight_at, size_t bias_at, const Shape& shape) {
  Affine result;
  if (in.has(weight_at)) result.weight = in.build.reshape(in.operand(weight_at), shape);
  if (in.has(bias_at)) result.bias = in.build.reshape(in.operand(bias_at), shape);
  return result;
}

int apply_affine(PrimitiveBuilder& build, int x, Affine affine) {
  if (affine.weight >= 0) x = build.map(ScalarOp::mul, {x, affine.weight});
  if (affine.bias >= 0) x = build.map(ScalarOp::add, {x, affine.bias});
  return x;
}

int normalised(PrimitiveBuilder& build, int x, const std::vector<int>& axes, double eps) {
  auto [mean, variance] = statistics(build, x, axes);
  int centered = build.map(ScalarOp::sub, {x, mean}, "centered");
  return build.map(ScalarOp::mul, {centered, inverse_deviation(build, variance, eps)}, "normalised");
}

std::vector<int> last_axes(size_t rank, size_t count) {
  std::vector<int> axes(count);
  std::iota(axes.begin(), axes.end(), static_cast<int>(rank - count));
  return axes;
}

Results layer_norm(NodeImport& in) {
  int x = in.operand(0);
  Shape inner = in.integers(1);
  std::vector<int> axes = last_axes(in.shape(x).size(), inner.size());
  int result = normalised(in.build, x, axes, in.number(4, 1e-5));
  return {apply_affine(in.build, result, affine(in, 2, 3, inner))};
}

Results rms_norm(NodeImport& in) {
  int x = in.operand(0);
  Shape inner = in.integers(1);
  auto& build = in.build;
  int squares = build.map(ScalarOp::mul, {x, x}, "squares");
  int mean = build.mean(squares, last_axes(in.shape(x).size(), inner.size()), "mean_square");
  int scale = inverse_deviation(build, mean, in.number(3, 1.1920928955078125e-07));
  return {apply_affine(build, build.map(ScalarOp::mul, {x, scale}), affine(in, 2, 99, inner))};
}

Results group_norm(NodeImport& in) {
  int x = in.operand(0);
  Shape shape = in.shape(x);
  int64_t groups = in.integer(1, 1), channels = shape[1];
  int grouped = in.build.reshape(x, {shape[0], groups, channels / groups, numel(shape) / shape[0] / channels});
  int result = normalised(in.build, grouped, {2, 3}, in.number(4, 1e-5));
  result = apply_affine(in.build, result, affine(in, 2, 3, {1, groups, channels / groups, 1}));
  return {in.build.reshape(result, shape)};
}

Shape per_channel(const Shape& shape) {
  Shape result(shape.size(), 1);
  result[1] = shape[1];
  return result;
}

// running = running + momentum · (observed - running); the variance is the unbiased one. PyTorch does that in one
// operator; a kernel has the new value from maps, and writes it over the old one.
void update_running(NodeImport& in, Statistics observed, double count) {
  double momentum = in.number(6, 0.1);
  auto& build = in.build;
  int unbiased = build.map(ScalarOp::mul, {observed.variance, build.constant(count / (count - 1))}, "unbiased");
  int sources[] = {in.operand(3), in.operand(4)}, values[] = {observed.mean, unbiased};
  for (int i = 0; i < 2; ++i) {
    int value = build.reshape(values[i], build.at(sources[i]).shape);
    double weight = momentum;
    if (!in.lerps) {
      int step = build.map(ScalarOp::mul, {build.map(ScalarOp::sub, {value, sources[i]}), build.constant(momentum)});
      value = build.map(ScalarOp::add, {sources[i], step}, "running");
      // Its own, also where the model computes the same: it lies where the next update changes it.
      Primitive own = build.at(build.cast(value, build.at(sources[i]).dtype));
      value = build.add(std::move(own));
      weight = 1;
    }
    build.add({.kind = Primitive::Kind::update, .number = weight, .args = {sources[i], value}, .effect = true});
  }
}

Results batch_norm(NodeImport& in) {
  int x = in.operand(0);
  Shape shape = in.shape(x);
  auto& build = in.build;
  bool training = in.flag(5, false), tracked = in.has(3) && in.has(4);
  if (shape.size() < 2 || (!training && !tracked)) return {};
  std::vector<int> axes = {0};
  for (size_t i = 2; i < shape.size(); ++i) axes.push_back(static_cast<int>(i));
  double count = static_cast<double>(numel(shape) / shape[1]);
  if (training && count < 2) return {};
  Statistics stats;
  if (training) {
    stats = statistics(build, x, axes);
    if (tracked) update_running(in, stats, count);
  } else {
    stats = {build.reshape(in.operand(3), per_channel(shape)), build.reshape(in.operand(4), per_channel(shape))};
  }
  Affine rescale = affine(in, 1, 2, per_channel(shape));
  int scale = inverse_deviation(build, stats.variance, in.number(7, 1e-5));
  if (rescale.weight >= 0) scale = build.map(ScalarOp::mul, {scale, rescale.weight}, "scale");
  int result = build.map(ScalarOp::mul, {build.map(ScalarOp::sub, {x, stats.mean}, "centered"), scale});
  return {apply_affine(build, result, {.bias = rescale.bias})};
}

// Without running statistics it is a group norm with a group a channel.
Results instance_norm(NodeImport& in) {
  int x = in.operand(0);
  if (in.has(3) || in.has(4) || !in.flag(5, true)) return {};
  std::vector<int> axes = last_axes(in.shape(x).size(), in.shape(x).size() - 2);
  int result = normalised(in.build, x, axes, in.number(7, 1e-5));
  return {apply_affine(in.build, result, affine(in, 1, 2, per_channel(in.shape(x))))};
}

Handler for_floats(Results (*rule)(NodeImport&)) {
  return [rule](NodeImport& in) { return is_float(in.at(in.operand(0)).dtype) ? rule(in) : Results{}; };
}

}  // namespace

void add_norms(HandlerTable& table) {
  table["aten::layer_norm"] = for_floats(layer_norm);
  table["aten::rms_norm"] = for_floats(rms_norm);
  table["aten::group_norm"] = for_floats(group_norm);
  table["aten::batch_norm"] = for_floats(batch_norm);
  table["aten::instance_norm"] = for_floats(instance_norm);
}

}  // namespace tilepilot::agent::builtin
