// Matrix products. All are brought to the form a · bᵀ; biases become additions, which fuse with what follows.
#include <numeric>

#include "agent/builtin/import/import.h"

namespace tilepilot::agent::builtin {

namespace {

using Results = std::vector<int>;

int last_two_swapped(PrimitiveBuilder& build, int x) {
  std::vector<int64_t> order(build.at(x).shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return build.permute(x, order);
}

// a · b with b as PyTorch's matmul takes it; empty if the shapes are not plain or equally batched matrices.
Results times(PrimitiveBuilder& build, int a, int b) {
  Shape left = build.at(a).shape, right = build.at(b).shape;
  if (left.size() < 2 || right.size() < 2 || !is_float(build.at(a).dtype)) return {};
  bool shared_matrix = right.size() == 2;
  bool same_batch = left.size() == right.size() && std::equal(left.begin(), left.end() - 2, right.begin());
  if (!shared_matrix && !same_batch) return {};
  Shape shape = left;
  shape.back() = right.back();
  return {build.product(a, last_two_swapped(build, b), shape)};
}

Results linear(NodeImport& in) {
  int x = in.operand(0), weight = in.operand(1);
  Shape shape = in.shape(x);
  if (shape.size() < 2 || in.shape(weight).size() != 2) return {};
  shape.back() = in.shape(weight)[0];
  int result = in.build.product(x, weight, shape);
  if (in.has(2)) result = in.build.map(ScalarOp::add, {result, in.operand(2)});
  return {result};
}

Results addmm(NodeImport& in) {
  if (in.keyword_number("alpha", 1) != 1 || in.keyword_number("beta", 1) != 1) return {};
  Results product = times(in.build, in.operand(1), in.operand(2));
  if (product.empty()) return {};
  return {in.build.map(ScalarOp::add, {product[0], in.operand(0)})};
}

}  // namespace

void add_products(HandlerTable& table) {
  table["aten::linear"] = linear;
  table["aten::addmm"] = addmm;
  for (const char* name : {"matmul", "mm", "bmm"})
    table[std::string("aten::") + name] = [](NodeImport& in) { return times(in.build, in.operand(0), in.operand(1)); };
}

}  // namespace tilepilot::agent::builtin
