// Statements that want a fragment otherwise than it is held, once everything has a layout.
#pragma once

#include "compiler/targets/gpu/facts/loop_uses.h"
#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// A kernel's statements that name fragments.
struct FragmentUsers {
  std::vector<ParallelLoop> loops;
  std::vector<TileReduction> reductions;
  std::vector<ir::Stmt> gemms;
  std::vector<ir::Stmt> conversions;  // see layout_conversions.h
  std::vector<ir::Stmt> others;       // outside parallel loops, by element
};

// Gives the inference its conflicts, and the moves of conversions.
// @pre all loops and fragments have a layout
// @post each statement and fragment is in conflict once
void find_conflicts(const FragmentUsers& users, int64_t threads, Inference& inference);

// What a fragment must be for a loop that is dealt out so, if each thread is to hold what it names; none if the use
// does not say.
std::optional<layout::Fragment> projected(const ParallelLoop& loop, const Use& use, const layout::Fragment& at);

// A matrix of a fragment with leading axes of one element.
layout::Fragment with_leading(layout::Fragment fragment, size_t rank);

// How the result of a reduction or scan is held, if its source is held so; none if no thread could hold it.
std::optional<layout::Fragment> result_fragment(const ir::Stmt& stmt, const layout::Fragment& source);
const ir::Buffer& source_of(const ir::Stmt& reduction);
const ir::Buffer& destination_of(const ir::Stmt& reduction);

}  // namespace tilepilot::targets::gpu
