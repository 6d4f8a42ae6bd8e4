// Losses: a map, then the mean or sum that the reduction argument asks for (0: none, 1: mean, 2: sum).
#include "agent/builtin/import/import.h"

namespace tilepilot::agent::builtin {

namespace {

using Results = std::vector<int>;

int total_of(PrimitiveBuilder& build, int x) {
  std::vector<int> axes(build.at(x).shape.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  return build.reshape(reduce_all_or_some(build, ReduceOp::sum, x, axes, "loss"), {});
}

int reduced(PrimitiveBuilder& build, int losses, int64_t reduction) {
  if (reduction == 0) return losses;
  int total = total_of(build, losses);
  if (reduction == 2) return total;
  return build.map(ScalarOp::div, {total, build.constant(static_cast<double>(numel(build.at(losses).shape)))}, "loss");
}

Results difference_loss(NodeImport& in, int (*loss)(PrimitiveBuilder&, int difference, double beta),
                        size_t reduction_at) {
  int a = in.operand(0), b = in.operand(1);
  if (!is_float(in.at(a).dtype) || in.shape(a) != in.shape(b)) return {};
  int difference = in.build.map(ScalarOp::sub, {a, b}, "difference");
  return {reduced(in.build, loss(in.build, difference, in.number(3, 1)), in.integer(reduction_at, 1))};
}

int square_loss(PrimitiveBuilder& build, int difference, double) {
  return build.map(ScalarOp::mul, {difference, difference}, "squares");
}

int absolute_loss(PrimitiveBuilder& build, int difference, double) { return build.map(ScalarOp::abs, {difference}); }

int smooth_loss(PrimitiveBuilder& build, int difference, double beta) {
  int size = build.map(ScalarOp::abs, {difference}, "size");
  int small = build.map(ScalarOp::mul, {build.map(ScalarOp::mul, {size, size}), build.constant(0.5 / beta)});
  int large = build.map(ScalarOp::sub, {size, build.constant(0.5 * beta)});
  return build.map(ScalarOp::select, {build.map(ScalarOp::lt, {size, build.constant(beta)}), small, large}, "losses");
}

// Class indices over [rows, classes]. Ignored rows count neither in the sum nor in the mean.
Results cross_entropy(NodeImport& in) {
  int logits = in.operand(0), targets = in.operand(1);
  auto& build = in.build;
  bool plain = in.shape(logits).size() == 2 && !in.has(2) && in.number(5, 0) == 0 && !is_float(in.at(targets).dtype);
  if (!plain || build.at(logits).kind != Primitive::Kind::source) return {};
  int index = build.reshape(targets, {in.shape(targets)[0], 1});
  int highest = build.reduce(ReduceOp::max, logits, {1}, "highest");
  int exps = build.map(ScalarOp::exp, {build.map(ScalarOp::sub, {logits, highest})}, "exps");
  int total = build.reduce(ReduceOp::sum, exps, {1}, "total");
  int level = build.map(ScalarOp::add, {build.map(ScalarOp::log, {total}), highest}, "level");
  int ignored = build.constant(in.number(4, -100), "int64");
  int counts = build.map(ScalarOp::ne, {index, ignored}, "counts");
  int safe = build.map(ScalarOp::select, {counts, index, build.constant(0, "int64")}, "label");
  int loss = build.map(ScalarOp::sub, {level, build.gather(logits, safe)});
  loss = build.map(ScalarOp::select, {counts, loss, build.constant(0)}, "loss");
  int64_t reduction = in.integer(3, 1);
  if (reduction == 0) return {build.reshape(loss, in.shape(targets))};
  int sum = total_of(build, loss);
  if (reduction == 2) return {sum};
  build.forget_known();
  int counted = build.map(
      ScalarOp::ne, {build.reshape(targets, {in.shape(targets)[0], 1}), build.constant(in.number(4, -100), "int64")});
  int rows = total_of(build, build.cast(counted, "float32"));
  return {build.map(ScalarOp::div, {sum, rows}, "loss")};
}

}  // namespace

void add_losses(HandlerTable& table) {
  table["aten::mse_loss"] = [](NodeImport& in) { return difference_loss(in, square_loss, 2); };
  table["aten::l1_loss"] = [](NodeImport& in) { return difference_loss(in, absolute_loss, 2); };
  table["aten::smooth_l1_loss"] = [](NodeImport& in) { return difference_loss(in, smooth_loss, 2); };
  table["aten::cross_entropy_loss"] = cross_entropy;
}

}  // namespace tilepilot::agent::builtin
