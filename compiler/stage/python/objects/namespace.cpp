#include "compiler/stage/python/objects/namespace.h"

#include <cstdint>
#include <iterator>

#include "compiler/stage/python/evaluation/name_spread.h"

namespace tilepilot::stage {

namespace {

constexpr size_t kScanned = 8;
constexpr uint32_t kEmpty = ~0u;

}  // namespace

size_t Namespace::position(Name name) const {
  if (table_.empty()) {
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == name) return i;
    }
    return kAbsent;
  }
  size_t mask = table_.size() - 1;
  for (size_t i = spread(name) & mask; table_[i] != kEmpty; i = (i + 1) & mask) {
    if (order_[table_[i]] == name) return table_[i];
  }
  return kAbsent;
}

const Value* Namespace::find(Name name) const {
  size_t found = position(name);
  return found == kAbsent ? nullptr : &values_[found];
}

Value* Namespace::find(Name name) {
  size_t found = position(name);
  return found == kAbsent ? nullptr : &values_[found];
}

void Namespace::set(Name name, Value value) {
  size_t found = position(name);
  if (found != kAbsent) {
    values_[found] = std::move(value);
    return;
  }
  order_.push_back(name);
  values_.push_back(std::move(value));
  if (order_.size() * 2 > table_.size() && order_.size() > kScanned) {
    rebuild();
  } else if (!table_.empty()) {
    index(order_.size() - 1);
  }
}

bool Namespace::erase(Name name) {
  size_t found = position(name);
  if (found == kAbsent) return false;
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(found));
  values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(found));
  if (!table_.empty()) rebuild();
  return true;
}

void Namespace::clear() {
  const std::vector<Value> values = std::move(values_);  // destroyed when the namespace is empty already
  values_.clear();
  order_.clear();
  table_.clear();
}

void Namespace::index(size_t position) {
  size_t mask = table_.size() - 1;
  size_t i = spread(order_[position]) & mask;
  while (table_[i] != kEmpty) i = (i + 1) & mask;
  table_[i] = static_cast<uint32_t>(position);
}

void Namespace::rebuild() {
  size_t size = 32;
  while (size < order_.size() * 3) size *= 2;
  table_.assign(size, kEmpty);
  for (size_t i = 0; i < order_.size(); ++i) index(i);
}

}  // namespace tilepilot::stage
