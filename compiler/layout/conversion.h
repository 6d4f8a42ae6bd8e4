// Conversions: what has to move when a tile that is held as one fragment is wanted as another.
#pragma once

#include "compiler/layout/fragment.h"

namespace tilepilot::layout {

// From cheap to dear.
enum class ConversionKind {
  nothing,        // each place that is wanted holds its element already
  registers,      // each thread holds all it wants, somewhere
  shuffles,       // each warp does
  shared_memory,  // elements cross warps
};
const char* to_text(ConversionKind kind);

struct Conversion {
  ConversionKind kind = ConversionKind::nothing;
  // Where each place of the wanted fragment gets its element: entry [thread * register_count() + register]. The
  // nearest owner: the place itself, else the same thread, the same warp, any. No thread (-1) if nothing is wanted.
  std::vector<Place> sources;
};

// @pre both have the same shape, and `from` is complete
// @post from.element(source) == to.element(place) for each place of `to` that holds an element
// @post no cheaper kind would do
Conversion conversion(const Fragment& from, const Fragment& to);

}  // namespace tilepilot::layout
