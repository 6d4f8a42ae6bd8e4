// Names to values: module globals, class bodies, instance attributes.
#pragma once

#include <functional>
#include <vector>

#include "compiler/stage/python/objects/value.h"

namespace tilepilot::stage {

struct NameHash {
  size_t operator()(Name name) const { return std::hash<const void*>()(name.id()); }
};

// In order of first binding. A scan while there are few names, a hash table over them when there are many.
class Namespace {
 public:
  Value* find(Name name);  // null if unbound; valid until the namespace changes
  const Value* find(Name name) const;
  void set(Name name, Value value);
  bool erase(Name name);
  void clear();
  const std::vector<Name>& names() const { return order_; }

 private:
  static constexpr size_t kAbsent = ~size_t{0};
  size_t position(Name name) const;
  void index(size_t position);
  void rebuild();
  std::vector<Name> order_;
  std::vector<Value> values_;    // beside order_
  std::vector<uint32_t> table_;  // open addressing over positions; empty while there are few names
};
using NamespaceRef = std::shared_ptr<Namespace>;

}  // namespace tilepilot::stage
