// What a program keeps from one call to the next: tensors that `forward` leaves in the model or in global variables.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/stage/python/objects/objects.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

class KeptTensors {
 public:
  // Remembers what `model` and the variables of `globals` hold now.
  KeptTensors(const stage::Value& model, const std::shared_ptr<stage::ModuleObject>& globals);

  // Parameters and buffers are the tensors they were; what was put in their places is gone.
  void restore_registered();
  // Takes out the tensors that were put into attributes, variables and dictionaries since; gives their names.
  std::vector<std::string> drop();

 private:
  using Held = std::vector<std::pair<stage::Name, stage::Value>>;
  struct Space {
    std::string path;
    stage::ObjectRef owner;
    stage::Namespace* names;
    Held then;
  };
  struct Module {
    stage::Value value;
    NnModule::Entries parameters, buffers;
  };
  void add_space(const std::string& path, stage::ObjectRef owner, stage::Namespace& names);
  void add_dict(const stage::Value& value);
  void drop_from(Space& space, std::vector<std::string>& dropped);
  bool drop_entries(const stage::Value& value) const;

  std::vector<Module> modules_;
  std::vector<Space> spaces_;
  std::set<const stage::Object*> dict_values_;  // what dictionaries held
};

}  // namespace tilepilot::eval
