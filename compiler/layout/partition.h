// Free choices: fragments for tiles and loops to which no operation has given a layout.
#pragma once

#include "compiler/layout/fragment.h"

namespace tilepilot::layout {

struct Workers {
  int64_t threads = 1;
  int64_t vector = 1;  // neighbouring elements that one access is to take; cut to what divides the last axis
};

// Elements in row-major order, a vector to a thread, thread after thread, then again in further registers: accesses of
// a warp are contiguous. If there are fewer vectors than threads, threads are replicas where that comes out even, and
// stand idle where it does not.
// @post complete; registers [k * vector, (k + 1) * vector) of a thread hold neighbours of one row, or nothing
Fragment partition(const Shape& shape, Workers workers);

// The same row by row: the threads of a row are a divisor of all threads, and other threads take other rows. So
// reductions along the last axis stay among few threads, whatever its length.
// @post complete, vectors as above; reduced(result, last axis) exists
Fragment partition_rows(const Shape& shape, Workers workers);

}  // namespace tilepilot::layout
