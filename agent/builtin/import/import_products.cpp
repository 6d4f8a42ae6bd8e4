// Matrix products. All are brought to the form a · bᵀ; biases become additions, which fuse with what follows.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

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

// The letters of an einsum of two operands, as `bhij,bhi->bhj`.
struct Equation {
  std::string left, right, result;
};
std::optional<Equation> equation_in(std::string text) {
  std::erase(text, ' ');
  const size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) return std::nullopt;
  Equation equation{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  for (const std::string* term : {&equation.left, &equation.right, &equation.result})
    if (std::set(term->begin(), term->end()).size() != term->size() || term->find_first_of(".,") != std::string::npos)
      return std::nullopt;
  return equation;
}

bool has_all(const std::string& term, const std::string& letters) {
  return letters.find_first_not_of(term) == std::string::npos;
}

// The operand with the axes of `letters`, those that it lacks with extent 1.
int with_axes(PrimitiveBuilder& build, int x, const std::string& term, const std::string& letters) {
  std::vector<int64_t> order;
  Shape shape;
  for (const char letter : letters) {
    const size_t at = term.find(letter);
    if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
    shape.push_back(at == std::string::npos ? 1 : build.at(x).shape[at]);
  }
  return build.reshape(build.permute(x, order), shape);
}

// Where nothing is summed, or one operand has all letters so that each of its elements is used once: that is no product
// for a library, but belongs to the maps around it.
Results sums_of_products(NodeImport& in, const Equation& equation, const std::array<int, 2>& operands) {
  const auto& [left, right, result] = equation;
  std::string summed;
  for (const char letter : left + right)
    if ((result + summed).find(letter) == std::string::npos) summed += letter;
  if (!summed.empty() && !has_all(left, right) && !has_all(right, left)) return {};
  for (const int operand : operands)
    if (in.at(operand).dtype != "float32") return {};
  int value = in.build.map(ScalarOp::mul, {with_axes(in.build, operands[0], left, result + summed),
                                           with_axes(in.build, operands[1], right, result + summed)});
  std::vector<int> axes(summed.size());
  std::iota(axes.begin(), axes.end(), static_cast<int>(result.size()));
  if (!axes.empty()) value = reduce_all_or_some(in.build, ReduceOp::sum, value, axes, "dots");
  return {without_axes(in.build, value, axes, false)};
}

// The indices by where they are: in both and the result, in one and the result, in both alone.
struct Indices {
  std::string batches, rows, columns, sums;
};
// nullopt: one is summed in an operand alone.
std::optional<Indices> sort_indices(const Equation& equation) {
  Indices sorted;
  for (const char index : equation.left) {
    const bool in_right = has_all(equation.right, {index}), kept = has_all(equation.result, {index});
    if (!in_right && !kept) return std::nullopt;
    (!in_right ? sorted.rows : kept ? sorted.batches : sorted.sums) += index;
  }
  for (const char index : equation.right)
    if (!has_all(equation.left, {index})) sorted.columns += index;
  const size_t all = sorted.batches.size() + sorted.rows.size() + sorted.columns.size();
  return equation.result.size() == all ? std::optional(sorted) : std::nullopt;
}

int in_order(PrimitiveBuilder& build, int x, const std::string& from, const std::string& to) {
  std::vector<int64_t> order;
  for (const char index : to) order.push_back(static_cast<int64_t>(from.find(index)));
  return std::is_sorted(order.begin(), order.end()) ? x : build.permute(x, order);
}

// `bik,bjk->bij` and the like: one index that is summed, one of columns, and several of rows if nothing is batched.
Results product_of(NodeImport& in, const Equation& equation, const std::array<int, 2>& operands) {
  const auto sorted = sort_indices(equation);
  const auto [left, right] = operands;
  if (!sorted || !is_float(in.at(left).dtype) || sorted->sums.size() != 1 || sorted->columns.size() != 1) return {};
  if (sorted->rows.empty() || (!sorted->batches.empty() && sorted->rows.size() != 1)) return {};
  const auto extent = [&](int operand, const std::string& term, char index) {
    return in.shape(operand)[term.find(index)];
  };
  for (const char index : sorted->batches + sorted->sums)
    if (extent(operands[0], equation.left, index) != extent(operands[1], equation.right, index)) return {};
  const int rows = in_order(in.build, left, equation.left, sorted->batches + sorted->rows + sorted->sums);
  const int columns = in_order(in.build, right, equation.right, sorted->batches + sorted->columns + sorted->sums);
  Shape shape = in.shape(rows);
  shape.back() = extent(operands[1], equation.right, sorted->columns[0]);
  const int product = in.build.product(rows, columns, shape);
  return {in_order(in.build, product, sorted->batches + sorted->rows + sorted->columns, equation.result)};
}

Results einsum(NodeImport& in) {
  const auto equation = equation_in(in.text(0, ""));
  if (!equation || in.arg_count() != 2) return {};
  const std::array<int, 2> operands = {in.element(1, 0), in.element(1, 1)};
  if (operands[0] < 0 || operands[1] < 0 || in.element(1, 2) >= 0) return {};
  if (in.shape(operands[0]).size() != equation->left.size() || in.shape(operands[1]).size() != equation->right.size() ||
      in.result().shape.size() != equation->result.size() ||
      !has_all(equation->left + equation->right, equation->result))
    return {};
  Results sums = sums_of_products(in, *equation, operands);
  return sums.empty() ? product_of(in, *equation, operands) : sums;
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
