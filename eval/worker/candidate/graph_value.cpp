#include "eval/worker/candidate/graph_value.h"

#include "compiler/stage/python/containers/containers.h"
#include "eval/host/host_state.h"
#include "eval/host/tensors/tensor_object.h"
#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

using stage::Value;

// What all values of one argument are made with.
struct GraphValues {
  TorchHost& host;
  stage::Interpreter& interpreter;
  const std::vector<at::Tensor>& tensors;

  Value of(const GraphArgument& argument) const {
    auto& data = argument.data;
    if (auto* id = argument.value_id()) return wrap_tensor(host, tensors.at(static_cast<size_t>(*id)));
    if (auto* flag = std::get_if<bool>(&data)) return Value(*flag);
    if (auto* integer = std::get_if<int64_t>(&data)) return Value(*integer);
    if (auto* real = std::get_if<double>(&data)) return Value(*real);
    if (auto* text = std::get_if<std::string>(&data)) return Value(*text);
    if (auto* dict = std::get_if<GraphDict>(&data)) return of_dict(*dict);
    if (auto* dtype = std::get_if<DtypeName>(&data)) {
      auto type = parse_element_type(dtype->name);
      return type ? host.state().dtype(*type) : Value();
    }
    if (auto* list = std::get_if<GraphList>(&data)) return stage::make_list(of_items(*list));
    if (auto* tuple = std::get_if<GraphTuple>(&data)) return stage::make_tuple(of_items(tuple->items));
    return Value();
  }

  std::vector<Value> of_items(const GraphList& list) const {
    std::vector<Value> items;
    for (auto& item : list) items.push_back(of(item));
    return items;
  }

  Value of_dict(const GraphDict& dict) const {
    std::vector<Value> entries;
    for (size_t i = 0; i < dict.keys.size(); ++i)
      entries.push_back(stage::make_tuple({Value(dict.keys[i]), of(dict.values[i])}));
    stage::CallArgs call;
    call.positional.push_back(stage::make_list(std::move(entries)));
    Value* make = interpreter.find_builtin("dict");
    auto made = make ? interpreter.call(*make, std::move(call)) : Result<Value>(Value());
    return made.ok() ? *made : Value();
  }
};

}  // namespace

stage::Value graph_value(TorchHost& host, stage::Interpreter& interpreter, const GraphArgument& argument,
                         const std::vector<at::Tensor>& tensors) {
  return GraphValues{host, interpreter, tensors}.of(argument);
}

}  // namespace tilepilot::eval
