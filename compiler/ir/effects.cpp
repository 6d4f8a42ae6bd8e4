#include "compiler/ir/effects.h"

#include <algorithm>

namespace tilepilot::ir {

const BufferData* memory_of(const BufferData& buffer) {
  const BufferData* data = &buffer;
  while (data->base) data = data->base.get();
  return data;
}

void each_own_effect(const Stmt& stmt, const OnEffect& on_effect) {
  if (const auto* store = as<Store>(stmt)) on_effect(store->buffer, true);
  const Accesses accesses = region_accesses(stmt);
  for (const Region* region : accesses.reads) on_effect(region->buffer, false);
  for (const Region* region : accesses.writes) on_effect(region->buffer, true);
}

void each_effect(const Expr& expr, const OnEffect& on_effect) {
  walk(expr, [&](const Expr& part) {
    if (const auto* load = as<Load>(part)) on_effect(load->buffer, false);
  });
}

void each_effect(const Stmt& stmt, const OnEffect& on_effect) {
  walk(
      stmt, [&](const Stmt& part) { each_own_effect(part, on_effect); },
      [&](const Expr& part) {
        if (const auto* load = as<Load>(part)) on_effect(load->buffer, false);
      });
}

void Effects::add(const Effects& other) {
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
}

Effects effects_of(const Stmt& stmt) {
  Effects effects;
  each_effect(
      stmt, [&](const Buffer& buffer, bool writes) { (writes ? effects.writes : effects.reads).insert(buffer.get()); });
  return effects;
}

Effects memory_effects_of(const Stmt& stmt) {
  Effects effects;
  each_effect(stmt, [&](const Buffer& buffer, bool writes) {
    (writes ? effects.writes : effects.reads).insert(memory_of(buffer));
  });
  return effects;
}

bool depend(const Effects& a, const Effects& b) {
  const auto intersect = [](const BufferSet& some, const BufferSet& others) {
    return std::any_of(some.begin(), some.end(), [&](const BufferData* one) { return others.contains(one); });
  };
  return intersect(a.writes, b.writes) || intersect(a.writes, b.reads) || intersect(a.reads, b.writes);
}

int count_accesses(const Stmt& stmt, const BufferData* buffer) {
  int count = 0;
  each_effect(stmt, [&](const Buffer& named, bool) { count += named.get() == buffer; });
  return count;
}

int count_writes(const Stmt& stmt, const BufferData* buffer) {
  int count = 0;
  each_effect(stmt, [&](const Buffer& named, bool writes) { count += writes && named.get() == buffer; });
  return count;
}

bool accesses_any(const Stmt& stmt, const BufferSet& buffers) {
  bool found = false;
  if (!buffers.empty()) each_effect(stmt, [&](const Buffer& named, bool) { found |= buffers.contains(named.get()); });
  return found;
}

bool writes_any(const Stmt& stmt, const std::function<bool(const Buffer&)>& wanted) {
  bool found = false;
  each_effect(stmt, [&](const Buffer& named, bool writes) { found = found || (writes && wanted(named)); });
  return found;
}

}  // namespace tilepilot::ir
