#include "compiler/layout/swizzle.h"

#include <bit>
#include <cassert>

namespace tilepilot::layout {

Swizzle swizzle_of(SwizzleSpan span, int64_t element_bits) {
  assert(std::has_single_bit(uint64_t(element_bits)) && element_bits <= 128);
  if (span == SwizzleSpan::none) return {};
  const int pieces = int(span) / 16;
  return {std::countr_zero(unsigned(pieces)), std::countr_zero(uint64_t(128 / element_bits)), 3};
}

int64_t alignment(SwizzleSpan span) { return span == SwizzleSpan::none ? 128 : 8 * int64_t(span); }

}  // namespace tilepilot::layout
