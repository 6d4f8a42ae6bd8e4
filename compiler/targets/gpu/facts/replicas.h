// Parallel loops whose iterations several threads do alike, since each of them holds the result. What others see must
// be done by one of them.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/layout/fragment.h"

namespace tilepilot::targets::gpu {

// Whether several threads have the same elements, or iterations.
bool has_replicas(const layout::Fragment& fragment);

// Shared and global memory; fragments and local buffers are what threads keep for themselves.
bool is_seen_by_others(const ir::BufferData& buffer);

// Whether the statement writes to this buffer an element, or to any that threads keep for themselves.
bool writes_element(const ir::Stmt& stmt, const ir::Buffer& buffer);
bool writes_own(const ir::Stmt& stmt);
// Whether it reads an element of the buffer, as updates do.
bool reads_element(const ir::Stmt& stmt, const ir::Buffer& buffer);
// Whether it writes all of the buffer and reads none of it, as far as its form shows.
bool overwrites(const ir::Stmt& stmt, const ir::Buffer& buffer);
// A slice of a buffer: for each axis one index, or null for all of them.
using Slice = std::vector<ir::Expr>;
// The slice that it writes all of, if it reads and writes no other element of the buffer; none if its form does not
// show that.
std::optional<Slice> overwritten_slice(const ir::Stmt& stmt, const ir::Buffer& buffer);

// Whether threads that do this alike would disturb each other: it reads memory that it changes, or uses what a change
// gives.
bool needs_one_thread(const ir::Stmt& stmt);

}  // namespace tilepilot::targets::gpu
