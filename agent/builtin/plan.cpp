#include "agent/builtin/plan.h"

#include <algorithm>

#include "agent/builtin/gpu_tiles.h"
#include "agent/builtin/import/constants.h"
#include "agent/builtin/import/simplify.h"
#include "agent/builtin/writer/names.h"

namespace tilepilot::agent::builtin {

namespace {

constexpr int64_t kUsualBytes = 4;  // of an element

int64_t elements(const PrimitiveGraph& graph, const Group& group) {
  int64_t most = 0;
  for (int id : group.members) {
    most = std::max(most, numel(graph.at(id).shape));
    for (int arg : graph.at(id).args) most = std::max(most, numel(graph.at(arg).shape));
  }
  return most;
}

// Each takes PyTorch about as long as a launch does, however few elements it has.
constexpr size_t kManyOperators = 8;

size_t operators(const PrimitiveGraph& graph, const Group& group) {
  std::set<int> nodes;
  for (int id : group.members)
    if (graph.at(id).kind != Primitive::Kind::view) nodes.insert(graph.at(id).origin);
  return nodes.size();
}

// Only copies of products (PlanOptions::lone_products): as a kernel of its own, without the product, it does nothing.
bool only_copies_products(const PrimitiveGraph& graph, const Group& group) {
  return std::all_of(group.members.begin(), group.members.end(),
                     [&](int id) { return graph.at(id).kind == Primitive::Kind::view || graph.copies_product(id); });
}

// Nothing but a bias and a copy follow the product.
bool is_bare(const PrimitiveGraph& graph, const Group& group) {
  int additions = 0;
  return std::all_of(group.members.begin(), group.members.end(), [&](int id) {
    const Primitive& p = graph.at(id);
    if (p.kind == Primitive::Kind::view) return true;
    return p.kind == Primitive::Kind::map && (p.op == ScalarOp::cast || (p.op == ScalarOp::add && ++additions == 1));
  });
}

// A bias that nothing follows is cheaper inside the product: the nodes of such products.
std::set<int> lone_biases(const PrimitiveGraph& graph, const Group& group, const PlanOptions& options) {
  std::set<int> products;
  for (int id : group.members) {
    const Primitive& p = graph.at(id);
    if (p.kind == Primitive::Kind::view) continue;
    if (p.kind != Primitive::Kind::map || p.op != ScalarOp::add) return {};
    for (int arg : p.args)
      if (!group.axes.leaves.count(arg)) return {};
    const Primitive& product = graph.at(group.axes.leaves.at(p.args[0]).base);
    const Primitive& bias = graph.at(group.axes.leaves.at(p.args[1]).base);
    if (product.kind != Primitive::Kind::product || bias.kind != Primitive::Kind::source || bias.shape.size() != 1)
      return {};
    const bool in_kernels = options.bias_only || (options.float32_products && product.dtype == "float32");
    if (in_kernels && graph.at(product.args[0]).shape.back() <= options.deepest_product) return {};
    products.insert(product.origin);
  }
  return products;
}

class Planner {
 public:
  Planner(const eval::Reference& reference, const PlanOptions& options) : reference_(reference), options_(options) {}

  Result<Plan> run() {
    std::set<int> calls = options_.calls, lerps, apart, tried;
    for (;;) {
      plan_ = {};
      plan_.constants = read_constants(reference_);
      using Lone = ImportOptions::Lone;
      const Lone lone = options_.lone_products ? Lone::all : options_.float32_products ? Lone::float32 : Lone::none;
      ImportOptions import{calls, lerps, lone, plan_.constants, reference_.model_source};
      plan_.graph = simplify(TRY(import_graph(reference_.forward, import)));
      Grouping grouping = group_primitives(plan_.graph, apart);
      const size_t before = calls.size(), lerps_before = lerps.size();
      for (auto& group : grouping.groups) calls.merge(lone_biases(plan_.graph, group, options_));
      if (calls.size() > before) continue;
      write_kernels(grouping);
      if (leave_in_vain(apart) || set_apart(apart, tried)) continue;
      lerps.merge(left_updates());
      if (lerps.size() > lerps_before) continue;
      calls.merge(left_whole());
      if (calls.size() == before) return std::move(plan_);
    }
  }

 private:
  const eval::Reference& reference_;
  const PlanOptions& options_;
  Plan plan_;

  // Products of float32 whose kernel does more than they take at their head: a kernel of their own may be worth it.
  // True: there are some that were not tried.
  bool set_apart(std::set<int>& apart, std::set<int>& tried) const {
    const size_t before = tried.size();
    if (!options_.float32_products) return false;
    for (size_t id = 0; id < plan_.graph.nodes.size(); ++id) {
      const int origin = plan_.graph.nodes[id].origin, product = product_behind(plan_.graph, static_cast<int>(id));
      if (plan_.kernel_of[id] < 0 || product < 0) continue;
      if (plan_.graph.at(product).dtype != "float32" || plan_.kernel_of[static_cast<size_t>(product)] >= 0) continue;
      if (is_too_exact(product)) continue;
      if (tried.insert(origin).second) apart.insert(origin);
    }
    return tried.size() > before;
  }

  // True: some products apart have no kernel.
  bool leave_in_vain(std::set<int>& apart) const {
    const size_t before = apart.size();
    for (size_t id = 0; id < plan_.graph.nodes.size(); ++id)
      if (plan_.graph.nodes[id].kind == Primitive::Kind::product && plan_.kernel_of[id] < 0)
        apart.erase(plan_.graph.nodes[id].origin);
    return apart.size() < before;
  }

  // Nodes that are several operators here and of which no kernel computes any: PyTorch has one for each.
  std::set<int> left_whole() const {
    std::map<int, int> outside;
    std::set<int> inside;
    for (size_t id = 0; id < plan_.graph.nodes.size(); ++id) {
      const Primitive& p = plan_.graph.nodes[id];
      const bool computes = p.kind == Primitive::Kind::map || p.kind == Primitive::Kind::reduce ||
                            p.kind == Primitive::Kind::gather || p.kind == Primitive::Kind::product;
      if (!computes || p.origin < 0) continue;
      if (plan_.kernel_of[id] >= 0)
        inside.insert(p.origin);
      else
        ++outside[p.origin];
    }
    std::set<int> nodes;
    for (auto& [node, count] : outside)
      if (count > 1 && inside.count(node) == 0) nodes.insert(node);
    return nodes;
  }

  // Nodes whose running statistics no kernel writes: PyTorch has one operator for that.
  std::set<int> left_updates() const {
    std::set<int> nodes;
    for (size_t id = 0; id < plan_.graph.nodes.size(); ++id) {
      const Primitive& p = plan_.graph.nodes[id];
      if (p.kind == Primitive::Kind::update && p.number == 1 && plan_.kernel_of[id] < 0) nodes.insert(p.origin);
    }
    return nodes;
  }

  void write_kernels(Grouping& grouping) {
    plan_.kernel_of.assign(plan_.graph.nodes.size(), -1);
    for (auto& group : grouping.groups)
      if (elements(plan_.graph, group) >= options_.smallest_kernel || operators(plan_.graph, group) >= kManyOperators)
        write_one(group);
  }

  // The result must lie in memory as eager's does.
  bool keeps_layout(const Group& group) const {
    return std::all_of(group.outputs.begin(), group.outputs.end(), [&](int id) {
      const auto& values = plan_.graph.value_of;
      for (size_t value = 0; value < values.size(); ++value) {
        if (values[value] != id || !std::count(plan_.graph.outputs.begin(), plan_.graph.outputs.end(), id)) continue;
        auto& meta = reference_.forward.values[value];
        if (!is_contiguous(meta.shape, meta.strides)) return false;
      }
      return true;
    });
  }

  // True if the value was made for this group alone and lies in memory as the group reads it.
  bool dies_in(int base, const Group& group) const {
    const Primitive& p = plan_.graph.at(base);
    bool fresh = p.kind == Primitive::Kind::product || (p.kind == Primitive::Kind::call && makes_new_tensor(p));
    if (!fresh || !(p.strides.empty() || is_contiguous(p.shape, p.strides))) return false;
    std::vector<int> open = {base};
    while (!open.empty()) {
      int id = open.back();
      open.pop_back();
      if (std::count(plan_.graph.outputs.begin(), plan_.graph.outputs.end(), id)) return false;
      for (size_t user = 0; user < plan_.graph.nodes.size(); ++user) {
        auto& args = plan_.graph.nodes[user].args;
        if (!std::count(args.begin(), args.end(), id)) continue;
        if (std::count(group.members.begin(), group.members.end(), static_cast<int>(user))) continue;
        if (plan_.graph.nodes[user].kind != Primitive::Kind::view) return false;
        open.push_back(static_cast<int>(user));
      }
    }
    return true;
  }

  // Calls whose results share no memory with their operands.
  bool makes_new_tensor(const Primitive& call) const {
    static const std::set<std::string> names = {"aten::linear",          "aten::matmul", "aten::bmm",
                                                "aten::addmm",           "aten::conv1d", "aten::conv2d",
                                                "aten::conv3d",          "aten::cat",    "aten::conv_transpose2d",
                                                "aten::conv_transpose3d"};
    return !call.effect && names.count(reference_.forward.nodes[static_cast<size_t>(call.origin)].op) > 0;
  }

  void write_one(Group& group) {
    if (!keeps_layout(group)) return;
    TensorFacts facts;
    facts.name = [&](int base) { return tensor_name(reference_, plan_.graph, base); };
    facts.dies_here = [&](int base) { return dies_in(base, group); };
    facts.home = [&](int value) {
      for (int id : group.updates)
        if (plan_.graph.at(id).args[1] == value) return plan_.graph.at(id).args[0];
      return -1;
    };
    int product = -1;
    auto text = with_product(group, facts, product);
    if (!text && (only_copies_products(plan_.graph, group) || !lone_biases(plan_.graph, group, {}).empty())) return;
    if (!text) {
      TilePlan tiles = plan_tiles(plan_.graph, group, options_.tiles);
      const int64_t bytes = kUsualBytes * elements(plan_.graph, group);
      if (options_.tiles.gpu && has_too_few_blocks(tiles, bytes, *options_.tiles.gpu)) return;
      text = write_kernel({plan_.graph, group, tiles, facts});
    }
    if (!text) return;
    std::string name = kernel_name(reference_, plan_.graph, group);
    if (product >= 0) {
      group.members.push_back(product);
      plan_.has_products = true;
      name = "matmul_" + name;
    }
    for (int id : group.members)
      if (plan_.graph.at(id).kind != Primitive::Kind::view)
        plan_.kernel_of[static_cast<size_t>(id)] = static_cast<int>(plan_.kernels.size());
    for (int id : group.updates) plan_.kernel_of[static_cast<size_t>(id)] = static_cast<int>(plan_.kernels.size());
    plan_.kernels.push_back({std::move(group), std::move(*text), std::move(name)});
  }

  // Short sums of float32 are exact to the last bits in PyTorch, and less so by 3xTF32. What is reduced next, as by
  // softmax, may show that.
  bool is_too_exact(int product) const {
    constexpr int64_t kShort = 256;
    const bool in_parts = options_.tiles.gpu && plan_.graph.at(product).dtype == "float32";
    return in_parts && product_depth(plan_.graph, product) < kShort;
  }

  std::optional<KernelText> with_product(const Group& group, const TensorFacts& facts, int& product) {
    int candidate = fusable_product(plan_.graph, group, facts);
    if (candidate < 0) return std::nullopt;
    int64_t depth = product_depth(plan_.graph, candidate);
    if (group.has_reduction() && is_too_exact(candidate)) return std::nullopt;
    auto tiles = product_loops(plan_.graph, group, candidate);
    if (!tiles) return std::nullopt;
    std::optional<ProductTiles> sizes = options_.product_tiles;
    if (options_.tiles.gpu)
      sizes = gpu_product_tiles(plan_.graph, *tiles, candidate, *options_.tiles.gpu, options_.tiles.choice);
    const bool bare = is_bare(plan_.graph, group), float32 = plan_.graph.at(candidate).dtype == "float32";
    const bool must_gain = options_.float32_products && !options_.bias_only && bare;
    if (must_gain && !multiplies_faster(plan_.graph, *tiles, candidate, *options_.tiles.gpu)) return std::nullopt;
    // Of 16 bits nothing but the result's way to memory is left there, which PyTorch's library has overlapped.
    constexpr int64_t kOneStep = 64;
    if (options_.tiles.gpu && bare && !float32 && depth <= kOneStep) return std::nullopt;
    if (!sizes || !set_product_tiles(*tiles, *sizes)) return std::nullopt;
    auto text = write_kernel({plan_.graph, group, *tiles, facts, candidate, *sizes});
    if (!text) return std::nullopt;
    if (depth > options_.deepest_product) {
      bool shallower = plan_.shallowest_product == 0 || depth < plan_.shallowest_product;
      if (shallower) plan_.shallowest_product = depth;
      return std::nullopt;
    }
    product = candidate;
    return text;
  }
};

}  // namespace

Result<Plan> make_plan(const eval::Reference& reference, const PlanOptions& options) {
  return Planner(reference, options).run();
}

}  // namespace tilepilot::agent::builtin
