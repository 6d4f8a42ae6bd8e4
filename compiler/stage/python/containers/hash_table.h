// The table under dict and set: entries in order of insertion, found by Python's hash and equality.
#pragma once

#include "compiler/stage/python/objects/value.h"

namespace tilepilot::stage {

class HashTable {
 public:
  struct Entry {
    Value key;
    Value value;
    size_t hash = 0;
    bool live = true;
  };

  // The entry of `key`, or null. Valid until the table changes.
  Result<Entry*> find(Interpreter& interpreter, const Value& key, Span span);
  Status set(Interpreter& interpreter, Value key, Value value, Span span);
  // Removes and returns the entry of `key`.
  Result<std::optional<Entry>> erase(Interpreter& interpreter, const Value& key, Span span);
  void erase_at(size_t position);  // of `entries()`
  void clear();
  size_t size() const { return live_; }

  // In order of insertion; those that are not `live` were erased.
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }

 private:
  static constexpr int32_t kEmpty = -1;
  Result<int32_t> lookup(Interpreter& interpreter, const Value& key, size_t hash, Span span);
  void rebuild(size_t table_size);

  Result<bool> matches(Interpreter& interpreter, size_t position, const Value& key, Span span);

  std::vector<Entry> entries_;
  std::vector<int32_t> table_;  // positions in entries_; an erased entry keeps its place until the next rebuild
  size_t live_ = 0;
  uint64_t changes_ = 0;  // of the order of entries_: `==` written in Python may change the table while it is searched
};

}  // namespace tilepilot::stage
