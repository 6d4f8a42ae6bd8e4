#include "compiler/stage/python/containers/hash_table.h"

#include <algorithm>

#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

namespace {

// Integers hash to themselves; this spreads them over the table.
size_t spread(size_t hash) {
  hash *= 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 32);
}

}  // namespace

Result<int32_t> HashTable::lookup(Interpreter& interpreter, const Value& key, size_t hash, Span span) {
  if (table_.empty()) return kEmpty;
  size_t mask = table_.size() - 1;
  for (size_t i = spread(hash) & mask; table_[i] != kEmpty; i = (i + 1) & mask) {
    const Entry& entry = entries_[static_cast<size_t>(table_[i])];
    if (!entry.live || entry.hash != hash) continue;
    if (TRY(matches(interpreter, static_cast<size_t>(table_[i]), key, span))) return table_[i];
  }
  return kEmpty;
}

Result<bool> HashTable::matches(Interpreter& interpreter, size_t position, const Value& key, Span span) {
  Value own = entries_[position].key;
  uint64_t before = changes_;
  bool same = TRY(interpreter.equal(own, key, span));
  if (changes_ == before) return same;
  return interpreter.raise("RuntimeError", "a comparison changed the dictionary or set that was searched", span);
}

Result<HashTable::Entry*> HashTable::find(Interpreter& interpreter, const Value& key, Span span) {
  size_t hash = TRY(interpreter.hash(key, span));
  int32_t position = TRY(lookup(interpreter, key, hash, span));
  if (position == kEmpty) return static_cast<Entry*>(nullptr);
  return &entries_[static_cast<size_t>(position)];
}

Status HashTable::set(Interpreter& interpreter, Value key, Value value, Span span) {
  size_t hash = TRY(interpreter.hash(key, span));
  int32_t position = TRY(lookup(interpreter, key, hash, span));
  if (position != kEmpty) {
    entries_[static_cast<size_t>(position)].value = std::move(value);
    return {};
  }
  if (static_cast<int64_t>(live_) >= interpreter.limits().container_items) return too_large(interpreter, span);
  if ((entries_.size() + 1) * 2 > table_.size()) rebuild(std::max<size_t>(8, (live_ + 1) * 4));
  ++changes_;
  entries_.push_back({std::move(key), std::move(value), hash, true});
  ++live_;
  size_t mask = table_.size() - 1;
  size_t i = spread(hash) & mask;
  while (table_[i] != kEmpty) i = (i + 1) & mask;
  table_[i] = static_cast<int32_t>(entries_.size() - 1);
  return {};
}

Result<std::optional<HashTable::Entry>> HashTable::erase(Interpreter& interpreter, const Value& key, Span span) {
  size_t hash = TRY(interpreter.hash(key, span));
  int32_t position = TRY(lookup(interpreter, key, hash, span));
  if (position == kEmpty) return std::optional<Entry>();
  Entry removed = entries_[static_cast<size_t>(position)];
  erase_at(static_cast<size_t>(position));
  return std::optional<Entry>(std::move(removed));
}

void HashTable::erase_at(size_t position) {
  ++changes_;
  Entry& entry = entries_[position];
  entry.key = None{};
  entry.value = None{};
  entry.live = false;
  if (--live_ == 0) clear();
}

void HashTable::clear() {
  ++changes_;
  entries_.clear();
  table_.clear();
  live_ = 0;
}

void HashTable::rebuild(size_t wanted) {
  size_t size = 8;
  while (size < wanted) size *= 2;
  std::erase_if(entries_, [](const Entry& entry) { return !entry.live; });
  table_.assign(size, kEmpty);
  for (size_t position = 0; position < entries_.size(); ++position) {
    size_t i = spread(entries_[position].hash) & (size - 1);
    while (table_[i] != kEmpty) i = (i + 1) & (size - 1);
    table_[i] = static_cast<int32_t>(position);
  }
}

}  // namespace tilepilot::stage
