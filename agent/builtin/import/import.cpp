#include "agent/builtin/import/import.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/generate/model_line.h"
#include "eval/graph/graph_uses.h"

namespace tilepilot::agent::builtin {

namespace {

const HandlerTable& handlers() {
  static const HandlerTable table = [] {
    HandlerTable all;
    add_elementwise(all);
    add_activations(all);
    add_views(all);
    add_reductions(all);
    add_norms(all);
    add_products(all);
    add_losses(all);
    return all;
  }();
  return table;
}

bool draws_random_numbers(const std::string& op) {
  static const std::set<std::string> names = {
      "aten::dropout",        "aten::alpha_dropout", "aten::feature_dropout", "aten::bernoulli",
      "aten::rand",           "aten::randn",         "aten::rand_like",       "aten::randn_like",
      "aten::randint",        "aten::randperm",      "aten::multinomial",     "aten::normal",
      "aten::native_dropout", "aten::rrelu",         "aten::randint_like",    "aten::scaled_dot_product_attention"};
  return names.count(op) > 0;
}

// "aten::relu_" changes its first argument; "aten::__and__" does not.
bool is_in_place(const std::string& op) { return op.back() == '_' && op.find("__") == std::string::npos; }

std::string functional_name(const std::string& op) { return op.substr(0, op.size() - 1); }

constexpr std::string_view kSeenAsView = "changes in place a tensor that is also seen through a view";

void collect_values(const eval::GraphArgument& argument, std::vector<int>& ids) {
  eval::for_each_value(argument, [&](int id) { ids.push_back(id); });
}

bool is_complex(const eval::GraphValue& value) { return value.dtype.starts_with("complex"); }
bool is_empty(const eval::GraphValue& value) { return value.is_tensor && value.numel() == 0; }

class Import {
 public:
  Import(const eval::Graph& graph, const ImportOptions& options)
      : graph_(graph), uses_(graph), options_(options), builder_(primitives_) {
    primitives_.value_of.assign(graph.values.size(), -1);
  }

  Result<PrimitiveGraph> run() {
    add_sources();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      builder_.set_origin(static_cast<int>(i));
      TRY(import_node(static_cast<int>(i)));
    }
    std::vector<int> outputs;
    collect_values(graph_.outputs, outputs);
    for (int id : outputs) primitives_.outputs.push_back(returned(id));
    primitives_.drop_dead();
    return std::move(primitives_);
  }

 private:
  const eval::Graph& graph_;
  eval::GraphUses uses_;
  const ImportOptions& options_;
  PrimitiveGraph primitives_;
  PrimitiveBuilder builder_;
  int last_effect_ = -1;

  int& primitive_of(int value) { return primitives_.value_of[static_cast<size_t>(value)]; }

  int add_source(int id) {
    const eval::GraphValue& value = graph_.values[static_cast<size_t>(id)];
    return builder_.add({.kind = Primitive::Kind::source,
                         .value = id,
                         .shape = value.shape,
                         .strides = value.strides,
                         .dtype = value.dtype,
                         .hint = value.name});
  }

  // A constant tensor of one element is a number.
  int source_or_number(int id) {
    auto found = options_.constants.find(id);
    if (found == options_.constants.end() || found->second.size() != 1) return add_source(id);
    const eval::GraphValue& value = graph_.values[static_cast<size_t>(id)];
    return builder_.expand(builder_.constant(found->second[0], value.dtype), value.shape);
  }

  void add_sources() {
    for (size_t id = 0; id < graph_.values.size(); ++id)
      if (graph_.values[id].kind != eval::GraphValue::Kind::node)
        primitive_of(static_cast<int>(id)) = source_or_number(static_cast<int>(id));
  }

  Status import_node(int index) {
    const eval::GraphNode& node = graph_.nodes[static_cast<size_t>(index)];
    if (is_in_place(node.op)) return import_in_place(index);
    bool forced = options_.calls.count(index) > 0 || draws_random_numbers(node.op);
    // Dropout that does nothing is an identity, not a draw.
    if (node.op == "aten::dropout" || node.op == "aten::feature_dropout") forced = options_.calls.count(index) > 0;
    forced = forced || touches(node, is_complex) || touches(node, is_empty);  // kernels know neither
    const std::vector<int> buffers = changed_buffers(node);
    for (int buffer : buffers) TRY(check_change(index, node, buffer));
    std::vector<int> results;
    if (!forced) results = handle(index, node);
    if (!results.empty()) {
      bind(node, results);
      return {};
    }
    const auto call = static_cast<int>(primitives_.nodes.size());
    TRY(add_call(index));
    for (int buffer : buffers) {
      primitives_.nodes[static_cast<size_t>(call)].effect = true;
      order_update(index, buffer, call);
    }
    return {};
  }

  // What the operator changes although it is none that works in place: running statistics.
  std::vector<int> changed_buffers(const eval::GraphNode& node) {
    constexpr size_t kMean = 3, kVariance = 4, kTraining = 5;
    std::vector<int> buffers;
    const bool is_norm = node.op == "aten::batch_norm" || node.op == "aten::instance_norm";
    if (!is_norm || node.args.size() <= kTraining) return buffers;
    auto* training = std::get_if<bool>(&node.args[kTraining].data);
    for (size_t position : {kMean, kVariance})
      if (const int* id = node.args[position].value_id(); id && training && *training && primitive_of(*id) >= 0)
        buffers.push_back(primitive_of(*id));
    return buffers;
  }

  int copied(int id, std::string hint) {
    Primitive copy = primitives_.at(id);
    return builder_.add({.kind = Primitive::Kind::map,
                         .op = ScalarOp::cast,
                         .args = {id},
                         .shape = std::move(copy.shape),
                         .dtype = std::move(copy.dtype),
                         .hint = std::move(hint)});
  }

  // What is equal to an input or a weight, but not its memory, is not either where it is returned.
  int returned(int value) {
    const int id = primitive_of(value);
    if (id < 0) return id;
    const int behind = primitives_.behind_views(id);
    if (primitives_.at(behind).kind != Primitive::Kind::source) return id;
    return uses_.storage(value) == uses_.storage(primitives_.at(behind).value) ? id : copied(id, "");
  }

  // What has the buffer's memory through another primitive would miss the change, and what is a copy of it would not.
  Status check_change(int index, const eval::GraphNode& node, int buffer) {
    if (primitives_.at(buffer).kind != Primitive::Kind::source) return unsupported(node, kSeenAsView);
    const int memory = uses_.storage(primitives_.at(buffer).value);
    if (is_read_later(index, [&](int id) { return uses_.storage(id) == memory && primitive_of(id) != buffer; }))
      return unsupported(node, kSeenAsView);
    keep_copy(index, buffer, memory);
    return {};
  }

  // Copies of what is about to change, and what is equal to it, were read where it stands.
  void keep_copy(int index, int changed, int memory) {
    const auto is_copy = [&](int id) { return uses_.storage(id) != memory && primitive_of(id) == changed; };
    if (!is_read_later(index, is_copy)) return;
    const int copy = copied(changed, "before");
    for (int id = 0; id < static_cast<int>(graph_.values.size()); ++id)
      if (is_copy(id)) primitive_of(id) = copy;
  }

  // Whether such a value comes in or out.
  bool touches(const eval::GraphNode& node, bool (*wanted)(const eval::GraphValue&)) const {
    std::vector<int> ids = node.outputs;
    for (auto& argument : node.args) collect_values(argument, ids);
    return std::any_of(ids.begin(), ids.end(),
                       [&](int id) { return id >= 0 && wanted(graph_.values[static_cast<size_t>(id)]); });
  }

  // `node`: that of `index`, or its form that does not work in place.
  std::vector<int> handle(int index, const eval::GraphNode& node) {
    auto found = handlers().find(node.op);
    if (found == handlers().end() || !all_tensors_known(node)) return {};
    NodeImport view(graph_, node, primitives_, builder_, options_.lerps.count(index) > 0);
    const size_t before = primitives_.nodes.size();
    std::vector<int> results = found->second(view);
    for (size_t id = before; id < primitives_.nodes.size(); ++id)
      if (primitives_.nodes[id].kind == Primitive::Kind::update)
        order_update(index, primitives_.nodes[id].args[0], static_cast<int>(id));
    return results;
  }

  // Unlike other effects an update has a place among those only that read or change the same buffer: kernels that do it
  // stand where their results are wanted.
  void order_update(int index, int changed, int update) {
    const int memory = uses_.storage(primitives_.at(changed).value);
    order_readers(changed, update);
    if (!is_read_later(index, [&](int id) { return primitive_of(id) == changed; })) return;
    const int fresh = add_source(primitives_.at(changed).value);
    primitives_.order.emplace_back(update, fresh);
    rebind(changed, memory, fresh);
  }

  // Those so far of what `effect` changes, as it is or through views, come before it.
  void order_readers(int changed, int effect) {
    std::set<int> seen = {changed};
    for (int id = 0; id < effect; ++id) {
      const Primitive& p = primitives_.at(id);
      if (std::none_of(p.args.begin(), p.args.end(), [&](int arg) { return seen.count(arg) > 0; })) continue;
      if (p.kind == Primitive::Kind::view)
        seen.insert(id);
      else
        primitives_.order.emplace_back(id, effect);
    }
  }

  bool all_tensors_known(const eval::GraphNode& node) {
    std::vector<int> ids;
    for (auto& arg : node.args) collect_values(arg, ids);
    return std::all_of(ids.begin(), ids.end(), [&](int id) { return primitive_of(id) >= 0; });
  }

  void bind(const eval::GraphNode& node, const std::vector<int>& results) {
    for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
      if (node.outputs[i] < 0) continue;
      const std::string& dtype = graph_.values[static_cast<size_t>(node.outputs[i])].dtype;
      primitive_of(node.outputs[i]) = results[i] < 0 ? -1 : finished(builder_.cast(results[i], dtype));
    }
  }

  int finished(int id) {
    Primitive copy = primitives_.at(id);
    using Lone = ImportOptions::Lone;
    const bool wanted =
        options_.lone_products == Lone::all || (options_.lone_products == Lone::float32 && copy.dtype == "float32");
    if (!wanted || copy.kind != Primitive::Kind::product) return id;
    copy.kind = Primitive::Kind::map;
    copy.op = ScalarOp::cast;
    copy.args = {id};
    return builder_.add(std::move(copy));
  }

  // An effect keeps its place among effects; what it changes is read before it by earlier nodes, after it by later
  // ones.
  void order_effect(int id) {
    if (last_effect_ >= 0) primitives_.order.emplace_back(last_effect_, id);
    last_effect_ = id;
  }

  Status import_in_place(int index) {
    const eval::GraphNode& node = graph_.nodes[static_cast<size_t>(index)];
    const int* target = node.args.empty() ? nullptr : node.args[0].value_id();
    if (!target) return unsupported(node, "changes no tensor that can be told");
    if (touches(node, is_complex)) return unsupported(node, "changes complex numbers in place");
    if (touches(node, is_empty)) return unsupported(node, "changes in place a tensor without elements");
    const int changed = primitive_of(*target), memory = uses_.storage(*target);
    const Primitive& what = primitives_.at(changed);
    const bool is_source = graph_.values[static_cast<size_t>(memory)].kind != eval::GraphValue::Kind::node;
    if (is_source && (what.kind != Primitive::Kind::source || uses_.storage(what.value) != memory))
      return unsupported(node, kSeenAsView);
    // What has the memory through another primitive would miss the change.
    if (is_read_later(index, [&](int id) { return uses_.storage(id) == memory && primitive_of(id) != changed; }))
      return unsupported(node, kSeenAsView);
    if (is_source) return add_effect_on_source(index, changed, memory);
    eval::GraphNode functional = node;
    functional.op = functional_name(node.op);
    std::vector<int> results = handle(index, functional);
    if (results.empty()) return unsupported(node, "works in place and has no form here that does not");
    bind(node, results);
    rebind(changed, memory, results[0]);
    primitive_of(*target) = results[0];
    return {};
  }

  // Values in this memory. Others may have the same primitive because they are equal.
  void rebind(int changed, int memory, int now) {
    for (size_t id = 0; id < primitives_.value_of.size(); ++id)
      if (primitives_.value_of[id] == changed && uses_.storage(static_cast<int>(id)) == memory)
        primitives_.value_of[id] = now;
  }

  // Whether a node after this one, or the model's result, has such a value that exists by now.
  template <class Wanted>
  bool is_read_later(int index, const Wanted& wanted) {
    for (int id = 0; id < static_cast<int>(graph_.values.size()); ++id) {
      if (primitive_of(id) < 0 || !wanted(id)) continue;
      const auto& users = uses_.users(id);
      if (uses_.is_output(id) || (!users.empty() && users.back() > index)) return true;
    }
    return false;
  }

  Error unsupported(const eval::GraphNode& node, std::string_view what) const {
    Span span = node.line > 0 ? model_line(options_.model_source, 0, node.line) : Span{};
    return make_error(DiagnosticKind::model_invalid, span,
                      fmt::format("`{}` {}, which the author `builtin` cannot follow", node.op, what),
                      "write the model without it, or let `--author llm` try");
  }

  // Later readers see a fresh source for the same storage, by whatever value they name it: the operator gives back what
  // it changed.
  Status add_effect_on_source(int index, int changed, int memory) {
    const int value = primitives_.at(changed).value;
    const eval::GraphNode& node = graph_.nodes[static_cast<size_t>(index)];
    if (graph_.values[static_cast<size_t>(value)].kind == eval::GraphValue::Kind::input)
      return unsupported(node, "changes an input of the model in place");
    keep_copy(index, changed, memory);
    TRY(add_call(index));
    int effect = static_cast<int>(primitives_.nodes.size()) - 1;
    primitives_.nodes.back().effect = true;
    order_effect(effect);
    order_readers(changed, effect);
    int fresh = add_source(value);
    primitives_.order.emplace_back(effect, fresh);
    rebind(changed, memory, fresh);
    for (int output : graph_.nodes[static_cast<size_t>(index)].outputs)
      if (output >= 0) primitive_of(output) = fresh;
    return {};
  }

  Status add_call(int index) {
    const eval::GraphNode& node = graph_.nodes[static_cast<size_t>(index)];
    std::vector<int> values, args;
    for (auto& arg : node.args) collect_values(arg, values);
    for (auto& [name, arg] : node.kwargs) collect_values(arg, values);
    for (int id : values) args.push_back(primitive_of(id));
    if (std::count(args.begin(), args.end(), -1)) return unsupported(node, "takes a value that is no tensor");
    int first = -1;
    for (size_t i = 0; i < std::max<size_t>(node.outputs.size(), 1); ++i) {
      Primitive call{
          .kind = Primitive::Kind::call, .output = static_cast<int>(i), .args = args, .hint = node.op.substr(6)};
      call.effect = i == 0 && draws_random_numbers(node.op);
      int value = i < node.outputs.size() ? node.outputs[i] : -1;
      if (value < 0 && (i > 0 || node.outputs.size() > 1)) continue;
      if (value >= 0) {
        const eval::GraphValue& result = graph_.values[static_cast<size_t>(value)];
        call.shape = result.shape;
        call.strides = result.strides;
        call.dtype = result.dtype;
      }
      int id = builder_.add(std::move(call));
      if (value >= 0) primitive_of(value) = id;
      if (first < 0) first = id;
    }
    if (first >= 0 && primitives_.at(first).effect) order_effect(first);
    return {};
  }
};

}  // namespace

Result<PrimitiveGraph> import_graph(const eval::Graph& graph, const ImportOptions& options) {
  return Import(graph, options).run();
}

bool NodeImport::has(size_t index) const {
  return index < node_.args.size() && !std::holds_alternative<std::monostate>(node_.args[index].data);
}

bool NodeImport::is_tensor(size_t index) const {
  if (!has(index)) return false;
  const int* id = node_.args[index].value_id();
  return id && graph_.values[static_cast<size_t>(*id)].is_tensor;
}

int NodeImport::operand(size_t index) const {
  const eval::GraphArgument& argument = node_.args[index];
  if (auto* id = argument.value_id()) return primitives_.value_of[static_cast<size_t>(*id)];
  bool integral = std::holds_alternative<int64_t>(argument.data) || std::holds_alternative<bool>(argument.data);
  return build.constant(number(index, 0), integral ? "int64" : "float32");
}

int NodeImport::element(size_t index, size_t place) const {
  const auto* list = std::get_if<eval::GraphList>(&node_.args[index].data);
  const int* id = list && place < list->size() ? (*list)[place].value_id() : nullptr;
  return id ? primitives_.value_of[static_cast<size_t>(*id)] : -1;
}

namespace {

std::optional<double> as_number(const eval::GraphArgument& argument) {
  if (auto* value = std::get_if<double>(&argument.data)) return *value;
  if (auto* value = std::get_if<int64_t>(&argument.data)) return static_cast<double>(*value);
  if (auto* value = std::get_if<bool>(&argument.data)) return *value ? 1.0 : 0.0;
  return std::nullopt;
}

}  // namespace

double NodeImport::number(size_t index, double otherwise) const {
  return index < node_.args.size() ? as_number(node_.args[index]).value_or(otherwise) : otherwise;
}

std::vector<int64_t> NodeImport::integers(size_t index) const {
  std::vector<int64_t> result;
  if (!has(index)) return result;
  if (auto single = as_number(node_.args[index])) return {static_cast<int64_t>(*single)};
  if (auto* list = std::get_if<eval::GraphList>(&node_.args[index].data))
    for (auto& item : *list) result.push_back(static_cast<int64_t>(as_number(item).value_or(0)));
  return result;
}

std::string NodeImport::text(size_t index, const std::string& otherwise) const {
  if (index >= node_.args.size()) return otherwise;
  auto* value = std::get_if<std::string>(&node_.args[index].data);
  return value ? *value : otherwise;
}

const eval::GraphArgument* NodeImport::keyword(std::string_view name) const {
  for (auto& [key, argument] : node_.kwargs)
    if (key == name && !std::holds_alternative<std::monostate>(argument.data)) return &argument;
  return nullptr;
}

double NodeImport::keyword_number(std::string_view name, double otherwise) const {
  auto* argument = keyword(name);
  return argument ? as_number(*argument).value_or(otherwise) : otherwise;
}

std::vector<int> NodeImport::axes(size_t index, size_t rank) const {
  std::vector<int> result;
  for (int64_t axis : integers(index))
    result.push_back(static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis));
  if (result.empty())
    for (size_t i = 0; i < rank; ++i) result.push_back(static_cast<int>(i));
  return result;
}

const eval::GraphValue& NodeImport::result(size_t index) const {
  return graph_.values[static_cast<size_t>(node_.outputs[index])];
}

}  // namespace tilepilot::agent::builtin
