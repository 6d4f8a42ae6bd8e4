// Matrix products. All are brought to the form a · bᵀ; biases become additions, which fuse with what follows.
#include <algorithm>
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

// Of rows with one vector, or with one for each batch.
int dots(PrimitiveBuilder& build, int rows, int vector) {
  const int last = static_cast<int>(build.at(rows).shape.size()) - 1;
  return build.reduce(ReduceOp::sum, build.map(ScalarOp::mul, {rows, vector}, "products"), {last}, "dot");
}

// a · b with b as PyTorch's matmul takes it; empty if the shapes are not plain or equally batched matrices.
Results times(PrimitiveBuilder& build, int a, int b) {
  Shape left = build.at(a).shape, right = build.at(b).shape;
  if (!is_float(build.at(a).dtype) || left.empty() || right.empty()) return {};
  const int last = static_cast<int>(left.size()) - 1;
  if (right.size() == 1) return {without_axes(build, dots(build, a, b), {last}, false)};
  if (left.size() < 2) return {};
  bool shared_matrix = right.size() == 2;
  bool same_batch = left.size() == right.size() && std::equal(left.begin(), left.end() - 2, right.begin());
  if (!shared_matrix && !same_batch) return {};
  if (right.back() == 1) return {dots(build, a, last_two_swapped(build, b))};
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

// The indices of an einsum of two tensors by where they are: in both and the result, in one and the result, in both
// alone.
struct Indices {
  std::string batches, rows, columns, sums;
};
// nullopt: others, or an operand has one twice.
std::optional<Indices> sort_indices(const std::string& a, const std::string& b, const std::string& result) {
  Indices sorted;
  for (const char index : a) {
    const bool in_b = b.find(index) != std::string::npos, kept = result.find(index) != std::string::npos;
    if (!in_b && !kept) return std::nullopt;
    (!in_b ? sorted.rows : kept ? sorted.batches : sorted.sums) += index;
  }
  for (const char index : b)
    if (a.find(index) == std::string::npos) sorted.columns += index;
  const size_t all = sorted.batches.size() + sorted.rows.size() + sorted.columns.size();
  const auto repeats = [](std::string text) {
    std::sort(text.begin(), text.end());
    return std::adjacent_find(text.begin(), text.end()) != text.end();
  };
  if (result.size() != all || repeats(a) || repeats(b) || repeats(result)) return std::nullopt;
  return sorted;
}

int in_order(PrimitiveBuilder& build, int x, const std::string& from, const std::string& to) {
  std::vector<int64_t> order;
  for (const char index : to) order.push_back(static_cast<int64_t>(from.find(index)));
  return std::is_sorted(order.begin(), order.end()) ? x : build.permute(x, order);
}

// `bik,bjk->bij` and the like: one index that is summed, one of columns, and several of rows if nothing is batched.
Results einsum(NodeImport& in) {
  std::string text = in.text(0, "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t comma = text.find(','), arrow = text.find("->");
  const auto* tensors = in.arg_count() == 2 ? std::get_if<eval::GraphList>(&in.node().args[1].data) : nullptr;
  const bool is_plain = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,->") == text.npos;
  if (!is_plain || comma == text.npos || arrow == text.npos || comma > arrow || !tensors || tensors->size() != 2)
    return {};
  const std::string a = text.substr(0, comma), b = text.substr(comma + 1, arrow - comma - 1),
                    result = text.substr(arrow + 2);
  const int left = in.element(1, 0), right = in.element(1, 1);
  if (left < 0 || right < 0) return {};
  const auto sorted = sort_indices(a, b, result);
  const bool sizes_fit = in.shape(left).size() == a.size() && in.shape(right).size() == b.size();
  if (!sorted || !sizes_fit || !is_float(in.at(left).dtype) || sorted->sums.size() != 1 || sorted->columns.size() != 1)
    return {};
  if (sorted->rows.empty() || (!sorted->batches.empty() && sorted->rows.size() != 1)) return {};
  for (const char index : sorted->batches + sorted->sums)
    if (in.shape(left)[a.find(index)] != in.shape(right)[b.find(index)]) return {};
  const int rows = in_order(in.build, left, a, sorted->batches + sorted->rows + sorted->sums);
  const int columns = in_order(in.build, right, b, sorted->batches + sorted->columns + sorted->sums);
  Shape shape = in.shape(rows);
  shape.back() = in.shape(right)[b.find(sorted->columns[0])];
  const int product = in.build.product(rows, columns, shape);
  return {in_order(in.build, product, sorted->batches + sorted->rows + sorted->columns, result)};
}

}  // namespace

void add_products(HandlerTable& table) {
  table["aten::linear"] = linear;
  table["aten::addmm"] = addmm;
  table["aten::einsum"] = einsum;
  for (const char* name : {"matmul", "mm", "bmm", "mv", "dot"})
    table[std::string("aten::") + name] = [](NodeImport& in) { return times(in.build, in.operand(0), in.operand(1)); };
}

}  // namespace tilepilot::agent::builtin
