#include "eval/graph/axis_rules.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace tilepilot::eval {
namespace {

using Axes = std::optional<NodeAxes>;

// One node, while its row looks at it.
class Site {
 public:
  Site(const GraphUses& uses, const GraphNode& node) : uses_(uses), node_(node) {}

  const GraphNode& node() const { return node_; }
  const GraphValue& value(int id) const { return uses_.value(id); }
  int rank(int id) const { return static_cast<int>(value(id).shape.size()); }
  // Of the first result that is used.
  int result_rank() const {
    for (int id : node_.outputs) {
      if (id >= 0) return rank(id);
    }
    return 0;
  }
  // The tensor at a place among the arguments; -1: none.
  int tensor(size_t position, std::string_view keyword) const {
    auto* argument = argument_of(node_, position, keyword);
    auto* id = argument ? argument->value_id() : nullptr;
    return id && value(*id).is_tensor ? *id : -1;
  }
  // An integer among the arguments, or what stands for one that is not given.
  std::optional<int64_t> integer(size_t position, std::string_view keyword, std::optional<int64_t> absent = {}) const {
    if (is_absent(position, keyword)) return absent;
    auto* given = std::get_if<int64_t>(&argument_of(node_, position, keyword)->data);
    return given ? std::optional(*given) : std::nullopt;
  }
  bool is_absent(size_t position, std::string_view keyword) const {
    auto* argument = argument_of(node_, position, keyword);
    return !argument || std::holds_alternative<std::monostate>(argument->data);
  }
  bool flag(size_t position, std::string_view keyword, bool absent) const {
    auto* argument = argument_of(node_, position, keyword);
    auto* given = argument ? std::get_if<bool>(&argument->data) : nullptr;
    return given ? *given : absent;
  }

 private:
  const GraphUses& uses_;
  const GraphNode& node_;
};

// An axis as an index from the front; nullopt: there is no such axis.
std::optional<int> from_front(std::optional<int64_t> axis, int rank) {
  if (!axis || *axis < -rank || *axis >= rank) return std::nullopt;
  return static_cast<int>(*axis < 0 ? *axis + rank : *axis);
}

// Each axis becomes the one that is as far from the last.
std::vector<int> aligned(int rank, int result_rank) {
  std::vector<int> to;
  for (int axis = 0; axis < rank; ++axis) to.push_back(axis + result_rank - rank);
  return to;
}

std::vector<int> whole(int rank) { return std::vector<int>(static_cast<size_t>(rank), kWhole); }

// The first `count` axes stay, the others are needed whole.
std::vector<int> leading(int rank, int count) {
  auto to = whole(rank);
  for (int axis = 0; axis < std::min(rank, count); ++axis) to[static_cast<size_t>(axis)] = axis;
  return to;
}

Axes one(int value, std::vector<int> to) {
  NodeAxes axes;
  axes.operands.push_back({value, std::move(to)});
  return axes;
}

Axes by_element(const Site& site) {
  NodeAxes axes;
  for (int id : operands(site.node())) {
    if (!site.value(id).is_tensor) continue;
    if (site.rank(id) > site.result_rank()) return std::nullopt;
    axes.operands.push_back({id, aligned(site.rank(id), site.result_rank())});
  }
  return axes;
}

// With a condition alone, the places where it holds are the results.
Axes chosen_by_element(const Site& site) { return site.node().args.size() == 3 ? by_element(site) : std::nullopt; }

Axes inactive_dropout(const Site& site) {
  const bool off = !site.flag(2, "train", true) || number_of(argument_of(site.node(), 1, "p")).value_or(1) == 0;
  return off ? by_element(site) : std::nullopt;
}

// Axes of the first operand that an argument lists are combined; the results keep them, at an extent of 1 or more, or
// lose them.
Axes combines(const Site& site, size_t position, std::string_view keyword) {
  const int id = site.tensor(0, "self");
  auto listed = integers_of(argument_of(site.node(), position, keyword));
  if (id < 0 || listed.empty()) return std::nullopt;
  const int rank = site.rank(id);
  std::vector<bool> combined(static_cast<size_t>(rank));
  int count = 0;
  for (int64_t axis : listed) {
    auto known = from_front(axis, rank);
    if (!known || combined[static_cast<size_t>(*known)]) return std::nullopt;
    combined[static_cast<size_t>(*known)] = true;
    ++count;
  }
  const bool keeps = site.result_rank() == rank;
  if (!keeps && site.result_rank() != rank - count) return std::nullopt;
  auto to = whole(rank);
  int next = 0;
  for (int axis = 0; axis < rank; ++axis) {
    if (!combined[static_cast<size_t>(axis)]) to[static_cast<size_t>(axis)] = keeps ? axis : next;
    next += combined[static_cast<size_t>(axis)] ? 0 : 1;
  }
  return one(id, to);
}
Axes combines_second(const Site& site) { return combines(site, 1, "dim"); }
Axes combines_listed(const Site& site) { return combines(site, 1, "dims"); }
Axes combines_third(const Site& site) { return combines(site, 2, "dim"); }

// Along an axis that an argument names, or the last: the others stay where they are.
Axes along(const Site& site, size_t position, std::string_view keyword) {
  const int id = site.tensor(0, "self");
  if (id < 0 || site.rank(id) != site.result_rank()) return std::nullopt;
  auto axis = from_front(site.integer(position, keyword, -1), site.rank(id));
  if (!axis) return std::nullopt;
  auto to = aligned(site.rank(id), site.rank(id));
  to[static_cast<size_t>(*axis)] = kWhole;
  return one(id, to);
}
Axes along_second(const Site& site) { return along(site, 1, "dim"); }
Axes along_third(const Site& site) { return along(site, 2, "dim"); }

Axes all_but_last_two(const Site& site) {
  const int id = site.tensor(0, "self");
  return id < 0 ? std::nullopt : one(id, leading(site.rank(id), site.rank(id) - 2));
}

// ---- products

Axes matmul(const Site& site) {
  const int a = site.tensor(0, "self"),
            b = site.tensor(1, "other") >= 0 ? site.tensor(1, "other") : site.tensor(1, "mat2");
  if (a < 0 || b < 0 || site.rank(a) == 0 || site.rank(b) == 0) return std::nullopt;
  const int rows = site.rank(a) > 1 ? 1 : 0, columns = site.rank(b) > 1 ? 1 : 0;
  const int batch = site.result_rank() - rows - columns;
  auto map = [&](int rank, int kept, int result_axis, bool first) {
    std::vector<int> to;
    const int own_batch = std::max(0, rank - 2);
    for (int axis = 0; axis < own_batch; ++axis) to.push_back(axis + batch - own_batch);
    if (kept == 0) return whole(rank);
    to.push_back(first ? result_axis : kWhole);
    to.push_back(first ? kWhole : result_axis);
    return to;
  };
  if (batch < 0) return std::nullopt;
  NodeAxes axes;
  axes.operands.push_back({a, map(site.rank(a), rows, batch, true)});
  axes.operands.push_back({b, map(site.rank(b), columns, batch + rows, false)});
  return axes;
}

// addmm, baddbmm: a matrix that is added to a product.
Axes added_product(const Site& site) {
  const int added = site.tensor(0, "self"),
            a = site.tensor(1, "mat1") >= 0 ? site.tensor(1, "mat1") : site.tensor(1, "batch1");
  const int b = site.tensor(2, "mat2") >= 0 ? site.tensor(2, "mat2") : site.tensor(2, "batch2");
  const int rank = site.result_rank();
  if (added < 0 || a < 0 || b < 0 || rank < 2 || site.rank(a) != rank || site.rank(b) != rank) return std::nullopt;
  if (site.rank(added) > rank) return std::nullopt;
  auto left = aligned(rank, rank), right = left;
  left[static_cast<size_t>(rank - 1)] = kWhole;
  right[static_cast<size_t>(rank - 2)] = kWhole;
  NodeAxes axes;
  axes.operands = {{added, aligned(site.rank(added), rank)}, {a, left}, {b, right}};
  return axes;
}

// `bij,jk->bik`: an index of the results is the same place in every operand that has it.
Axes einsum(const Site& site) {
  auto* text = site.node().args.empty() ? nullptr : std::get_if<std::string>(&site.node().args[0].data);
  const auto arrow = text ? text->find("->") : std::string::npos;
  if (arrow == std::string::npos || text->find('.') != std::string::npos) return std::nullopt;
  std::string terms = text->substr(0, arrow) + ",", results = text->substr(arrow + 2);
  for (auto* part : {&terms, &results}) part->erase(std::remove(part->begin(), part->end(), ' '), part->end());
  NodeAxes axes;
  for (int id : operands(site.node())) {
    const std::string term = terms.substr(0, terms.find(','));
    if (static_cast<int>(term.size()) != site.rank(id)) return std::nullopt;
    std::vector<int> to;
    for (char index : term) {
      const auto place = results.find(index);
      to.push_back(place == std::string::npos || term.find(index) != term.rfind(index) ? kWhole
                                                                                       : static_cast<int>(place));
    }
    axes.operands.push_back({id, to});
    terms.erase(0, term.size() + 1);
  }
  return terms.empty() ? Axes(axes) : std::nullopt;
}

Axes linear(const Site& site) {
  const int id = site.tensor(0, "input");
  return id < 0 ? std::nullopt : one(id, leading(site.rank(id), site.rank(id) - 1));
}

// With a batch axis: without it, the first axis is that of channels, which are summed.
Axes convolution(const Site& site) {
  const int id = site.tensor(0, "input"), weight = site.tensor(1, "weight");
  if (id < 0 || weight < 0 || site.rank(id) != site.rank(weight)) return std::nullopt;
  return one(id, leading(site.rank(id), 1));
}

// Heads and batches apart; along the others, only with a mask that has them all.
Axes attention(const Site& site) {
  const int query = site.tensor(0, "query"), key = site.tensor(1, "key"), value = site.tensor(2, "value");
  const int mask = site.tensor(3, "attn_mask"), rank = site.result_rank();
  if (query < 0 || key < 0 || value < 0 || number_of(argument_of(site.node(), 4, "dropout_p")).value_or(0) != 0)
    return std::nullopt;
  const int apart = site.flag(7, "enable_gqa", false) ? std::min(1, rank - 2) : rank - 2;
  NodeAxes axes;
  for (int id : {query, key, value}) {
    if (site.rank(id) != rank) return std::nullopt;
    axes.operands.push_back({id, leading(rank, apart)});
  }
  if (mask < 0) return axes;
  if (site.rank(mask) > rank) return std::nullopt;
  auto to = aligned(site.rank(mask), rank);
  for (int& axis : to) axis = axis < apart ? axis : kWhole;
  axes.operands.push_back({mask, to});
  return axes;
}

// ---- norms, pooling, resizing

Axes layer_norm(const Site& site) {
  const int id = site.tensor(0, "input");
  const auto normalised = static_cast<int>(integers_of(argument_of(site.node(), 1, "normalized_shape")).size());
  if (id < 0 || normalised == 0) return std::nullopt;
  return one(id, leading(site.rank(id), site.rank(id) - normalised));
}

// The batch axis is the first.
template <int Rank>
Axes by_batch(const Site& site) {
  const int id = site.tensor(0, "self") >= 0 ? site.tensor(0, "self") : site.tensor(0, "input");
  if (id < 0 || (Rank > 0 && site.rank(id) != Rank)) return std::nullopt;
  return one(id, leading(site.rank(id), 1));
}

// Statistics of each instance; kept ones would be a state.
Axes instance_norm(const Site& site) {
  const bool keeps_none = site.is_absent(3, "running_mean") && site.is_absent(4, "running_var");
  return keeps_none && site.flag(5, "use_input_stats", false) ? by_batch<0>(site) : std::nullopt;
}

Axes batch_norm(const Site& site) { return site.flag(5, "training", true) ? std::nullopt : by_batch<0>(site); }

// Pairs of margins, those of the last axis first.
Axes pad(const Site& site) {
  const int id = site.tensor(0, "self");
  const auto margins = integers_of(argument_of(site.node(), 1, "pad"));
  if (id < 0 || margins.empty() || margins.size() % 2 != 0) return std::nullopt;
  auto to = aligned(site.rank(id), site.rank(id));
  for (size_t pair = 0; pair < margins.size() / 2; ++pair) {
    if (pair >= to.size()) return std::nullopt;
    to[to.size() - 1 - pair] = kWhole;
  }
  return one(id, to);
}

// ---- selections

Axes embedding(const Site& site) {
  const int weight = site.tensor(0, "weight"), indices = site.tensor(1, "indices");
  if (weight < 0 || indices < 0) return std::nullopt;
  return one(indices, aligned(site.rank(indices), site.rank(indices)));
}

Axes index_select(const Site& site) { return along_second(site); }

// What is gathered lies at the place of its index along every axis but one.
Axes gather(const Site& site) {
  const int index = site.tensor(2, "index");
  auto axes = along_second(site);
  if (!axes || index < 0 || site.rank(index) != site.result_rank()) return std::nullopt;
  axes->operands.push_back({index, axes->operands[0].to});
  return axes;
}

// ---- what moves axes

Axes permute(const Site& site) {
  const int id = site.tensor(0, "self"), rank = site.result_rank();
  const auto order = integers_of(argument_of(site.node(), 1, "dims"));
  if (id < 0 || static_cast<int>(order.size()) != rank || site.rank(id) != rank) return std::nullopt;
  auto to = whole(rank);
  for (int place = 0; place < rank; ++place) {
    auto axis = from_front(order[static_cast<size_t>(place)], rank);
    if (!axis) return std::nullopt;
    to[static_cast<size_t>(*axis)] = place;
  }
  return one(id, to);
}

Axes swapped(const Site& site, std::optional<int64_t> first, std::optional<int64_t> second) {
  const int id = site.tensor(0, "self");
  if (id < 0) return std::nullopt;
  auto a = from_front(first, site.rank(id)), b = from_front(second, site.rank(id));
  if (!a || !b) return std::nullopt;
  auto to = aligned(site.rank(id), site.rank(id));
  std::swap(to[static_cast<size_t>(*a)], to[static_cast<size_t>(*b)]);
  return one(id, to);
}
Axes transpose(const Site& site) { return swapped(site, site.integer(1, "dim0"), site.integer(2, "dim1")); }
Axes transpose_matrix(const Site& site) {
  const int id = site.tensor(0, "self");
  return id >= 0 && site.rank(id) == 2 ? swapped(site, 0, 1) : std::nullopt;
}

Axes unsqueeze(const Site& site) {
  const int id = site.tensor(0, "self"), rank = site.result_rank();
  auto added = from_front(site.integer(1, "dim"), rank);
  if (id < 0 || !added || site.rank(id) + 1 != rank) return std::nullopt;
  std::vector<int> to;
  for (int axis = 0; axis < site.rank(id); ++axis) to.push_back(axis < *added ? axis : axis + 1);
  return one(id, to);
}

// Axes of more than one element stay; without a list of axes, a slice of one element would lose more.
Axes squeeze(const Site& site) {
  const int id = site.tensor(0, "self");
  auto listed = integers_of(argument_of(site.node(), 1, "dim"));
  if (id < 0 || listed.empty()) return std::nullopt;
  auto to = aligned(site.rank(id), site.rank(id));
  std::vector<bool> gone(to.size());
  for (int64_t each : listed) {
    auto axis = from_front(each, site.rank(id));
    if (!axis || site.value(id).shape[static_cast<size_t>(*axis)] != 1) return std::nullopt;
    gone[static_cast<size_t>(*axis)] = true;
  }
  int next = 0;
  for (size_t axis = 0; axis < to.size(); ++axis) to[axis] = gone[axis] ? kWhole : next++;
  return one(id, to);
}

// One place, or each alone, of an axis that an argument names, the first if none does: the results lack it.
Axes takes_axis(const Site& site, std::optional<int64_t> dim) {
  const int id = site.tensor(0, "self");
  auto taken = from_front(dim, id < 0 ? 0 : site.rank(id));
  if (!taken || site.result_rank() != site.rank(id) - 1) return std::nullopt;
  std::vector<int> to;
  for (int axis = 0; axis < site.rank(id); ++axis)
    to.push_back(axis == *taken ? kWhole : axis < *taken ? axis : axis - 1);
  return one(id, to);
}
Axes select(const Site& site) { return takes_axis(site, site.integer(1, "dim")); }
Axes unbind(const Site& site) { return takes_axis(site, site.integer(1, "dim", 0)); }

// Parts along an axis, the first if none is named.
Axes parts_along(const Site& site, std::optional<int64_t> dim) {
  const int id = site.tensor(0, "self");
  auto axis = from_front(dim, id < 0 ? 0 : site.rank(id));
  if (!axis || site.result_rank() != site.rank(id)) return std::nullopt;
  auto to = aligned(site.rank(id), site.rank(id));
  to[static_cast<size_t>(*axis)] = kWhole;
  return one(id, to);
}
Axes narrow(const Site& site) { return parts_along(site, site.integer(1, "dim")); }
Axes split(const Site& site) { return parts_along(site, site.integer(2, "dim", 0)); }

// `x[:, a:b]` has a slice of every axis, mostly all of it.
Axes slice(const Site& site) {
  constexpr int64_t kAll = INT64_MAX;
  const int id = site.tensor(0, "self");
  if (id >= 0 && site.integer(2, "start", 0) == 0 && site.integer(3, "end", kAll) == kAll &&
      site.integer(4, "step", 1) == 1)
    return by_element(site);
  return parts_along(site, site.integer(1, "dim", 0));
}

Axes joins(const Site& site, bool adds_axis) {
  const int rank = site.result_rank();
  auto* list = site.node().args.empty() ? nullptr : std::get_if<GraphList>(&site.node().args[0].data);
  auto joined = from_front(site.integer(1, "dim", 0), rank);
  if (!list || !joined) return std::nullopt;
  NodeAxes axes;
  for (auto& item : *list) {
    const int* id = item.value_id();
    if (!id || site.rank(*id) != (adds_axis ? rank - 1 : rank)) return std::nullopt;
    std::vector<int> to;
    for (int axis = 0; axis < site.rank(*id); ++axis) to.push_back(adds_axis && axis >= *joined ? axis + 1 : axis);
    if (!adds_axis) to[static_cast<size_t>(*joined)] = kWhole;
    axes.operands.push_back({*id, to});
  }
  return axes;
}
Axes cat(const Site& site) { return joins(site, false); }
Axes stack(const Site& site) { return joins(site, true); }

Axes reshapes(const Site& site, std::string_view sizes) {
  const int id = site.tensor(0, "self");
  if (id < 0) return std::nullopt;
  NodeAxes axes;
  axes.operands.push_back({id, {}});
  axes.reshapes = true;
  axes.sizes = sizes;
  axes.sizes_position = 1;
  return axes;
}
Axes view(const Site& site) {
  if (site.node().overload == "dtype") return std::nullopt;
  return reshapes(site, site.is_absent(1, "size") ? "shape" : "size");
}
Axes flatten(const Site& site) { return reshapes(site, {}); }

Axes expand(const Site& site) {
  auto axes = by_element(site);
  if (!axes) return std::nullopt;
  axes->sizes = "size";
  axes->sizes_position = 1;
  axes->repeats = true;
  return axes;
}

// Values that depend on no place (zeros, full), or on one that is counted from the first (arange).
Axes filled(const Site&) {
  NodeAxes axes;
  axes.sizes = "size";
  axes.repeats = true;
  return axes;
}
Axes counted(const Site&) { return NodeAxes{}; }

struct Row {
  std::string_view names;  // of operators, apart by blanks; those that write in place are meant too
  Axes (*axes)(const Site&);
  bool fresh;  // never a view of an operand, nor the operand
};

// clang-format off
constexpr Row kRows[] = {
  // Element by element, with broadcasting.
  {"add sub rsub mul div pow maximum minimum fmod remainder atan2 floor_divide true_divide copysign hypot", by_element, true},
  {"eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor", by_element, true},
  {"abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sign floor ceil round trunc frac", by_element, true},
  {"sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv sigmoid logit", by_element, true},
  {"relu relu6 leaky_relu elu selu celu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish hardshrink", by_element, true},
  {"softshrink tanhshrink log_sigmoid threshold clamp clamp_min clamp_max nan_to_num", by_element, true},
  {"masked_fill lerp addcmul addcdiv isnan isinf isfinite", by_element, true},
  {"where", chosen_by_element, true},
  {"zeros_like ones_like full_like clone", by_element, true},
  {"to _to_copy contiguous alias detach type_as expand_as lift_fresh_copy", by_element, false},
  {"dropout feature_dropout", inactive_dropout, false},
  // Along axes that an argument names.
  {"sum mean amax amin std var all any logsumexp prod argmax argmin max min count_nonzero", combines_second, true},
  {"linalg_vector_norm norm", combines_third, true},
  {"softmax log_softmax _softmax _log_softmax cumsum cumprod logcumsumexp cummax cummin sort argsort glu", along_second, true},
  {"flip", combines_listed, true},
  {"topk", along_third, true},
  {"tril triu", all_but_last_two, true},
  // Products.
  {"matmul bmm mm mv", matmul, true},
  {"addmm baddbmm", added_product, true},
  {"linear", linear, true},
  {"einsum", einsum, true},
  {"conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution", convolution, true},
  {"scaled_dot_product_attention", attention, true},
  // Norms, pooling, resizing.
  {"layer_norm rms_norm", layer_norm, true},
  {"group_norm prelu", by_batch<0>, true},
  {"instance_norm", instance_norm, true},
  {"batch_norm", batch_norm, true},
  {"max_pool1d avg_pool1d adaptive_avg_pool1d", by_batch<3>, true},
  {"max_pool2d avg_pool2d adaptive_avg_pool2d upsample_nearest2d upsample_bilinear2d upsample_bicubic2d", by_batch<4>, true},
  {"max_pool3d avg_pool3d adaptive_avg_pool3d upsample_nearest3d upsample_trilinear3d", by_batch<5>, true},
  {"pixel_shuffle pixel_unshuffle", by_batch<4>, true},
  {"constant_pad_nd pad", pad, false},
  // Selections.
  {"embedding", embedding, true},
  {"index_select", index_select, true},
  {"gather", gather, true},
  // What moves axes.
  {"permute", permute, false},
  {"transpose swapaxes", transpose, false},
  {"t", transpose_matrix, false},
  {"unsqueeze", unsqueeze, false},
  {"squeeze", squeeze, false},
  {"select", select, false},
  {"unbind", unbind, false},
  {"slice", slice, false},
  {"narrow", narrow, false},
  {"split split_with_sizes chunk", split, false},
  {"cat concat", cat, true},
  {"stack", stack, true},
  {"view reshape _unsafe_view", view, false},
  {"flatten", flatten, false},
  {"expand", expand, false},
  // Without operands.
  {"zeros ones full", filled, true},
  {"arange eye linspace scalar_tensor", counted, true},
};
// clang-format on

const Row* row_of(const GraphNode& node) {
  static const auto table = [] {
    std::unordered_map<std::string, const Row*> rows;
    for (auto& row : kRows) {
      std::string_view rest = row.names;
      while (!rest.empty()) {
        const size_t end = std::min(rest.find(' '), rest.size());
        rows.emplace("aten::" + std::string(rest.substr(0, end)), &row);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    return rows;
  }();
  std::string name = node.op;
  if (is_in_place(node)) name.pop_back();
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

std::optional<NodeAxes> axes_of(const GraphUses& uses, const GraphNode& node) {
  const std::string_view overload = node.overload;
  const bool writes_out = overload.size() >= 3 && overload.substr(overload.size() - 3) == "out";
  const Row* row = row_of(node);
  return row && !writes_out ? row->axes(Site(uses, node)) : std::nullopt;
}

bool makes_fresh_memory(const GraphNode& node) {
  const Row* row = row_of(node);
  return row && row->fresh;
}

}  // namespace tilepilot::eval
