#include "eval/host/tensors/held_tensors.h"

#include <fmt/format.h>

#include <unordered_set>

#include "compiler/stage/python/containers/containers.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

using stage::Value;

namespace {

constexpr int kMaxDepth = 6;

class HeldTensorCollector {
 public:
  explicit HeldTensorCollector(std::vector<HeldTensor>& held) : held_(held) {}

  void add_module(const std::string& path, NnModule& module) {
    if (!seen_.insert(&module).second) return;
    for (auto& buffer : module.buffers()) {
      if (!buffer.persistent) add(joined(path, buffer.name.str()), buffer.value, 0);
    }
    add_attributes(path, module, 0);
  }

 private:
  static std::string joined(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }

  void add(const std::string& name, const Value& value, int depth) {
    if (auto* tensor = tensor_of(value)) held_.push_back({name, *tensor, HeldTensor::Kind::attribute});
    if (depth == kMaxDepth || !value.if_object()) return;
    if (auto* items = stage::sequence_items(value)) {
      for (size_t i = 0; i < items->size(); ++i) add(fmt::format("{}[{}]", name, i), (*items)[i], depth + 1);
    } else if (auto* dict = value.get_if<stage::DictObject>()) {
      add_entries(name, *dict, depth);
    } else if (auto* module = as_module(value)) {
      add_unregistered(name, *module, depth);
    } else if (auto* instance = (*value.if_object())->as_instance()) {
      if (seen_.insert(instance).second) add_attributes(name, *instance, depth + 1);
    }
  }

  void add_entries(const std::string& name, stage::DictObject& dict, int depth) {
    size_t position = 0;
    for (auto& entry : dict.table.entries()) {
      auto* key = entry.key.if_string();
      std::string index = key ? fmt::format("\"{}\"", *key) : std::to_string(position);
      if (entry.live) add(fmt::format("{}[{}]", name, index), entry.value, depth + 1);
      ++position;
    }
  }

  // A module in a plain list: its weights are in no state_dict.
  void add_unregistered(const std::string& name, NnModule& module, int depth) {
    if (!seen_.insert(&module).second) return;
    for (auto* entries : {&module.parameters(), &module.buffers(), &module.modules()}) {
      for (auto& entry : *entries) add(joined(name, entry.name.str()), entry.value, depth + 1);
    }
    add_attributes(name, module, depth + 1);
  }

  void add_attributes(const std::string& path, stage::InstanceObject& instance, int depth) {
    for (auto& name : instance.attributes().names()) {
      add(joined(path, name.str()), *instance.attributes().find(name), depth);
    }
  }

  std::vector<HeldTensor>& held_;
  std::unordered_set<const stage::Object*> seen_;
};

}  // namespace

std::vector<HeldTensor> held_tensors(const Value& module) {
  std::vector<HeldTensor> held;
  for (auto& weight : named_tensors(module)) {
    auto kind = weight.is_buffer ? HeldTensor::Kind::buffer : HeldTensor::Kind::parameter;
    held.push_back({weight.name, weight.tensor, kind});
  }
  HeldTensorCollector collector(held);
  // Registered modules first: what an attribute repeats of them is theirs.
  auto modules = all_modules(module);
  for (auto& entry : modules) collector.add_module(entry.path, entry.module());
  return held;
}

}  // namespace tilepilot::eval
