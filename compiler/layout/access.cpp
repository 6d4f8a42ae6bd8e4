#include "compiler/layout/access.h"

#include <algorithm>
#include <cassert>

#include "compiler/layout/bank_conflicts.h"

namespace tilepilot::layout {
namespace {

std::optional<int64_t> offset_of(const Fragment& fragment, const SharedLayout& memory, Place place) {
  const auto element = fragment.element(place);
  if (!element) return std::nullopt;
  return memory.offset(*element);
}

// Whether one access can move the `length` registers from `first` on.
bool is_one_access(const Fragment& fragment, const SharedLayout& memory, Place first, int64_t length) {
  const auto start = offset_of(fragment, memory, first);
  if (start && *start % length != 0) return false;
  for (int64_t i = 1; i < length; ++i) {
    const auto offset = offset_of(fragment, memory, {first.thread, first.reg + i});
    if (offset.has_value() != start.has_value() || (start && *offset != *start + i)) return false;
  }
  return true;
}

bool allows(const Fragment& fragment, const SharedLayout& memory, int64_t length) {
  for (int64_t thread = 0; thread < fragment.thread_count(); ++thread) {
    for (int64_t reg = 0; reg < fragment.register_count(); reg += length) {
      if (!is_one_access(fragment, memory, {thread, reg}, length)) return false;
    }
  }
  return true;
}

}  // namespace

int64_t vector_length(const Fragment& fragment, const SharedLayout& memory) {
  assert(fragment.shape() == memory.shape());
  int64_t length = 1;
  while (fragment.register_count() % (2 * length) == 0 && 2 * length * memory.element_bits() <= 128 &&
         allows(fragment, memory, 2 * length)) {
    length *= 2;
  }
  return length;
}

int64_t wavefronts(const Fragment& fragment, const SharedLayout& memory) {
  const int64_t length = vector_length(fragment, memory);
  const int64_t bytes = std::max<int64_t>(1, length * memory.element_bits() / 8);
  int64_t total = 0;
  for (int64_t reg = 0; reg < fragment.register_count(); reg += length) {
    for (int64_t warp = 0; warp < fragment.thread_count(); warp += kWarpSize) {
      std::vector<int64_t> addresses;
      for (int64_t thread = warp; thread < std::min(warp + kWarpSize, fragment.thread_count()); ++thread) {
        const auto offset = offset_of(fragment, memory, {thread, reg});
        addresses.push_back(offset ? *offset * memory.element_bits() / 8 : kNoAccess);
      }
      total += wavefronts(addresses, bytes);
    }
  }
  return total;
}

}  // namespace tilepilot::layout
