#include "compiler/targets/c/operations.h"

namespace tilepilot::targets::c {

std::string_view name_of(Operation operation) {
  constexpr std::string_view kNames[kOperationClasses] = {
      "fp32", "fp32 fma", "fp64", "integer", "integer division", "comparison", "conversion", "special"};
  return kNames[static_cast<size_t>(operation)];
}

int64_t Operations::total() const {
  int64_t sum = 0;
  for (const int64_t count : counts_) sum += count;
  return sum;
}

void Operations::add(const Operations& other, int64_t times) {
  for (size_t k = 0; k < kOperationClasses; ++k) counts_[k] += other.counts_[k] * times;
}

}  // namespace tilepilot::targets::c
