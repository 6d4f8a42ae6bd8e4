#include "compiler/interpret/meetings.h"

#include <algorithm>

#include "compiler/ir/visit.h"

namespace tilepilot::interpret {
namespace {

using ir::as;

bool has_local_region(const ir::Stmt& stmt) {
  const ir::Accesses accesses = ir::region_accesses(stmt);
  const auto is_local = [](const ir::Region* region) { return region->buffer->scope == ir::Scope::local; };
  return std::any_of(accesses.reads.begin(), accesses.reads.end(), is_local) ||
         std::any_of(accesses.writes.begin(), accesses.writes.end(), is_local);
}

}  // namespace

const ir::BufferData* root_of(const ir::BufferData& buffer) { return buffer.base ? buffer.base.get() : &buffer; }

bool is_meeting(const ir::Stmt& stmt) {
  if (as<ir::Sync>(stmt) || as<ir::AllReduce>(stmt)) return true;
  if (const auto* loop = as<ir::For>(stmt)) return loop->kind == ir::LoopKind::parallel;
  const bool moves = as<ir::Copy>(stmt) || as<ir::Fill>(stmt);
  return ir::is_tile_operator(*stmt) && !(moves && has_local_region(stmt));
}

Touched touched_by(const ir::Stmt& stmt) {
  Touched result;
  ir::walk(
      stmt,
      [&](const ir::Stmt& part) {
        const ir::Accesses accesses = ir::region_accesses(part);
        for (const ir::Region* region : accesses.reads) result.read.insert(root_of(*region->buffer));
        for (const ir::Region* region : accesses.writes) result.written.insert(root_of(*region->buffer));
        if (const auto* store = as<ir::Store>(part)) result.written.insert(root_of(*store->buffer));
      },
      [&](const ir::Expr& part) {
        if (const auto* load = as<ir::Load>(part)) result.read.insert(root_of(*load->buffer));
      });
  return result;
}

BufferSet own_buffers(const ir::Kernel& kernel) {
  BufferSet met, own;
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        if (!is_meeting(stmt) || as<ir::AllReduce>(stmt)) return;
        const Touched touched = touched_by(stmt);
        met.insert(touched.read.begin(), touched.read.end());
        met.insert(touched.written.begin(), touched.written.end());
      },
      [](const ir::Expr&) {});
  for (const ir::Buffer& buffer : kernel.allocations) {
    const bool is_own =
        buffer->scope == ir::Scope::local || (buffer->scope == ir::Scope::fragment && met.count(root_of(*buffer)) == 0);
    if (is_own) own.insert(buffer.get());
  }
  return own;
}

}  // namespace tilepilot::interpret
