#include "compiler/ir/arithmetic.h"

namespace tilepilot::ir {

int64_t wrap(Wide value, DType type) {
  if (type.is_bool()) return value != 0;
  const auto bits = static_cast<uint64_t>(value);
  if (type.bits >= 64) return static_cast<int64_t>(bits);
  const uint64_t mask = (uint64_t{1} << type.bits) - 1;
  const uint64_t low = bits & mask;
  const bool negative = type.code == TypeCode::signed_int && (low >> (type.bits - 1)) != 0;
  return static_cast<int64_t>(negative ? low | ~mask : low);
}

}  // namespace tilepilot::ir
