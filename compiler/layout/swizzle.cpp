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

SwizzleSpan span_of_rows(int64_t bytes) {
  for (const SwizzleSpan span : {SwizzleSpan::bytes_128, SwizzleSpan::bytes_64, SwizzleSpan::bytes_32})
    if (bytes > 0 && bytes % static_cast<int64_t>(span) == 0) return span;
  return SwizzleSpan::none;
}

}  // namespace tilepilot::layout
