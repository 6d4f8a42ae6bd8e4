#include "eval/host/tensors/kept_tensors.h"

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"

namespace tilepilot::eval {

using stage::Name;
using stage::Value;

namespace {

const stage::Object* identity(const Value& value) {
  auto* object = value.if_object();
  return object ? object->get() : nullptr;
}

bool bears_tensor(const Value& value, int depth = 0) {
  if (tensor_of(value)) return true;
  auto* items = depth < 4 ? stage::sequence_items(value) : nullptr;
  return items && std::any_of(items->begin(), items->end(), [&](auto& item) { return bears_tensor(item, depth + 1); });
}

}  // namespace

KeptTensors::KeptTensors(const Value& model, const std::shared_ptr<stage::ModuleObject>& globals) {
  for (auto& entry : all_modules(model)) {
    auto& module = entry.module();
    modules_.push_back({entry.value, module.parameters(), module.buffers()});
    add_space(entry.path, *entry.value.if_object(), module.attributes());
  }
  add_space("", globals, globals->members);
}

void KeptTensors::add_space(const std::string& path, stage::ObjectRef owner, stage::Namespace& names) {
  Space space{path, std::move(owner), &names, {}};
  for (auto& name : names.names()) {
    Value value = *names.find(name);
    add_dict(value);
    space.then.emplace_back(name, std::move(value));
  }
  spaces_.push_back(std::move(space));
}

void KeptTensors::add_dict(const Value& value) {
  auto* dict = value.get_if<stage::DictObject>();
  if (!dict) return;
  for (auto& entry : dict->table.entries()) {
    if (entry.live && identity(entry.value)) dict_values_.insert(identity(entry.value));
  }
}

void KeptTensors::restore_registered() {
  for (auto& module : modules_) {
    as_module(module.value)->parameters() = module.parameters;
    as_module(module.value)->buffers() = module.buffers;
  }
}

std::vector<std::string> KeptTensors::drop() {
  std::vector<std::string> dropped;
  for (auto& space : spaces_) drop_from(space, dropped);
  return dropped;
}

void KeptTensors::drop_from(Space& space, std::vector<std::string>& dropped) {
  auto names = space.names->names();
  for (auto& name : names) {
    const Value now = *space.names->find(name);
    auto then = std::find_if(space.then.begin(), space.then.end(), [&](auto& held) { return held.first == name; });
    bool same = then != space.then.end() && identity(then->second) == identity(now);
    bool goes = same ? drop_entries(now) : bears_tensor(now) || drop_entries(now);
    if (!goes) continue;
    dropped.push_back(space.path.empty() ? name.str() : space.path + "." + name.str());
    if (same || !bears_tensor(now)) continue;
    if (then != space.then.end()) {
      space.names->set(name, then->second);
    } else {
      space.names->erase(name);
    }
  }
}

bool KeptTensors::drop_entries(const Value& value) const {
  auto* dict = value.get_if<stage::DictObject>();
  bool dropped = false;
  for (size_t i = dict ? dict->table.entries().size() : 0; i-- > 0;) {
    if (i >= dict->table.entries().size()) continue;  // the last live one is gone
    auto& entry = dict->table.entries()[i];
    if (!entry.live || !bears_tensor(entry.value) || dict_values_.count(identity(entry.value)) != 0) continue;
    dict->table.erase_at(i);
    dropped = true;
  }
  return dropped;
}

}  // namespace tilepilot::eval
