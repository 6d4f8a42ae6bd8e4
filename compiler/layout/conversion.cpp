#include "compiler/layout/conversion.h"

#include <algorithm>
#include <cassert>

namespace tilepilot::layout {
namespace {

ConversionKind kind_of_move(Place from, Place to) {
  if (from == to) return ConversionKind::nothing;
  if (from.thread == to.thread) return ConversionKind::registers;
  if (from.thread / kWarpSize == to.thread / kWarpSize) return ConversionKind::shuffles;
  return ConversionKind::shared_memory;
}

// The owners of each element.
std::vector<std::vector<Place>> all_owners(const Fragment& fragment) {
  std::vector<std::vector<Place>> owners(size_t(volume(fragment.shape())));
  for (int64_t thread = 0; thread < fragment.thread_count(); ++thread) {
    for (int64_t reg = 0; reg < fragment.register_count(); ++reg) {
      const auto element = fragment.element({thread, reg});
      if (element) owners[size_t(*element)].push_back({thread, reg});
    }
  }
  return owners;
}

Place nearest(const std::vector<Place>& owners, Place to) {
  assert(!owners.empty());
  return *std::min_element(owners.begin(), owners.end(),
                           [&](Place a, Place b) { return kind_of_move(a, to) < kind_of_move(b, to); });
}

}  // namespace

const char* to_text(ConversionKind kind) {
  switch (kind) {
    case ConversionKind::nothing:
      return "nothing";
    case ConversionKind::registers:
      return "registers";
    case ConversionKind::shuffles:
      return "shuffles";
    case ConversionKind::shared_memory:
      return "shared memory";
  }
  return "";
}

Conversion conversion(const Fragment& from, const Fragment& to) {
  assert(from.shape() == to.shape());
  const std::vector<std::vector<Place>> owners = all_owners(from);
  Conversion conversion;
  for (int64_t thread = 0; thread < to.thread_count(); ++thread) {
    for (int64_t reg = 0; reg < to.register_count(); ++reg) {
      const Place place{thread, reg};
      const auto element = to.element(place);
      conversion.sources.push_back(element ? nearest(owners[size_t(*element)], place) : Place{});
      if (element) conversion.kind = std::max(conversion.kind, kind_of_move(conversion.sources.back(), place));
    }
  }
  return conversion;
}

}  // namespace tilepilot::layout
