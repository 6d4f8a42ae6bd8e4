#include "compiler/ir/touches.h"

namespace tilepilot::ir {

const BufferData* memory_of(const BufferData& buffer) {
  const BufferData* data = &buffer;
  while (data->base) data = data->base.get();
  return data;
}

void each_own_touch(const Stmt& stmt, const OnTouch& on_touch) {
  if (const auto* store = as<Store>(stmt)) on_touch(store->buffer, true);
  const Accesses accesses = region_accesses(stmt);
  for (const Region* region : accesses.reads) on_touch(region->buffer, false);
  for (const Region* region : accesses.writes) on_touch(region->buffer, true);
}

void each_touch(const Expr& expr, const OnTouch& on_touch) {
  walk(expr, [&](const Expr& part) {
    if (const auto* load = as<Load>(part)) on_touch(load->buffer, false);
  });
}

void each_touch(const Stmt& stmt, const OnTouch& on_touch) {
  walk(
      stmt, [&](const Stmt& part) { each_own_touch(part, on_touch); },
      [&](const Expr& part) {
        if (const auto* load = as<Load>(part)) on_touch(load->buffer, false);
      });
}

void Touched::add(const Touched& other) {
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
}

Touched touched_buffers(const Stmt& stmt) {
  Touched touched;
  each_touch(
      stmt, [&](const Buffer& buffer, bool writes) { (writes ? touched.writes : touched.reads).insert(buffer.get()); });
  return touched;
}

Touched touched_memory(const Stmt& stmt) {
  Touched touched;
  each_touch(stmt, [&](const Buffer& buffer, bool writes) {
    (writes ? touched.writes : touched.reads).insert(memory_of(buffer));
  });
  return touched;
}

int count_touches(const Stmt& stmt, const BufferData* buffer) {
  int count = 0;
  each_touch(stmt, [&](const Buffer& touched, bool) { count += touched.get() == buffer; });
  return count;
}

int count_writes(const Stmt& stmt, const BufferData* buffer) {
  int count = 0;
  each_touch(stmt, [&](const Buffer& touched, bool writes) { count += writes && touched.get() == buffer; });
  return count;
}

bool touches_any(const Stmt& stmt, const BufferSet& buffers) {
  bool found = false;
  if (!buffers.empty())
    each_touch(stmt, [&](const Buffer& touched, bool) { found |= buffers.contains(touched.get()); });
  return found;
}

bool writes_any(const Stmt& stmt, const std::function<bool(const Buffer&)>& wanted) {
  bool found = false;
  each_touch(stmt, [&](const Buffer& touched, bool writes) { found = found || (writes && wanted(touched)); });
  return found;
}

}  // namespace tilepilot::ir
