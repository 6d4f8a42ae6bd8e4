// How threads move a fragment to or from shared memory: how many elements at once, and what it costs.
#pragma once

#include "compiler/layout/fragment.h"
#include "compiler/layout/shared_layout.h"

namespace tilepilot::layout {

// The most elements that a thread can move in one access: a power of two, in 16 bytes at most, such that registers
// [k * result, (k + 1) * result) of each thread stand at neighbouring offsets, the first a multiple of the result, or
// all hold nothing.
// @pre both have the same shape
int64_t vector_length(const Fragment& fragment, const SharedLayout& memory);

// The wavefronts that all warps take to load the fragment in such accesses.
// @post at least 1 / 128 of the bytes that all threads hold, unless lanes share words
int64_t wavefronts(const Fragment& fragment, const SharedLayout& memory);

}  // namespace tilepilot::layout
