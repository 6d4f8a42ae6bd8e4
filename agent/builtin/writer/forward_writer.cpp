#include "agent/builtin/writer/forward_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "agent/builtin/writer/names.h"
#include "agent/builtin/writer/torch_writer.h"

namespace tilepilot::agent::builtin {

std::string parameter_path(const std::string& name) {
  std::string result = "self", part;
  auto add = [&] {
    bool number = !part.empty() && std::all_of(part.begin(), part.end(),
                                               [](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
    result += number ? "[" + part + "]" : "." + part;
    part.clear();
  };
  for (char c : name) {
    if (c == '.')
      add();
    else
      part += c;
  }
  add();
  return result;
}

namespace {

using Kind = Primitive::Kind;

// When the argument is another number than this one; nullopt: it is none.
std::optional<std::string> is_another(const eval::GraphArgument& argument, const std::string& name) {
  if (auto* flag = std::get_if<bool>(&argument.data)) return (*flag ? "not " : "") + name;
  if (auto* integer = std::get_if<int64_t>(&argument.data)) return fmt::format("{} != {}", name, *integer);
  auto* real = std::get_if<double>(&argument.data);
  if (!real) return std::nullopt;
  return std::isfinite(*real) ? fmt::format("{} != {}", name, *real) : fmt::format("{} != float(\"{}\")", name, *real);
}

bool holds_number(const eval::GraphArgument& argument) {
  if (auto* list = std::get_if<eval::GraphList>(&argument.data))
    return std::any_of(list->begin(), list->end(), holds_number);
  if (auto* dict = std::get_if<eval::GraphDict>(&argument.data))
    return std::any_of(dict->values.begin(), dict->values.end(), holds_number);
  return is_another(argument, "").has_value();
}

class ForwardWriter {
 public:
  ForwardWriter(const eval::Reference& reference, const Plan& plan, const std::vector<std::string>& handles)
      : reference_(reference), plan_(plan), graph_(plan.graph), handles_(handles) {}

  Result<ForwardText> run() {
    TRY(name_sources());
    emitted_.assign(graph_.nodes.size(), false);
    find_shared_views();
    find_last_uses();
    emit_counters();
    for (size_t id = 0; id < graph_.nodes.size(); ++id)
      if (is_statement(static_cast<int>(id))) emit(static_cast<int>(id));
    write_return(results(reference_.forward.outputs));
    return ForwardText{std::move(parameters_), std::move(lines_), std::move(other_numbers_)};
  }

 private:
  const eval::Reference& reference_;
  const Plan& plan_;
  const PrimitiveGraph& graph_;
  const std::vector<std::string>& handles_;
  std::vector<std::string> parameters_, lines_, other_numbers_;
  std::vector<bool> emitted_;
  std::set<int> shared_views_;  // have variables
  struct Held {
    std::string name;
    Shape shape;  // as it lies in the variable; kernels may write another than the value's
  };
  std::map<int, Held> held_;           // primitive in a variable or attribute
  std::map<std::string, int> holder_;  // variable -> primitive it holds
  std::map<int, int> uses_left_;       // primitive -> statements that still read it
  size_t next_output_ = 0;

  int kernel_of(int id) const { return plan_.kernel_of[static_cast<size_t>(id)]; }

  static size_t count_leaves(const eval::GraphArgument& argument) {
    size_t count = 0;
    auto* list = std::get_if<eval::GraphList>(&argument.data);
    auto* dict = std::get_if<eval::GraphDict>(&argument.data);
    if (list == nullptr && dict == nullptr) return 1;
    for (auto& item : list != nullptr ? *list : dict->values) count += count_leaves(item);
    return count;
  }

  // The names that the graph gives to an argument's tensors, in order; `next` counts the inputs.
  std::vector<std::string> names_in(const eval::GraphArgument& argument, size_t& next) const {
    std::vector<std::string> names;
    auto add = [&](const eval::GraphArgument& item) {
      for (auto& name : names_in(item, next)) names.push_back(name);
    };
    if (auto* list = std::get_if<eval::GraphList>(&argument.data)) {
      std::for_each(list->begin(), list->end(), add);
    } else if (auto* dict = std::get_if<eval::GraphDict>(&argument.data)) {
      std::for_each(dict->values.begin(), dict->values.end(), add);
    } else if (next < reference_.forward.inputs.size()) {
      const int id = reference_.forward.inputs[next++];
      names.push_back(reference_.forward.values[static_cast<size_t>(id)].name);
    }
    return names;
  }

  // Takes the tensors out of a list or a dictionary that `forward` is given.
  void unpack(const eval::GraphArgument& argument, const std::string& from, const std::vector<std::string>& names,
              size_t& next) {
    if (auto* list = std::get_if<eval::GraphList>(&argument.data)) {
      for (size_t i = 0; i < list->size(); ++i) unpack((*list)[i], fmt::format("{}[{}]", from, i), names, next);
    } else if (auto* dict = std::get_if<eval::GraphDict>(&argument.data)) {
      for (size_t i = 0; i < dict->keys.size(); ++i)
        unpack(dict->values[i], fmt::format("{}[\"{}\"]", from, dict->keys[i]), names, next);
    } else if (next < names.size()) {
      lines_.push_back(fmt::format("    {} = {}", names[next++], from));
      watch(argument, from);
    }
  }

  void watch(const eval::GraphArgument& argument, const std::string& name) {
    if (auto condition = is_another(argument, name)) other_numbers_.push_back(*std::move(condition));
  }

  // A name for an argument that holds several tensors: what their names begin with.
  std::string holding_name(const std::vector<std::string>& names) const {
    std::string common = names.empty() ? "" : names.front();
    for (auto& name : names) {
      size_t same = 0;
      while (same < std::min(common.size(), name.size()) && common[same] == name[same]) ++same;
      common.resize(same);
    }
    while (!common.empty() && !std::isalpha(static_cast<unsigned char>(common.back()))) common.pop_back();
    if (common.empty()) common = "inputs";
    std::string unused = common;
    auto taken = [&] { return holder_.count(unused) || std::count(names.begin(), names.end(), unused); };
    for (int i = 2; taken(); ++i) unused = fmt::format("{}_{}", common, i);
    return unused;
  }

  void write_header() {
    lines_.push_back("");
    size_t next = 0, known = 0;
    auto* given = std::get_if<eval::GraphList>(&reference_.inputs.outputs.data);
    for (size_t i = 0; given != nullptr && i < given->size(); ++i) known += count_leaves((*given)[i]);
    const eval::GraphList flat(reference_.forward.inputs.size());
    for (const eval::GraphArgument& argument : known == flat.size() && given != nullptr ? *given : flat) {
      const std::vector<std::string> names = names_in(argument, next);
      const bool alone = !std::holds_alternative<eval::GraphList>(argument.data) &&
                         !std::holds_alternative<eval::GraphDict>(argument.data);
      parameters_.push_back(alone ? names.front() : holding_name(names));
      holder_[parameters_.back()] = -1;
      for (auto& name : names) holder_[name] = -1;
      size_t unpacked = 0;
      if (alone)
        watch(argument, parameters_.back());
      else
        unpack(argument, parameters_.back(), names, unpacked);
    }
    std::vector<std::string> all = {"self"};
    all.insert(all.end(), parameters_.begin(), parameters_.end());
    lines_.front() = fmt::format("def forward({}):", fmt::join(all, ", "));
  }

  Status name_sources() {
    write_header();
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Primitive& p = graph_.nodes[id];
      if (p.kind != Kind::source) continue;
      const eval::GraphValue& value = reference_.forward.values[static_cast<size_t>(p.value)];
      if (value.kind == eval::GraphValue::Kind::constant && value.attribute.empty()) {
        held_[static_cast<int>(id)] = {TRY(constant_text(p)), p.shape};
        continue;
      }
      bool input = value.kind == eval::GraphValue::Kind::input;
      const std::string& path = value.attribute.empty() ? value.name : value.attribute;
      held_[static_cast<int>(id)] = {input ? value.name : parameter_path(path), p.shape};
      if (input) holder_[value.name] = static_cast<int>(id);
    }
    return {};
  }

  // "[[1, 2], [3, 4]]"
  static std::string nested_text(const std::vector<double>& numbers, const std::vector<int64_t>& shape) {
    std::vector<std::string> items;
    for (double number : numbers)
      items.push_back(std::isfinite(number) ? fmt::format("{}", number) : fmt::format("float(\"{}\")", number));
    for (size_t axis = shape.size(); axis-- > 0;) {
      const auto length = static_cast<size_t>(shape[axis]);
      std::vector<std::string> lists;
      for (size_t begin = 0; begin + length <= items.size() && length > 0; begin += length)
        lists.push_back(
            fmt::format("[{}]", fmt::join(items.begin() + static_cast<std::ptrdiff_t>(begin),
                                          items.begin() + static_cast<std::ptrdiff_t>(begin + length), ", ")));
      items = std::move(lists);
    }
    return items.empty() ? "[]" : items.front();
  }

  Result<std::string> constant_text(const Primitive& p) const {
    auto found = plan_.constants.find(p.value);
    if (found == plan_.constants.end())
      return make_error(DiagnosticKind::value_error, {},
                        fmt::format("`forward` makes a constant tensor of {} elements",
                                    reference_.forward.values[static_cast<size_t>(p.value)].numel()),
                        "make it in `__init__`, as a buffer or an attribute");
    return fmt::format("torch.tensor({}, dtype=torch.{})", nested_text(found->second, p.shape), p.dtype);
  }

  bool is_statement(int id) const {
    const Primitive& p = graph_.at(id);
    if (kernel_of(id) >= 0) return true;
    switch (p.kind) {
      case Kind::map:
      case Kind::reduce:
      case Kind::gather:
      case Kind::product:
      case Kind::call:
      case Kind::update:
        return true;
      default:
        return shared_views_.count(id) > 0;
    }
  }

  bool is_view(int id) const { return graph_.at(id).kind == Kind::view && kernel_of(id) < 0; }

  // The statements behind an operand: itself, or what its views look at.
  int behind(int id) const {
    while (is_view(id) && !shared_views_.count(id)) id = graph_.at(id).args[0];
    return id;
  }

  // Views that several places read, but for those that one operator makes of what lies in a variable: their operators
  // run once, and some copy.
  void find_shared_views() {
    std::map<int, int> readers;
    auto read = [&](int id) {
      while (is_view(id) && readers[id]++ == 0) id = graph_.at(id).args[0];
    };
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const int statement = static_cast<int>(id);
      if (!is_statement(statement) || statement_of(statement) != statement) continue;
      for (int operand : operands(statement)) read(operand);
    }
    for (int id : graph_.outputs) read(id);
    for (auto [id, count] : readers) {
      const Primitive& p = graph_.at(id);
      const bool cheap = p.view.kind == ViewOp::Kind::expand ||
                         (p.view.kind == ViewOp::Kind::reshape && !is_view(p.args[0]) && in_memory(p.args[0]));
      if (count > 1 && !cheap) shared_views_.insert(id);
    }
  }

  std::vector<int> operands(int id) const {
    int kernel = kernel_of(id);
    const Primitive& p = graph_.at(id);
    if (kernel < 0 && p.kind == Kind::product) return {p.args[0], right_operand(graph_, p)};
    if (kernel < 0) return p.args;
    std::vector<int> bases;
    for (auto& argument : plan_.kernels[static_cast<size_t>(kernel)].text.arguments) bases.push_back(argument.base);
    return bases;
  }

  // One representative a statement: a kernel's first member, a call's first output.
  int statement_of(int id) const {
    int kernel = kernel_of(id);
    if (kernel >= 0) return plan_.kernels[static_cast<size_t>(kernel)].group.members.front();
    if (graph_.at(id).kind != Kind::call) return id;
    for (size_t other = 0; other < graph_.nodes.size(); ++other)
      if (graph_.nodes[other].kind == Kind::call && graph_.nodes[other].origin == graph_.at(id).origin)
        return static_cast<int>(other);
    return id;
  }

  void find_last_uses() {
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      int statement = static_cast<int>(id);
      if (!is_statement(statement) || statement_of(statement) != statement) continue;
      for (int operand : distinct_operands(statement)) ++uses_left_[operand];
    }
    for (int id : graph_.outputs) ++uses_left_[behind(id)];
  }

  std::vector<int> distinct_operands(int id) const {
    std::vector<int> result;
    for (int operand : operands(id)) {
      int base = behind(operand);
      if (!std::count(result.begin(), result.end(), base)) result.push_back(base);
    }
    return result;
  }

  void emit(int id) {
    int statement = statement_of(id);
    if (emitted_[static_cast<size_t>(statement)]) return;
    emitted_[static_cast<size_t>(statement)] = true;
    emit_before(statement);
    if (kernel_of(statement) >= 0)
      emit_kernel(kernel_of(statement));
    else if (graph_.at(statement).kind == Kind::call)
      emit_call(statement);
    else
      emit_primitive(statement);
  }

  void emit_before(int statement) {
    for (int operand : distinct_operands(statement))
      if (is_statement(operand)) emit(operand);
    std::vector<int> parts = {statement};
    if (int kernel = kernel_of(statement); kernel >= 0) {
      const Group& group = plan_.kernels[static_cast<size_t>(kernel)].group;
      parts = group.members;
      parts.insert(parts.end(), group.updates.begin(), group.updates.end());
    }
    for (auto [before, later] : graph_.order)
      for (int part : parts) {
        const int after = later;  // a lambda in Clang 14 cannot capture a structured binding
        auto& args = graph_.at(part).args;
        bool reads = std::any_of(args.begin(), args.end(), [&](int arg) { return graph_.behind_views(arg) == after; });
        if ((after == part || (graph_.at(after).kind == Kind::source && reads)) && is_statement(before)) emit(before);
      }
  }

  std::string text(int id) const {
    if (held_.count(id)) return held_as(id, graph_.at(id).shape);
    const Primitive& p = graph_.at(id);
    bool reshapes = p.kind == Kind::view && p.view.kind == ViewOp::Kind::reshape;
    if (reshapes && held_.count(p.args[0]) && in_memory(p.args[0])) return held_as(p.args[0], p.shape);
    return write_primitive(graph_, id, [this](int operand) { return text(operand); });
  }

  bool in_memory(int id) const {
    const Primitive& p = graph_.at(id);
    return p.kind != Kind::view && (p.strides.empty() || is_contiguous(p.shape, p.strides));
  }

  std::string held_as(int id, const Shape& shape) const {
    const Held& held = held_.at(id);
    return held.shape == shape ? held.name : fmt::format("{}.view({})", held.name, extents_text(shape));
  }

  // Operands that nobody reads after this statement give their variables away.
  std::vector<std::string> release_operands(int statement) {
    std::vector<std::string> free;
    for (int operand : distinct_operands(statement)) {
      if (--uses_left_[operand] > 0) continue;
      for (auto& [variable, held] : holder_)
        if (held == operand) free.push_back(variable);
    }
    return free;
  }

  std::string variable_for(int value, std::vector<std::string>& free) {
    std::string name;
    std::string telling = module_name(value);
    std::erase_if(free, [&](auto& variable) { return !telling.empty() && is_input(variable); });
    if (!free.empty()) {
      name = free.front();
      free.erase(free.begin());
    } else {
      std::string wanted = wanted_name(value);
      name = wanted;
      for (int i = 2; holder_.count(name); ++i) name = fmt::format("{}_{}", wanted, i);
    }
    holder_[name] = value;
    held_[value] = {name, graph_.at(value).shape};
    return name;
  }

  bool is_input(const std::string& variable) const {
    auto& graph = reference_.forward;
    return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                       [&](int id) { return graph.values[static_cast<size_t>(id)].name == variable; });
  }

  // The submodule that a call came from, if it has a name.
  std::string module_name(int value) const {
    const Primitive& p = graph_.at(value);
    if (p.origin < 0 || p.kind == Kind::map || p.kind == Kind::reduce) return "";
    const std::string& module = reference_.forward.nodes[static_cast<size_t>(p.origin)].module;
    std::string last = module.substr(module.rfind('.') == std::string::npos ? 0 : module.rfind('.') + 1);
    return last.empty() || std::isdigit(static_cast<unsigned char>(last[0])) ? "" : identifier(last);
  }

  std::string wanted_name(int value) const {
    const Primitive& p = graph_.at(value);
    if (std::string module = module_name(value); !module.empty()) return module;
    if (p.kind == Kind::map && p.hint.empty()) return "y";
    return p.hint.empty() || p.kind == Kind::product ? "y" : identifier(p.hint);
  }

  // A value that is only returned needs no variable.
  void write_return(const std::string& value) {
    std::string variable = value.substr(0, value.find_first_of(".,"));
    std::string assignment = "    " + variable + " = ";
    if (!reference_.forward.outputs.value_id() || lines_.back().rfind(assignment, 0) != 0)
      return lines_.push_back("    return " + value);
    const std::string made = lines_.back().substr(assignment.size()), method = value.substr(variable.size());
    const bool alone = method.empty() || !has_operator(made);
    lines_.back() = fmt::format("    return {}{}", alone ? made : "(" + made + ")", method);
  }

  // Outside of brackets, where a method called on the whole would bind to the last operand.
  static bool has_operator(const std::string& expression) {
    int depth = 0;
    for (char c : expression) {
      depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
      if (depth == 0 && (c == ' ' || c == '-')) return true;
    }
    return false;
  }

  // Statements

  // The number that a call adds to an integer that nothing else here reads or changes: batches that were seen.
  std::optional<int64_t> counted(int id) const {
    const Primitive& call = graph_.at(id);
    if (call.kind != Kind::call || !call.effect || call.args.size() != 1) return std::nullopt;
    const eval::GraphNode& node = reference_.forward.nodes[static_cast<size_t>(call.origin)];
    const Primitive& counter = graph_.at(call.args[0]);
    auto* number = node.args.size() == 2 ? std::get_if<int64_t>(&node.args[1].data) : nullptr;
    if (node.op != "aten::add_" || !number || !node.kwargs.empty()) return std::nullopt;
    if (counter.kind != Kind::source || counter.dtype != "int64") return std::nullopt;
    auto is_counter = [&](int other) {
      return graph_.at(other).kind == Kind::source && graph_.at(other).value == counter.value;
    };
    for (size_t user = 0; user < graph_.nodes.size(); ++user)
      if (static_cast<int>(user) != id &&
          std::any_of(graph_.nodes[user].args.begin(), graph_.nodes[user].args.end(), is_counter))
        return std::nullopt;
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is_counter) ? std::nullopt
                                                                                 : std::optional(*number);
  }

  // One operator for all counters: on a GPU each of its own costs as much as a layer.
  void emit_counters() {
    std::map<int64_t, std::vector<int>> calls;
    for (size_t id = 0; id < graph_.nodes.size(); ++id)
      if (auto number = counted(static_cast<int>(id))) calls[*number].push_back(static_cast<int>(id));
    for (auto& [number, ids] : calls) {
      if (ids.size() < 2) continue;
      lines_.push_back("    torch._foreach_add_(");
      lines_.push_back("        [");
      for (int id : ids) {
        emitted_[static_cast<size_t>(id)] = true;
        lines_.push_back(fmt::format("            {},", text(graph_.at(id).args[0])));
      }
      lines_.push_back("        ],");
      lines_.push_back(fmt::format("        {},", number));
      lines_.push_back("    )");
    }
  }

  std::string argument_text(const KernelArgument& argument) const {
    const Primitive& p = graph_.at(argument.base);
    if (held_.count(argument.base) && in_memory(argument.base)) return held_as(argument.base, argument.shape);
    std::string operand = text(argument.base) + ".contiguous()";
    return p.shape == argument.shape ? operand : fmt::format("{}.view({})", operand, extents_text(argument.shape));
  }

  // Only the largest results take over variables: statistics have names of their own.
  void emit_kernel(int index) {
    const PlannedKernel& kernel = plan_.kernels[static_cast<size_t>(index)];
    std::vector<std::string> arguments;
    for (auto& argument : kernel.text.arguments) arguments.push_back(argument_text(argument));
    take_places(kernel);
    std::vector<std::string> free = release_operands(kernel.group.members.front()), variables, none;
    int64_t largest = 0;
    for (auto& result : kernel.text.results) largest = std::max(largest, numel(result.shape));
    for (auto& result : kernel.text.results) {
      if (result.argument >= 0) continue;
      variables.push_back(variable_for(result.value, numel(result.shape) == largest ? free : none));
      held_[result.value].shape = result.shape;
    }
    std::string call = fmt::format("{}({})", handles_[static_cast<size_t>(index)], fmt::join(arguments, ", "));
    if (variables.empty()) return lines_.push_back("    " + call);
    assign(fmt::format("{}", fmt::join(variables, ", ")), call);
  }

  // A result written over an operand lives on under the operand's name.
  void take_places(const PlannedKernel& kernel) {
    for (auto& result : kernel.text.results) {
      if (result.argument < 0) continue;
      int base = kernel.text.arguments[static_cast<size_t>(result.argument)].base;
      held_[result.value] = held_.at(base);
      for (auto& [variable, value] : holder_)
        if (value == base) value = result.value;
    }
  }

  void assign(const std::string& target, const std::string& value) {
    lines_.push_back(fmt::format("    {} = {}", target, value));
  }

  // That of the inputs: variables of these names hold tensors to the end.
  std::string device() const {
    for (const int id : reference_.forward.inputs) {
      const eval::GraphValue& value = reference_.forward.values[static_cast<size_t>(id)];
      if (value.is_tensor) return value.name + ".device";
    }
    return "\"cpu\"";
  }

  void emit_call(int first) {
    const Primitive& call = graph_.at(first);
    const eval::GraphNode& node = reference_.forward.nodes[static_cast<size_t>(call.origin)];
    std::string value = write_call(
        node, call, [this](int operand) { return text(operand); }, device());
    std::vector<std::string> free = release_operands(first);
    bool in_place = node.op.back() == '_' && call.effect;
    if (in_place) return lines_.push_back("    " + value);
    if (node.outputs.size() == 1) return assign(variable_for(first, free), value);
    std::vector<std::string> targets(node.outputs.size(), "_");
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Primitive& p = graph_.nodes[id];
      if (p.kind == Kind::call && p.origin == call.origin)
        targets[static_cast<size_t>(p.output)] = variable_for(static_cast<int>(id), free);
    }
    assign(fmt::format("{}", fmt::join(targets, ", ")), value);
  }

  void emit_primitive(int id) {
    const std::string value = text(id);
    std::vector<std::string> free = release_operands(id);
    if (graph_.at(id).kind == Kind::update) return lines_.push_back("    " + value);
    assign(variable_for(id, free), value);
  }

  std::string results(const eval::GraphArgument& argument) {
    if (argument.value_id()) return text(graph_.outputs[next_output_++]);
    if (auto* list = std::get_if<eval::GraphList>(&argument.data)) {
      std::vector<std::string> items;
      for (auto& item : *list) items.push_back(nested_results(item));
      return items.size() == 1 ? items[0] + "," : fmt::format("{}", fmt::join(items, ", "));
    }
    if (auto* dict = std::get_if<eval::GraphDict>(&argument.data)) {
      std::vector<std::string> items;
      for (size_t i = 0; i < dict->keys.size(); ++i)
        items.push_back(fmt::format("\"{}\": {}", dict->keys[i], nested_results(dict->values[i])));
      return fmt::format("{{{}}}", fmt::join(items, ", "));
    }
    return write_plain(argument);
  }

  std::string nested_results(const eval::GraphArgument& argument) {
    const bool nested = std::holds_alternative<eval::GraphList>(argument.data);
    return nested ? "(" + results(argument) + ")" : results(argument);
  }
};

}  // namespace

bool has_input_numbers(const eval::Reference& reference) { return holds_number(reference.inputs.outputs); }

Result<ForwardText> write_forward(const eval::Reference& reference, const Plan& plan,
                                  const std::vector<std::string>& handles) {
  return ForwardWriter(reference, plan, handles).run();
}

}  // namespace tilepilot::agent::builtin
