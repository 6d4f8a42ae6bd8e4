// Operators that only rename elements: the result is a view, or a copy that fused code does not need.
#include <algorithm>
#include <numeric>

#include "agent/builtin/import/import.h"

namespace tilepilot::agent::builtin {

namespace {

using Results = std::vector<int>;

int64_t wrapped(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

Results identity(NodeImport& in) { return {in.operand(0)}; }
Results reshaped(NodeImport& in) { return {in.build.reshape(in.operand(0), in.result().shape)}; }

Results transposed(NodeImport& in, int64_t first, int64_t second) {
  int x = in.operand(0);
  size_t rank = in.shape(x).size();
  if (rank < 2) return {x};
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(wrapped(first, rank))], order[static_cast<size_t>(wrapped(second, rank))]);
  return {in.build.permute(x, order)};
}

Results permuted(NodeImport& in) {
  int x = in.operand(0);
  std::vector<int64_t> order;
  for (int64_t axis : in.integers(1)) order.push_back(wrapped(axis, in.shape(x).size()));
  return {in.build.permute(x, order)};
}

Results sliced(NodeImport& in) {
  int x = in.operand(0);
  int64_t axis = wrapped(in.integer(1, 0), in.shape(x).size());
  int64_t extent = in.shape(x)[static_cast<size_t>(axis)];
  int64_t start = in.integer(2, 0), step = in.integer(4, 1);
  if (start < 0) start += extent;
  start = std::clamp<int64_t>(start, 0, extent);
  ViewOp view{.kind = ViewOp::Kind::slice, .axis = axis, .start = start, .step = step};
  return {in.build.slice(x, view, in.result().shape[static_cast<size_t>(axis)])};
}

Results selected(NodeImport& in) {
  int x = in.operand(0);
  int64_t axis = wrapped(in.integer(1, 0), in.shape(x).size());
  int64_t index = wrapped(in.integer(2, 0), static_cast<size_t>(in.shape(x)[static_cast<size_t>(axis)]));
  int one = in.build.slice(x, {.kind = ViewOp::Kind::slice, .axis = axis, .start = index}, 1);
  return {in.build.reshape(one, in.result().shape)};
}

// chunk, split, unbind: consecutive pieces of one axis, as long as eager's results are.
Results pieces(NodeImport& in, int64_t axis, bool drop_axis) {
  int x = in.operand(0);
  axis = wrapped(axis, in.shape(x).size());
  Results results;
  int64_t start = 0;
  for (size_t i = 0; i < in.node().outputs.size(); ++i) {
    int64_t length = drop_axis ? 1 : 0;
    if (!drop_axis) {
      if (!in.uses_result(i)) return {};
      length = in.result(i).shape[static_cast<size_t>(axis)];
    }
    int piece = in.build.slice(x, {.kind = ViewOp::Kind::slice, .axis = axis, .start = start}, length);
    if (drop_axis && in.uses_result(i)) piece = in.build.reshape(piece, in.result(i).shape);
    results.push_back(piece);
    start += length;
  }
  return results;
}

Results dropout(NodeImport& in) {
  bool idle = in.number(1, 0.5) == 0 || !in.flag(2, true);
  return idle ? identity(in) : Results{};
}

}  // namespace

void add_views(HandlerTable& table) {
  for (const char* name : {"alias", "detach", "contiguous", "lift_fresh_copy", "positive"})
    table[std::string("aten::") + name] = identity;
  table["aten::clone"] = [](NodeImport& in) {
    return is_contiguous(in.result().shape, in.result().strides) ? identity(in) : Results{};
  };
  for (const char* name :
       {"view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "view_as", "_unsafe_view"})
    table[std::string("aten::") + name] = reshaped;
  table["aten::transpose"] = [](NodeImport& in) { return transposed(in, in.integer(1, 0), in.integer(2, 1)); };
  table["aten::t"] = [](NodeImport& in) { return transposed(in, 0, 1); };
  table["aten::numpy_T"] = table["aten::t"];
  table["aten::permute"] = permuted;
  table["aten::expand"] = [](NodeImport& in) -> Results { return {in.build.expand(in.operand(0), in.result().shape)}; };
  table["aten::expand_as"] = table["aten::expand"];
  table["aten::slice"] = sliced;
  table["aten::narrow"] = [](NodeImport& in) -> Results {
    int x = in.operand(0);
    ViewOp view{
        .kind = ViewOp::Kind::slice, .axis = wrapped(in.integer(1, 0), in.shape(x).size()), .start = in.integer(2, 0)};
    return {in.build.slice(x, view, in.integer(3, 0))};
  };
  table["aten::select"] = selected;
  table["aten::chunk"] = [](NodeImport& in) { return pieces(in, in.integer(2, 0), false); };
  table["aten::split"] = table["aten::chunk"];
  table["aten::split_with_sizes"] = table["aten::chunk"];
  table["aten::unbind"] = [](NodeImport& in) { return pieces(in, in.integer(1, 0), true); };
  table["aten::dropout"] = dropout;
  table["aten::feature_dropout"] = dropout;
}

}  // namespace tilepilot::agent::builtin
